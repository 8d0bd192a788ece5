"""Randomised questions about facts over generated tenants, projects, sources and ACLs.

Every fact that comes back must be one that the rule of scope admits, and answers must be complete:
queries and histories give exactly the admitted facts, expansions exactly what a walk over admitted
facts reaches, paths are as short as over admitted facts alone. All tenants use the same names, and
merge some. While questions are asked, ACLs of sources, groups and projects of clients change and
facts are retracted; the next answer must follow, and one as known before must not.

    python -m benchmarks.fact_leaks [--queries 20000] [--seed 1]
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
import uuid
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from benchmarks.fact_world import (
    FUNCTIONAL,
    MERGED_IN,
    Acl,
    Admitted,
    Client,
    Names,
    Reach,
    Told,
    World,
)
from knowledge.graph.asserting import Batch, Retraction, assert_facts
from knowledge.graph.expanding import expand, find_paths
from knowledge.graph.ontologies import tenant_ontology
from knowledge.graph.querying import FactReader
from knowledge.graph.questions import (
    Direction,
    Expansion,
    FactQuestion,
    HistoryQuestion,
    PathQuestion,
    Sieve,
)
from knowledge.graph.reading import Teller, read_fact
from knowledge.graph.session import Writer
from knowledge.home import Home
from knowledge.model.fact import Statement
from knowledge.model.scope import READ, Caller
from knowledge.runtime import Runtime, open_runtime
from knowledge.storage.postgres import catalogue
from knowledge.storage.postgres.database import AsyncDatabase
from knowledge.storage.postgres.facts import entities

TENANTS: Final = ("acme", "acme-eu", "globex")
PROJECTS: Final = ("p1", "p1-eu", "p2")
SOURCES: Final = ("s1", "s1-private", "S1", "repo:acme", "repo:acme/eu", "EU acme")
GROUPS: Final = ("eng", "eng-eu", "hr")
NAMES: Final = tuple(f"Node {number}" for number in range(24))
NAMESPACES: Final = ("default", MERGED_IN)
PREDICATES: Final = ("LINKS_TO", "NAMES", FUNCTIONAL)
CHANGE_EVERY: Final = 40
"""Questions, asked at once."""
DIRECTIONS: Final[tuple[Direction, ...]] = ("out", "in", "both")


@click.command()
@click.option("--queries", default=20_000, show_default=True)
@click.option("--facts", default=250, show_default=True, help="Facts a tenant and project.")
@click.option("--seed", default=1, show_default=True)
def main(queries: int, facts: int, seed: int) -> None:
    """Exit 1 when a single fact is out of scope or a single answer is not complete."""
    with tempfile.TemporaryDirectory(prefix="kn-leaks-", dir="/tmp") as folder:
        started = time.perf_counter()
        with open_runtime(Home(Path(folder))) as runtime:
            counts = asyncio.run(find_fact_leaks(runtime, queries, facts, seed))
    print(
        f"{counts['queries']:,} questions in {time.perf_counter() - started:.0f} s:"
        f" {counts['foreign']} facts out of scope, {counts['short']} answers not complete;"
        f" {counts['facts']:,} facts, {counts['empty']:,} empty scopes, {counts['changes']}"
        f" changes of permissions, {counts['retracted']} retractions"
    )
    sys.exit(1 if counts["foreign"] + counts["short"] else 0)


async def find_fact_leaks(
    runtime: Runtime, queries: int, facts: int, seed: int, prefix: str = ""
) -> Counter[str]:
    """Make a world, ask, and count what came back: ``foreign`` facts, ``short`` answers."""
    rng = random.Random(seed)
    world = _make(runtime, rng, facts, prefix)
    database = AsyncDatabase(runtime.urls.app_url)
    await database.open()
    reader = FactReader(database)
    counts: Counter[str] = Counter()
    try:
        while counts["queries"] < queries:
            # Permissions change between rounds, so that each answer has one truth.
            _change(runtime, world, rng, counts)
            _retract(runtime, world, rng, counts)
            await asyncio.gather(*(_ask(reader, world, rng, counts) for _ in range(CHANGE_EVERY)))
            if counts["queries"] % 4_000 == 0:
                print(f"  {counts['queries']:,}, {counts['foreign']} foreign", flush=True)
    finally:
        await database.close()
    return counts


def _make(runtime: Runtime, rng: random.Random, facts: int, prefix: str) -> World:
    world = World()
    for name in TENANTS:
        tenant = f"{prefix}{name}"
        for project in PROJECTS:
            catalogue.ensure_project(runtime.owner, tenant, project)
            world.add(tenant, project, _tell(runtime, rng, tenant, project, facts))
            for source in SOURCES:
                _set_source(runtime, world, tenant, project, source, _acl(rng))
        world.names[tenant] = _merge(runtime, rng, tenant)
        for _ in range(4):
            projects = rng.sample(PROJECTS, rng.randint(1, 3))
            groups = rng.sample(GROUPS, rng.randint(0, 2))
            client_id, _ = catalogue.create_client(
                runtime.owner, tenant, projects=projects, groups=groups, scopes=[READ]
            )
            world.clients.append(Client(Caller(client_id, tenant, (READ,)), projects, groups))
    return world


def _merge(runtime: Runtime, rng: random.Random, tenant: str) -> Names:
    """A few names for one another: two for a third, and that for a fourth; and one for another."""
    one, other, third, last, alone, into = rng.sample(NAMES, 6)
    merged = Names({one: third, other: third, third: last, alone: into})
    for name, stands_for in merged.into.items():
        entities.merge(
            runtime.app,
            tenant,
            namespace=MERGED_IN,
            name=name,
            into=stands_for,
            reason="one thing",
            by="operator",
        )
    return merged


def _retract(runtime: Runtime, world: World, rng: random.Random, counts: Counter[str]) -> None:
    """End the belief in a few facts, and note the time before."""
    tenant, project = rng.choice(list(world.facts))
    believed = [told for told in world.facts[tenant, project] if told.closed_at is None]
    ended = rng.sample(believed, 2)
    with runtime.app.tenant(tenant) as connection:
        now = connection.execute("select clock_timestamp() as now").fetchone()
    assert now is not None
    world.moments.append(now["now"])
    assert_facts(
        runtime.app,
        tenant,
        project,
        Batch([], [Retraction(told.fact_id) for told in ended]),
        writer=Writer("operator"),
        ontology=tenant_ontology(runtime.app, tenant),
    )
    for told in ended:
        with runtime.app.tenant(tenant) as connection:
            row = connection.execute(
                "select max(closed_at) as at from graph_facts where fact_id = %s", [told.fact_id]
            ).fetchone()
        assert row is not None
        told.closed_at = row["at"]
    counts["retracted"] += len(ended)


def _tell(
    runtime: Runtime, rng: random.Random, tenant: str, project: str, facts: int
) -> list[Told]:
    ontology = tenant_ontology(runtime.app, tenant)
    teller = Teller("operator", ontology)
    lines = [_line(rng) for _ in range(facts)]
    # Every source is known from the beginning, so that its ACL can be set.
    lines += [
        {**_line(rng), "sourceId": source, "sourceVersion": "1", "client": None}
        for source in SOURCES
    ]
    said = [read_fact({k: v for k, v in line.items() if v is not None}, teller) for line in lines]
    written = assert_facts(
        runtime.app, tenant, project, Batch(said), writer=Writer("operator"), ontology=ontology
    )
    latest: dict[uuid.UUID, Told] = {}
    for key, each in zip(written.fact_ids, said, strict=True):
        known = latest.get(key)
        if known is None or _told_at(each) > _told_at(known.said):
            latest[key] = Told(key, each)
    return list(latest.values())


def _told_at(said: Statement) -> tuple[datetime, float]:
    assert said.observed_at is not None
    return said.observed_at, said.confidence


def _line(rng: random.Random) -> dict[str, Any]:
    begin = rng.randrange(2000, 2020)
    line: dict[str, Any] = {
        "subject": rng.choice(NAMES),
        "predicate": rng.choice(PREDICATES),
        "object": rng.choice(NAMES),
        "namespace": rng.choice(NAMESPACES),
        "domain": rng.choice(("architecture", "organization")),
        "validFrom": begin,
        "validTo": rng.choice((None, None, begin + rng.randrange(1, 10))),
        "observedAt": f"2020-01-01T00:00:{rng.randrange(60):02d}Z",
        "confidence": rng.choice((0.5, 1.0)),
    }
    acl = _acl(rng)
    if acl is not None:
        line["acl"] = list(acl)
    if rng.random() < 0.8:
        tier = rng.choice(("SourceFact", "InferredFact"))
        line |= {"sourceId": rng.choice(SOURCES), "sourceVersion": "1", "trustTier": tier}
    else:
        line |= {"client": "agent", "sessionId": "one"}
    return line


def _acl(rng: random.Random) -> Acl:
    entries = [f"group:{group}" for group in GROUPS]
    return rng.choice((None, None, None, (), tuple(sorted(rng.sample(entries, rng.randint(1, 2))))))


def _set_source(
    runtime: Runtime, world: World, tenant: str, project: str, source: str, acl: Acl
) -> None:
    with runtime.app.tenant(tenant) as connection:
        connection.execute(
            "update graph_sources set acl = %s where project_id = %s and source_id = %s",
            [None if acl is None else list(acl), project, source],
        )
    world.sources[tenant, project, source] = acl


def _change(runtime: Runtime, world: World, rng: random.Random, counts: Counter[str]) -> None:
    client = rng.choice(world.clients)
    if rng.random() < 0.5:
        client.groups = rng.sample(GROUPS, rng.randint(0, 2))
        client.projects = rng.sample(PROJECTS, rng.randint(1, 3))
        catalogue.change_client(
            runtime.owner,
            client.caller.client_id,
            groups=client.groups,
            projects=client.projects,
        )
    else:
        key = rng.choice(list(world.sources))
        _set_source(runtime, world, *key, _acl(rng))
    counts["changes"] += 1


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asks, of what time, as known when; and what of it the rule of scope admits."""

    reader: FactReader
    world: World
    rng: random.Random
    counts: Counter[str]
    client: Client
    project: str
    sieve: Sieve
    admitted: Admitted

    @property
    def names(self) -> Names:
        return self.world.names[self.client.caller.tenant_id]

    def count(self, found: list[uuid.UUID], wanted: set[uuid.UUID]) -> None:
        self.counts["facts"] += len(found)
        self.counts["foreign"] += len(set(found) - wanted)
        self.counts["short"] += len(found) != len(set(found)) or not wanted <= set(found)


async def _ask(reader: FactReader, world: World, rng: random.Random, counts: Counter[str]) -> None:
    client = rng.choice(world.clients)
    project = rng.choice(client.projects)
    as_of = datetime(rng.randrange(2000, 2030), 6, 1, tzinfo=UTC)
    known_at = rng.choice((None, rng.choice(world.moments)))
    admitted = world.admitted(client, project, as_of, known_at)
    counts["queries"] += 1
    counts["empty"] += not admitted
    sieve = Sieve(as_of=as_of, as_known_at=known_at)
    asking = Asking(reader, world, rng, counts, client, project, sieve, admitted)
    (ask,) = rng.choices((_query, _history, _expand, _paths), weights=(45, 10, 30, 15))
    await ask(asking)


async def _query(asking: Asking) -> None:
    rng = asking.rng
    subject = rng.choice((None, rng.choice(NAMES)))
    predicate = rng.choice((None, rng.choice(PREDICATES)))
    object_ = rng.choice((None, None, rng.choice(NAMES)))
    source = rng.choice((None, None, None, rng.choice(SOURCES)))
    question = FactQuestion(
        asking.project,
        subject=subject and subject.upper(),
        predicate=predicate,
        object=object_,
        sieve=replace(asking.sieve, source_id=source),
        limit=rng.choice((7, 100, 1000)),
    )
    names = asking.names
    wanted = {
        key
        for key, said in asking.admitted.items()
        if (subject is None or names.stands_for(subject, said, said.subject))
        and predicate in (None, said.predicate)
        and (object_ is None or names.stands_for(object_, said, said.object))
        and source in (None, said.provenance.source_id)
    }
    found: list[uuid.UUID] = []
    while True:
        answer = await asking.reader.query(asking.client.caller, question)
        found += [fact.fact_id for fact in answer.facts]
        contradicting = {other for fact in answer.facts for other in fact.contradicts}
        asking.counts["foreign"] += len(contradicting - asking.admitted.keys())
        if answer.next_cursor is None:
            break
        question = replace(question, cursor=answer.next_cursor)
    asking.count(found, wanted)


async def _history(asking: Asking) -> None:
    entity, names = asking.rng.choice(NAMES), asking.names
    question = HistoryQuestion(asking.project, entity)
    history = await asking.reader.history(asking.client.caller, question)
    wanted = {
        told.fact_id
        for told in asking.world.readable(asking.client, asking.project)
        if names.stands_for(entity, told.said, told.said.subject)
        or names.stands_for(entity, told.said, told.said.object)
    }
    asking.count(list({fact.fact_id for fact in history.facts}), wanted)


async def _expand(asking: Asking) -> None:
    start, hops = asking.rng.choice(NAMES), asking.rng.randint(1, 3)
    direction: Direction = asking.rng.choice(DIRECTIONS)
    question = Expansion(
        asking.project,
        (start,),
        hops=hops,
        direction=direction,
        sieve=asking.sieve,
        max_nodes=1000,
        max_edges=2000,
        fan_out=500,
    )
    graph = await expand(asking.reader, asking.client.caller, question)
    reach = Reach(asking.admitted, asking.names, start, direction)
    for _ in range(hops):
        reach.hop()
    edges = {(edge.source, edge.target, edge.fact.fact_id) for edge in graph.edges}
    asking.counts["short"] += len(edges) != len(graph.edges)
    asking.count(list({fact_id for _, _, fact_id in edges}), reach.facts)


async def _paths(asking: Asking) -> None:
    """Within one namespace: where names mean one thing, a way there is a way back."""
    source, target = asking.rng.sample(NAMES, 2)
    direction: Direction = asking.rng.choice(DIRECTIONS)
    namespace = asking.rng.choice(NAMESPACES)
    sieve = replace(asking.sieve, namespace=namespace)
    question = PathQuestion(asking.project, source, target, direction=direction, sieve=sieve)
    found = await find_paths(asking.reader, asking.client.caller, question)
    admitted = {key: said for key, said in asking.admitted.items() if said.namespace == namespace}
    names = asking.names if namespace == MERGED_IN else Names({})
    reach = Reach(admitted, names, source, direction, target)
    length = 0
    while reach.frontier and not reach.reaches(target) and length < question.max_hops:
        reach.hop()
        length += 1
    used = {edge.fact.fact_id for path in found.paths for edge in path}
    asking.counts["facts"] += len(used)
    asking.counts["foreign"] += len(used - admitted.keys())
    lengths = {len(path) for path in found.paths}
    asking.counts["short"] += lengths != ({length} if reach.reaches(target) else set())


if __name__ == "__main__":
    main()
