"""The opened service: what every endpoint uses, opened by the lifespan and handed down typed."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request

from knowledge.errors import (
    DatabaseUnavailable,
    Forbidden,
    InvalidInput,
    KnowledgeError,
    ScopeContractBroken,
    Unauthenticated,
    Unavailable,
)
from knowledge.graph.querying import FactReader
from knowledge.home import Home
from knowledge.model.scope import ADMIN, Caller
from knowledge.profiles.registry import Profiles
from knowledge.retrieval.recording import Recorder
from knowledge.retrieval.search import Searcher
from knowledge.security.keys import PREFIX as KEY_PREFIX
from knowledge.security.tokens import TokenIssuer
from knowledge.settings import Settings, load_settings
from knowledge.storage.backends import IndexLocation
from knowledge.storage.guarded import GuardedSearch
from knowledge.storage.postgres import service as queries
from knowledge.storage.postgres.database import AsyncDatabase, Database
from knowledge.storage.postgres.idempotency import delete_expired_keys
from mcp_server.http import session_manager
from mcp_server.tools import selected
from retrieval_api.key_verifier import KeyVerifier
from retrieval_api.memory_service import MemoryService, open_memory
from retrieval_api.metrics import Metrics
from retrieval_api.write_slots import CONCURRENT_WRITES, WriteSlots

logger = logging.getLogger(__name__)

RELAY_INTERVAL_S: Final = 0.5
RECONNECT_INTERVAL_S: Final = 2.0
RELOAD_INTERVAL_S: Final = 2.0
RETENTION_INTERVAL_S: Final = 3600.0
KEY_RETENTION_H: Final = 24
"""How long the answer to a request with an Idempotency-Key is kept."""


@dataclass(frozen=True, slots=True)
class ServiceConfig:
    """Everything the service needs from outside. ``home`` is read again for new settings."""

    home: Home
    settings: Settings
    app_url: str
    index: IndexLocation
    cache_dir: Path


@dataclass(slots=True)
class Service:
    """What is open while the application runs. ``index`` is asked once its filters are proven."""

    config: ServiceConfig
    settings: Settings
    profiles: Profiles
    database: AsyncDatabase
    writer: Database
    index: GuardedSearch
    searcher: Searcher
    recorder: Recorder
    tokens: TokenIssuer
    keys: KeyVerifier
    metrics: Metrics
    facts: FactReader
    memory: MemoryService
    mcp: StreamableHTTPSessionManager
    write_slots: WriteSlots

    @property
    def snapshot_roots(self) -> list[Path]:
        roots = map(Path, self.settings.publishing.snapshot_roots)
        return [self.config.home.snapshots_dir, *roots]

    async def authenticate(self, request: Request, scope: str) -> Caller:
        """The caller of a request whose token or API key carries ``scope``.

        What the caller may still do is read with the plan of the request. Raises
        `Unauthenticated`, `Forbidden`, `DatabaseUnavailable` (of an API key not seen lately).
        """
        caller = await self.identify(request)
        if scope not in caller.scopes:
            raise Forbidden(f"the access token does not carry the scope {scope}")
        return caller

    async def identify(self, request: Request) -> Caller:
        """The caller whose token or API key a request carries. Raises as `authenticate`."""
        header = request.headers.get("authorization", "")
        kind, _, credential = header.partition(" ")
        credential = credential.strip()
        if kind.lower() != "bearer" or not credential:
            raise Unauthenticated(
                "send an access token or API key as Authorization: Bearer …; ask for a token at"
                " /oauth/token"
            )
        if credential.startswith(KEY_PREFIX):
            return await self.keys.verify(credential)
        return self.tokens.verify(credential)

    async def granted(self, caller: Caller, scope: str) -> dict[str, Any]:
        """The client's grants as they are now; acts on revocation at once."""
        found = await self.known(caller)
        if scope not in found["scopes"]:
            raise Forbidden(f"the client no longer has the scope {scope}")
        return found

    async def known(self, caller: Caller) -> dict[str, Any]:
        """`granted` whatever the scopes. Raises `Unauthenticated` for a revoked client."""
        found = await queries.grants(self.database, caller.tenant_id, caller.client_id)
        if found is None:
            raise Unauthenticated("the client of this token was revoked: ask for a new one")
        return found

    async def project_of(self, caller: Caller, named: str | None, scope: str) -> str:
        """The project a request is about: the one it names, else the credential's only one.

        Raises `InvalidInput` where there are several, and as `granted`.
        """
        if named is not None:
            return named
        projects: list[str] = (await self.granted(caller, scope))["projects"]
        if len(projects) != 1:
            raise InvalidInput(f"projectId: say which project, one of {', '.join(projects)}")
        return projects[0]

    async def update_fact_counts(self) -> None:
        """Take the counts of facts into the metrics; without a server the last known stay."""
        try:
            self.metrics.set_facts(await queries.count_facts(self.database))
        except DatabaseUnavailable as error:
            logger.info("facts were not counted", extra={"reason": error.message})

    def principal_filter(self, caller: Caller, granted: Mapping[str, Any]) -> str | None:
        """Whose records a caller may read: its own; an administrator the whole tenant's."""
        is_admin = ADMIN in caller.scopes and ADMIN in granted["scopes"]
        return None if is_admin else caller.client_id


def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


@asynccontextmanager
async def open_service(config: ServiceConfig) -> AsyncIterator[Service]:
    """Open everything, run the background tasks, and close in reverse order.

    PostgreSQL or the index's server may be away: the service starts degraded and connects when it can.
    """
    settings = config.settings
    database = AsyncDatabase(config.app_url)
    index = GuardedSearch(config.index.open_search(database))
    profiles = Profiles(settings, config.cache_dir)
    facts = FactReader(database)
    await database.open()
    stack = AsyncExitStack()
    writer = Database(config.app_url, max_size=CONCURRENT_WRITES + 2)
    write_slots = WriteSlots()
    memory = await stack.enter_async_context(
        open_memory(settings, profiles, facts, writer, write_slots.of)
    )
    service = Service(
        config=config,
        settings=settings,
        profiles=profiles,
        database=database,
        writer=writer,
        index=index,
        searcher=Searcher(database, index, profiles, settings.retrieval),
        recorder=Recorder(database),
        tokens=TokenIssuer(
            f"knowledge:{config.home.installation_id}",
            config.home.signing_key,
            settings.security.token_lifetime_s,
        ),
        keys=KeyVerifier(database),
        metrics=Metrics(),
        facts=facts,
        memory=memory,
        write_slots=write_slots,
        mcp=session_manager(
            selected(settings.mcp.tools, read_only=settings.mcp.read_only),
            hosts=[settings.stack.host, *settings.mcp.allowed_hosts],
        ),
    )
    tasks = [
        asyncio.create_task(service.recorder.run(), name="recorder"),
        asyncio.create_task(_prove(service), name="scope contract"),
        asyncio.create_task(_repeat(RELAY_INTERVAL_S, lambda: _relay(service)), name="relay"),
        asyncio.create_task(_repeat(RELOAD_INTERVAL_S, lambda: _reload(service)), name="reload"),
        asyncio.create_task(_repeat(RETENTION_INTERVAL_S, lambda: _expire(service)), name="expire"),
        asyncio.create_task(_warm(service), name="warm"),
    ]
    try:
        async with service.mcp.run():
            yield service
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await stack.aclose()
        await index.close()
        service.writer.close()
        await database.close()


async def _repeat(interval_s: float, step: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Do a step again and again; a server that is away is waited for."""
    while True:
        try:
            await step()
        except Unavailable as error:
            logger.info("waiting for a server", extra={"reason": error.message})
        except Exception:  # the task's outermost handler: one bad step must not end the others
            logger.exception("a background step failed")
        await asyncio.sleep(interval_s)


async def _relay(service: Service) -> None:
    await queries.relay(service.database)


async def _expire(service: Service) -> None:
    await queries.delete_expired_records(
        service.database, service.settings.retrieval.record_retention_days
    )
    await delete_expired_keys(service.database, KEY_RETENTION_H)


async def _reload(service: Service) -> None:
    """Take up changed retrieval settings; a broken file keeps what is in force."""
    settings = await asyncio.to_thread(load_settings, service.config.home)
    if settings != service.settings:
        service.settings = settings
        service.searcher.settings = settings.retrieval
        logger.info("settings reloaded")


async def _warm(service: Service) -> None:
    """Load the default model before the first query needs it; without it, legs say so."""
    try:
        await asyncio.to_thread(service.searcher.warm, service.settings.default_profile)
    except Exception as error:  # the task's outermost handler: whatever it was, legs report it
        logger.warning("the default model is not available", extra={"reason": str(error)})


async def _prove(service: Service) -> None:
    """Prove the backend's filters once per version and schema; until then it is not asked.

    A backend that fails stops the process (ADR-0013 of the specification): thin or leaking
    answers are worse than none.
    """
    while not service.index.is_proven:
        index = service.config.index.open_index(service.writer)
        try:
            await service.index.prove(index, service.database)
        except ScopeContractBroken as error:
            logger.critical("stopping: the scope contract failed: %s", error.message)
            os.kill(os.getpid(), signal.SIGTERM)
            return
        except KnowledgeError as error:
            service.index.reason = error.message
            await asyncio.sleep(RECONNECT_INTERVAL_S)
        except Exception:  # the task's outermost handler: it must try again, whatever it was
            service.index.reason = "proving the scope filters failed: see the log"
            logger.exception("proving the scope filters failed")
            await asyncio.sleep(RECONNECT_INTERVAL_S)
        finally:
            await asyncio.to_thread(index.close)
