"""Every backend writes and is asked here: what is rebuilt and collected must be true of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from knowledge.home import Home
from knowledge.runtime import Runtime
from tests.asking import Asker, asking
from tests.storage.conftest import BACKENDS, Backend


@pytest.fixture(scope="session", params=BACKENDS)
def backend(request: pytest.FixtureRequest, home: Home, runtime: Runtime) -> Iterator[Backend]:
    made = BACKENDS[request.param](home, runtime)
    yield made
    made.index.close()


@pytest.fixture
def indexed(runtime: Runtime, backend: Backend) -> Runtime:
    """The runtime, writing this backend; a collected revision is deleted without delay."""
    indexing = runtime.settings.indexing.model_copy(
        update={"keep_revisions": 2, "keep_days": 0.0, "dead_rows_minimum": 3}
    )
    retrieval = runtime.settings.retrieval.model_copy(update={"request_timeout_s": -1.0})
    settings = runtime.settings.model_copy(update={"indexing": indexing, "retrieval": retrieval})
    return replace(runtime, index=backend.index, settings=settings)


@pytest.fixture
def asker(runtime: Runtime, backend: Backend) -> Iterator[Asker]:
    with asking(runtime, backend.search()) as opened:
        yield opened
