"""Randomised calls to memories of two tenants, twenty namespaces and many sessions.

All memories use the same words. Every name carries a mark of the memory, or of the session, it is
of, and questions use the marks of all: whatever comes back must carry a mark that the caller may
see, and what is around an entity must be complete. Meanwhile facts are told, promoted and
forgotten, and clients lose and win projects. Another tenant's memory must not be there.

    python -m benchmarks.memory_leaks [--calls 50000] [--seed 1]
"""

from __future__ import annotations

import asyncio
import random
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click

from benchmarks.installation import PROFILE
from knowledge.errors import NotFound
from knowledge.graph.ontologies import tenant_ontology
from knowledge.graph.querying import FactReader
from knowledge.graph.receiving import Sender
from knowledge.home import Home
from knowledge.memory import care
from knowledge.memory.care import Chosen
from knowledge.memory.embedding import BackgroundEmbedder, NameEmbedder
from knowledge.memory.namespace import memory_namespace
from knowledge.memory.plan import MemoryScope
from knowledge.memory.questions import NameQuestion, RecallQuestion, SubgraphQuestion
from knowledge.memory.recalling import Recaller
from knowledge.memory.warm import WarmNames
from knowledge.memory.writing import Told, upsert
from knowledge.model.scope import READ, WRITE, Caller, Scope
from knowledge.profiles.registry import Profiles
from knowledge.runtime import Runtime, open_runtime
from knowledge.stack.cache import cache_folder
from knowledge.storage.postgres import catalogue
from knowledge.storage.postgres.database import AsyncDatabase

TENANTS: Final = ("left", "right")
PROJECTS: Final = ("p1", "p2")
GRAPHS: Final = tuple(f"g{number}" for number in range(5))
SESSIONS: Final = ("s1", "s2")
WORDS: Final = (
    "billing",
    "ledger",
    "car",
    "automobile",
    "checkout",
    "refund",
    "queue",
    "cache",
    "login",
    "outage",
    "deploy",
    "release",
)
PREDICATES: Final = ("DEPENDS_ON", "USES", "NEXT_TO", "OWNED_BY")
FACTS_A_MEMORY: Final = 60
CHANGED_EVERY: Final = 50
_MARK: Final = re.compile(r"zq\w+")

Place = tuple[str, str, str]
"""Tenant, project, graph."""


@dataclass
class World:
    """Marks by place and session, and the facts that are believed there."""

    facts: defaultdict[tuple[Place, str | None], set[tuple[str, str, str]]] = field(
        default_factory=lambda: defaultdict(set)
    )

    def mark(self, place: Place, session: str | None) -> str:
        tenant, project, graph = place
        return f"zq{tenant[0]}{project}{graph}{session or 'all'}"

    def admitted(self, place: Place, session: str | None, *, shared: bool) -> list[str | None]:
        of_session: list[str | None] = [] if session is None else [session]
        return [*of_session, *([None] if shared else [])]


@dataclass
class Calling:
    """One run: who asks, what is true, and what was counted."""

    runtime: Runtime
    recaller: Recaller
    background: BackgroundEmbedder
    names: WarmNames
    rng: random.Random
    world: World
    clients: dict[str, Caller]
    counts: Counter[str] = field(default_factory=Counter)

    def sender(self, place: Place) -> Sender:
        tenant, project, _ = place
        scope = Scope(tenant, project, self.clients[tenant].client_id, ())
        return Sender(scope, tenant_ontology(self.runtime.app, tenant), frozenset(), is_admin=True)

    def place(self) -> Place:
        rng = self.rng
        return rng.choice(TENANTS), rng.choice(PROJECTS), rng.choice(GRAPHS)


@click.command(help=(__doc__ or "").split("    python")[0])
@click.option("--calls", default=50_000, show_default=True)
@click.option("--seed", default=1, show_default=True)
def main(calls: int, seed: int) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="kn-leaks-", dir="/tmp") as folder,
        open_runtime(Home(Path(folder))) as runtime,
    ):
        started = time.monotonic()
        counts = asyncio.run(_run(runtime, calls, random.Random(seed)))
        seconds = time.monotonic() - started
    click.echo(
        f"{calls:,} calls in {seconds:.0f} s: {counts['names']:,} names came back,"
        f" {counts['foreign']} of another memory; {counts['complete']:,} surroundings complete,"
        f" {counts['short']} not; {counts['refused']:,} of {counts['crossed']:,} questions to"
        f" another tenant's memory refused; {counts['hybrid']:,} by names and meaning;"
        f" {counts['changes']:,} changes meanwhile; {counts['dropped']} dropped by the last check"
    )
    is_vacuous = not all(counts[kind] for kind in ("names", "hybrid", "complete", "crossed"))
    is_open = counts["refused"] != counts["crossed"]
    if counts["foreign"] or counts["short"] or counts["dropped"] or is_open or is_vacuous:
        sys.exit(1)


async def _run(runtime: Runtime, calls: int, rng: random.Random) -> Counter[str]:
    database = AsyncDatabase(runtime.urls.app_url)
    await database.open()
    reader = FactReader(database)
    embedder = NameEmbedder(Profiles(runtime.settings, cache_folder()), PROFILE, 5.0)
    names = WarmNames(database)
    background = BackgroundEmbedder(database, embedder, 30.0)
    recaller = Recaller(reader, names, embedder)
    clients = {tenant: _client(runtime, tenant) for tenant in TENANTS}
    calling = Calling(runtime, recaller, background, names, rng, World(), clients)
    try:
        for tenant in TENANTS:
            for project in PROJECTS:
                for graph in GRAPHS:
                    _fill(calling, (tenant, project, graph))
        await background.embed_pending()
        kinds = (_recall, _recall, _search, _subgraph, _list, _cross)
        for number in range(calls):
            if number % CHANGED_EVERY == 0:
                await _change(calling)
            await rng.choice(kinds)(calling)
        return calling.counts
    finally:
        embedder.close()
        await database.close()


def _client(runtime: Runtime, tenant: str) -> Caller:
    for project in PROJECTS:
        catalogue.ensure_project(runtime.owner, tenant, project)
    client_id, _ = catalogue.create_client(
        runtime.owner, tenant, projects=PROJECTS, groups=(), scopes=(READ, WRITE)
    )
    return Caller(client_id, tenant, (READ, WRITE))


def _fill(calling: Calling, place: Place) -> None:
    for session in (None, *SESSIONS):
        _tell(calling, place, session, FACTS_A_MEMORY if session is None else 8)


def _tell(calling: Calling, place: Place, session: str | None, count: int) -> None:
    rng, mark = calling.rng, calling.world.mark(place, session)
    told = {
        (f"{rng.choice(WORDS)} {mark}", rng.choice(PREDICATES[:3]), f"{rng.choice(WORDS)} {mark}")
        for _ in range(count)
    }
    triples = [{"subject": s, "predicate": p, "object": o} for s, p, o in sorted(told)]
    answer = upsert(
        calling.runtime.app,
        calling.sender(place),
        Told(
            memory_namespace(place[0], place[2]),
            triples,
            "leaks",
            session or "shared",
            is_of_session=session is not None,
        ),
    )
    assert not answer["refused"], answer["refused"][0]
    calling.world.facts[place, session] |= told


async def _change(calling: Calling) -> None:
    """Tell, forget an entity, or forget a session, somewhere."""
    place, rng = calling.place(), calling.rng
    calling.counts["changes"] += 1
    kind = rng.choice(("tell", "tell", "entity", "session"))
    namespace = memory_namespace(place[0], place[2])
    if kind == "tell":
        _tell(calling, place, rng.choice((None, *SESSIONS)), 4)
        await calling.background.embed_pending()
        return
    session = rng.choice(SESSIONS)
    held = calling.world.facts[place, session if kind == "session" else None]
    if not held:
        return
    if kind == "session":
        chosen = Chosen(session=session)
        calling.world.facts[place, session] = set()
    else:
        entity = rng.choice(sorted(held))[0]
        chosen = Chosen(entity=entity)
        calling.world.facts[place, None] = {f for f in held if entity not in (f[0], f[2])}
    care.forget(calling.runtime.app, calling.sender(place), namespace, chosen)


def _scope(calling: Calling, place: Place) -> tuple[MemoryScope, set[str], list[str | None]]:
    """A question's scope, the marks it admits, and the sessions (None: shared) that these are."""
    session = calling.rng.choice((None, None, *SESSIONS))
    shared = session is None or calling.rng.random() < 0.7
    sessions = calling.world.admitted(place, session, shared=shared)
    marks = {calling.world.mark(place, each) for each in sessions}
    return MemoryScope(place[1], place[2], session, shared), marks, sessions


def _query(calling: Calling) -> str:
    """Common words, and the mark of some memory, whoever's."""
    rng = calling.rng
    mark = calling.world.mark(calling.place(), rng.choice((None, *SESSIONS)))
    return " ".join(
        [*rng.sample(WORDS, rng.randint(1, 3)), *([mark] if rng.random() < 0.6 else [])]
    )


def _note(calling: Calling, names: Iterable[str], marks: set[str]) -> None:
    for name in names:
        calling.counts["names"] += 1
        found = _MARK.search(name)
        calling.counts["foreign"] += found is None or found.group() not in marks


async def _recall(calling: Calling) -> None:
    place = calling.place()
    scope, marks, _ = _scope(calling, place)
    question = RecallQuestion(_query(calling), scope)
    answer = await calling.recaller.recall(calling.clients[place[0]], question)
    calling.counts["hybrid"] += answer.basis.mode == "hybrid"
    calling.counts["dropped"] += answer.basis.dropped
    _note(calling, (each.name for each in answer.entities), marks)
    _note(calling, (end for f in answer.facts for end in (f.subject, f.object)), marks)


async def _search(calling: Calling) -> None:
    place = calling.place()
    scope, marks, _ = _scope(calling, place)
    question = NameQuestion(_query(calling), scope, limit=10)
    answer = await calling.recaller.search(calling.clients[place[0]], question)
    calling.counts["hybrid"] += answer.basis.mode == "hybrid"
    calling.counts["dropped"] += answer.basis.dropped
    _note(calling, (each.name for each, _ in answer.entities), marks)


async def _subgraph(calling: Calling) -> None:
    place = calling.place()
    scope, marks, sessions = _scope(calling, place)
    own = calling.rng.random() < 0.7
    asked_of = place if own else calling.place()
    mark = calling.world.mark(asked_of, calling.rng.choice(sessions))
    entity = f"{calling.rng.choice(WORDS)} {mark}"
    question = SubgraphQuestion((entity,), scope)
    answer = await calling.recaller.subgraph(calling.clients[place[0]], question)
    calling.counts["dropped"] += answer.basis.dropped
    _note(calling, (end for f in answer.facts for end in (f.subject, f.object)), marks)
    wanted = {
        fact
        for session in sessions
        for fact in calling.world.facts[place, session]
        if entity in (fact[0], fact[2])
    }
    found = {(fact.subject, fact.predicate, fact.object) for fact in answer.facts}
    is_complete = found == wanted or (len(found) == 40 and found < wanted)
    calling.counts["complete" if is_complete else "short"] += 1


async def _list(calling: Calling) -> None:
    place = calling.place()
    scope, marks, _ = _scope(calling, place)
    _, names = await calling.recaller.names(calling.clients[place[0]], scope)
    _note(calling, (each.name for each in names), marks)


async def _cross(calling: Calling) -> None:
    """Ask for a memory of the other tenant, by its whole name."""
    tenant, project, graph = calling.place()
    other = next(each for each in TENANTS if each != tenant)
    scope = MemoryScope(project, memory_namespace(other, graph))
    asking: tuple[Callable[[], Awaitable[object]], ...] = (
        lambda: calling.recaller.recall(calling.clients[tenant], RecallQuestion("billing", scope)),
        lambda: calling.recaller.search(calling.clients[tenant], NameQuestion("billing", scope)),
        lambda: calling.recaller.names(calling.clients[tenant], scope),
    )
    calling.counts["crossed"] += 1
    try:
        await calling.rng.choice(asking)()
    except NotFound:
        calling.counts["refused"] += 1


if __name__ == "__main__":
    main()
