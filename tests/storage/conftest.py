"""Backends under the same contract: a dict of factories, one entry an implementation."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

import pytest

from knowledge.home import Home
from knowledge.model.revision import Generation
from knowledge.runtime import Runtime
from knowledge.stack.servers import current_addresses
from knowledge.storage.backend import HybridIndex, HybridSearch
from knowledge.storage.backends import IndexLocation
from knowledge.storage.memory.index import MemoryIndex, MemoryStore
from knowledge.storage.memory.search import MemorySearch
from knowledge.storage.postgres.database import AsyncDatabase


@dataclass(frozen=True)
class Backend:
    """Both ports of one implementation; ``search`` opens its asynchronous one."""

    index: HybridIndex
    search: Callable[[], AbstractAsyncContextManager[HybridSearch]]


def on_servers(name: str, installation_id: str = "c" * 32) -> Callable[[Home, Runtime], Backend]:
    """A backend as the product opens it, in an installation of its own on the same servers."""

    def make(home: Home, runtime: Runtime) -> Backend:
        servers = current_addresses(home, runtime.settings)
        assert servers is not None
        location = IndexLocation(name, installation_id, 40_000, servers.weaviate)

        @asynccontextmanager
        async def search() -> AsyncIterator[HybridSearch]:
            database = AsyncDatabase(runtime.urls.app_url)
            await database.open()
            opened = location.open_search(database)
            try:
                yield opened
            finally:
                await opened.close()
                await database.close()

        return Backend(location.open_index(runtime.app), search)

    return make


def _memory(_home: Home, _runtime: Runtime) -> Backend:
    store = MemoryStore()

    @asynccontextmanager
    async def search() -> AsyncIterator[HybridSearch]:
        yield MemorySearch(store)

    return Backend(MemoryIndex(store), search)


BACKENDS: dict[str, Callable[[Home, Runtime], Backend]] = {
    "weaviate": on_servers("weaviate"),
    "pgvector": on_servers("pgvector"),
    "memory": _memory,
}


@pytest.fixture(scope="session", params=BACKENDS)
def backend(request: pytest.FixtureRequest, home: Home, runtime: Runtime) -> Iterator[Backend]:
    made = BACKENDS[request.param](home, runtime)
    yield made
    made.index.close()


@pytest.fixture
def index(backend: Backend) -> HybridIndex:
    return backend.index


@pytest.fixture
def made(index: HybridIndex) -> Iterator[Callable[..., Generation]]:
    """Makes a generation of its own, which the test leaves behind for us to remove."""
    generations = []

    def make(profile: str | None = "port@1", tenant_id: str = "port") -> Generation:
        generation = Generation(
            generation_id=uuid.uuid4(),
            tenant_id=tenant_id,
            collection_id=uuid.uuid4(),
            backend=index.name,
            class_name=index.class_name(profile),
            backend_tenant=uuid.uuid4().hex,
            embedding_profile=profile,
            created_rev=1,
            applied_rev=0,
            state="building",
        )
        index.create_generation(generation, with_vectors=profile is not None)
        generations.append(generation)
        return generation

    yield make
    for generation in generations:
        index.drop_generation(generation)
