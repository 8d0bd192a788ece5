"""Backends under the same contract: a dict of factories, one entry an implementation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

import pytest

from knowledge.home import Home
from knowledge.runtime import Runtime
from knowledge.stack.servers import current_addresses
from knowledge.storage.backend import HybridIndex, HybridSearch
from knowledge.storage.weaviate.client import WeaviateAddress
from knowledge.storage.weaviate.index import WeaviateIndex
from knowledge.storage.weaviate.search import WeaviateSearch


@dataclass(frozen=True)
class Backend:
    """Both ports of one implementation; ``search`` opens its asynchronous one."""

    index: HybridIndex
    search: Callable[[], AbstractAsyncContextManager[HybridSearch]]


def _weaviate(home: Home, runtime: Runtime) -> Backend:
    servers = current_addresses(home, runtime.settings)
    assert servers is not None
    address = WeaviateAddress(servers.weaviate_url, servers.weaviate_grpc, servers.weaviate_api_key)

    @asynccontextmanager
    async def search() -> AsyncIterator[HybridSearch]:
        opened = WeaviateSearch(address)
        try:
            yield opened
        finally:
            await opened.close()

    return Backend(WeaviateIndex(address, installation_id="c" * 32), search)


BACKENDS: dict[str, Callable[[Home, Runtime], Backend]] = {"weaviate": _weaviate}


@pytest.fixture(scope="session", params=BACKENDS)
def backend(request: pytest.FixtureRequest, home: Home, runtime: Runtime) -> Iterator[Backend]:
    made = BACKENDS[request.param](home, runtime)
    yield made
    close = getattr(made.index, "close", None)
    if close:
        close()
