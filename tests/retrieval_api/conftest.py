"""The query service over this worker's servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from knowledge.home import Home
from knowledge.runtime import Runtime
from tests.retrieval_api.service import Caller, caller, serving

CallerFactory = Callable[..., Caller]


@pytest.fixture(scope="session")
def url(home: Home, runtime: Runtime) -> Iterator[str]:
    with serving(home, runtime) as found:
        yield found


@pytest.fixture(scope="session")
def caller_factory(url: str, runtime: Runtime) -> CallerFactory:
    """Makes a client of a tenant: ``make(tenant, projects=…, groups=…, scopes=…)``."""

    def make(tenant_id: str, **options: object) -> Caller:
        return caller(url, runtime, tenant_id, **options)  # type: ignore[arg-type]

    return make
