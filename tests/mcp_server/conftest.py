"""The service that agents connect to, and agents of a tenant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from knowledge.home import Home
from knowledge.runtime import Runtime
from tests.mcp_server.agents import MODES, TRANSPORTS, Agent, Connect, make_key
from tests.retrieval_api.service import serving

AgentFactory = Callable[..., Agent]


@pytest.fixture(scope="session")
def url(home: Home, runtime: Runtime) -> Iterator[str]:
    with serving(home, runtime) as found:
        yield found


@pytest.fixture(params=TRANSPORTS)
def connect(request: pytest.FixtureRequest) -> Connect:
    return TRANSPORTS[request.param]


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def agent_factory(url: str, runtime: Runtime, tmp_path: Path) -> AgentFactory:
    """Makes an agent with a key of its own: ``make(tenant, project=…, scopes=…)``."""

    def make(tenant_id: str, *, mode: str = "auto", **options: Any) -> Agent:
        key = make_key(runtime, tenant_id, **options)
        return Agent(url, key.text, tmp_path, mode)

    return make
