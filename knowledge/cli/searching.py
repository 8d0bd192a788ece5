"""Questions asked in this process, under a client's scope: for ``search`` and ``eval``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace

from knowledge.errors import Forbidden, InvalidInput, NotFound, ProfileMismatch, Unavailable
from knowledge.model.identity import require_slug
from knowledge.model.revision import IndexKind
from knowledge.model.scope import READ, Caller
from knowledge.retrieval.planning import plan_search
from knowledge.retrieval.request import SearchRequest
from knowledge.retrieval.search import Searcher
from knowledge.runtime import Runtime, index_location
from knowledge.stack.servers import current_addresses
from knowledge.storage.guarded import GuardedSearch
from knowledge.storage.postgres import catalogue
from knowledge.storage.postgres.database import AsyncDatabase


def require_caller(runtime: Runtime, tenant_id: str, client_id: str | None) -> Caller:
    """The caller that ``--as`` names. There is no query without a scope, not even the operator's.

    Raises `InvalidInput` when none is named and `NotFound` for another tenant's or a revoked
    client (both list the tenant's clients), and `Forbidden` for one that may not read.
    """
    require_slug(tenant_id, "tenant")
    rows = catalogue.list_clients(runtime.owner, tenant_id)
    active = {row["client_id"]: row for row in rows if row["revoked_at"] is None}
    known = "; ".join(
        f"{name} ({', '.join(row['groups']) or 'no group'})" for name, row in active.items()
    )
    if not active:
        raise NotFound(
            f"tenant {tenant_id} has no client to ask as:"
            f" knowledge clients create --tenant {tenant_id} --projects P"
        )
    if client_id is None:
        raise InvalidInput(f"say who asks with --as CLIENT; tenant {tenant_id} has {known}")
    if client_id not in active:
        raise NotFound(f"tenant {tenant_id} has no active client {client_id}; it has {known}")
    scopes = tuple(active[client_id]["scopes"])
    if READ not in scopes:
        raise Forbidden(f"client {client_id} lacks the scope {READ} that a query needs")
    return Caller(client_id, tenant_id, scopes)


@contextmanager
def named_or_temporary_caller(
    runtime: Runtime, tenant_id: str, project_id: str, client_id: str | None
) -> Iterator[Caller]:
    """The caller that ``--as`` names; without a name one that reads what everyone with the
    project may read, made for the length of the block.

    Raises what `require_caller` raises, and `NotFound` for an unknown project.
    """
    if client_id is not None:
        yield require_caller(runtime, tenant_id, client_id)
        return
    require_slug(tenant_id, "tenant")
    with catalogue.temporary_client(runtime.owner, tenant_id, project_id) as made:
        yield Caller(made, tenant_id, (READ,))


@asynccontextmanager
async def opened_searcher(
    runtime: Runtime, caller: Caller, request: SearchRequest
) -> AsyncIterator[Searcher]:
    """A searcher for the length of the block, warmed up for requests like ``request``.

    A service connects and loads its models once and early; a command does so here, before
    deadlines count. Raises what the request itself raises, and `ScopeContractBroken`.
    """
    addresses = current_addresses(runtime.home, runtime.settings)
    if addresses is None:
        raise Unavailable("the servers of this home have stopped: try again")
    database = AsyncDatabase(runtime.urls.app_url)
    location = index_location(runtime.home, runtime.settings, addresses)
    index = GuardedSearch(location.open_search(database))
    searcher = Searcher(database, index, runtime.profiles, runtime.settings.retrieval)
    await database.open()
    try:
        await _warm(searcher, caller, request)
        try:
            await index.prove(runtime.index, database)
        except Unavailable as error:
            index.reason = error.message
        await searcher.search(caller, replace(request, top_k=1))
        yield searcher
    finally:
        await index.close()
        await database.close()


async def _warm(searcher: Searcher, caller: Caller, request: SearchRequest) -> None:
    """Load the models that the request's collections are served with; legs tell of failures."""
    plan = await plan_search(searcher.database, caller, request)
    for target in plan.targets:
        served = target.served.get(IndexKind.VECTOR)
        if served and served.generation.embedding_profile:
            with suppress(Unavailable, ProfileMismatch):
                await asyncio.to_thread(searcher.warm, served.generation.embedding_profile)
