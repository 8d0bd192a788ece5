"""Searches in this process over one backend, as the query service runs them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager

from knowledge.model.scope import READ, Caller
from knowledge.retrieval.answer import Answer
from knowledge.retrieval.request import SearchRequest
from knowledge.retrieval.search import Searcher
from knowledge.runtime import Runtime
from knowledge.storage.backend import HybridSearch
from knowledge.storage.postgres import catalogue
from knowledge.storage.postgres.database import AsyncDatabase


class Asker:
    """A searcher with an event loop of its own."""

    def __init__(self, runner: asyncio.Runner, searcher: Searcher) -> None:
        self._runner = runner
        self._searcher = searcher

    def ask(self, caller: Caller, request: SearchRequest) -> Answer:
        return self._runner.run(self._searcher.search(caller, request))


@contextmanager
def asking(runtime: Runtime, search: AbstractAsyncContextManager[HybridSearch]) -> Iterator[Asker]:
    """Deadlines are generous: what is tested here is what is found, not how fast."""
    settings = runtime.settings.retrieval.model_copy(
        update={"leg_timeout_s": 20.0, "request_timeout_s": 30.0}
    )
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()

        async def opened() -> Searcher:
            database = AsyncDatabase(runtime.urls.app_url)
            await database.open()
            stack.push_async_callback(database.close)
            index = await stack.enter_async_context(search)
            return Searcher(database, index, runtime.profiles, settings)

        searcher = runner.run(opened())
        try:
            yield Asker(runner, searcher)
        finally:
            runner.run(stack.aclose())


def caller_of(
    runtime: Runtime,
    tenant_id: str,
    *,
    projects: Sequence[str] = ("p1",),
    groups: Sequence[str] = (),
) -> Caller:
    """A new client of the tenant, allowed to read."""
    client_id, _ = catalogue.create_client(
        runtime.owner, tenant_id, projects=projects, groups=groups, scopes=[READ]
    )
    return Caller(client_id, tenant_id, (READ,))
