"""Randomised questions about facts over generated tenants, projects, sources and ACLs.

Every fact that comes back must be one that the rule of scope admits, and answers must be complete:
queries give exactly the admitted facts, expansions exactly what a walk over admitted facts reaches,
paths are as short as over admitted facts alone. All tenants use the same names. While questions
are asked, ACLs of sources, groups and projects of clients change; the next answer must follow.

    python -m benchmarks.fact_leaks [--queries 20000] [--seed 1]
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from knowledge.graph.asserting import Batch, assert_facts
from knowledge.graph.expanding import expand, find_paths
from knowledge.graph.ontologies import tenant_ontology
from knowledge.graph.querying import FactReader
from knowledge.graph.questions import Direction, Expansion, FactQuestion, PathQuestion, Sieve
from knowledge.graph.reading import Teller, read_fact
from knowledge.graph.session import Writer
from knowledge.home import Home
from knowledge.model.fact import Statement
from knowledge.model.scope import READ, Caller
from knowledge.runtime import Runtime, open_runtime
from knowledge.storage.postgres import catalogue
from knowledge.storage.postgres.database import AsyncDatabase

TENANTS: Final = ("acme", "acme-eu", "globex")
PROJECTS: Final = ("p1", "p1-eu", "p2")
SOURCES: Final = ("s1", "s1-private", "S1", "repo:acme", "repo:acme/eu", "EU acme")
GROUPS: Final = ("eng", "eng-eu", "hr")
NAMES: Final = tuple(f"Node {number}" for number in range(24))
FUNCTIONAL: Final = "OWNED_BY"
PREDICATES: Final = ("LINKS_TO", "NAMES", FUNCTIONAL)
CHANGE_EVERY: Final = 40
"""Questions, asked at once."""
DIRECTIONS: Final[tuple[Direction, ...]] = ("out", "in", "both")

Acl = tuple[str, ...] | None


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
        " changes of permissions"
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
        for _ in range(4):
            projects = rng.sample(PROJECTS, rng.randint(1, 3))
            groups = rng.sample(GROUPS, rng.randint(0, 2))
            client_id, _ = catalogue.create_client(
                runtime.owner, tenant, projects=projects, groups=groups, scopes=[READ]
            )
            world.clients.append(_Client(Caller(client_id, tenant, (READ,)), projects, groups))
    return world


def _tell(
    runtime: Runtime, rng: random.Random, tenant: str, project: str, facts: int
) -> list[_Told]:
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
    latest: dict[uuid.UUID, _Told] = {}
    for key, each in zip(written.fact_ids, said, strict=True):
        known = latest.get(key)
        if known is None or _told_at(each) > _told_at(known.said):
            latest[key] = _Told(key, each)
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


async def _ask(reader: FactReader, world: World, rng: random.Random, counts: Counter[str]) -> None:
    client = rng.choice(world.clients)
    project = rng.choice(client.projects)
    as_of = datetime(rng.randrange(2000, 2030), 6, 1, tzinfo=UTC)
    admitted = world.admitted(client, project, as_of)
    counts["queries"] += 1
    counts["empty"] += not admitted
    kind = rng.random()
    if kind < 0.5:
        await _query(reader, client, project, as_of, admitted, rng, counts)
    elif kind < 0.85:
        await _expand(reader, client, project, as_of, admitted, rng, counts)
    else:
        await _paths(reader, client, project, as_of, admitted, rng, counts)


async def _query(
    reader: FactReader,
    client: _Client,
    project: str,
    as_of: datetime,
    admitted: Mapping[uuid.UUID, Statement],
    rng: random.Random,
    counts: Counter[str],
) -> None:
    subject = rng.choice((None, rng.choice(NAMES)))
    predicate = rng.choice((None, rng.choice(PREDICATES)))
    object_ = rng.choice((None, None, rng.choice(NAMES)))
    source = rng.choice((None, None, None, rng.choice(SOURCES)))
    question = FactQuestion(
        project,
        subject=subject and subject.upper(),
        predicate=predicate,
        object=object_,
        sieve=Sieve(as_of=as_of, source_id=source),
        limit=rng.choice((7, 100, 1000)),
    )
    wanted = {
        key
        for key, said in admitted.items()
        if subject in (None, said.subject)
        and predicate in (None, said.predicate)
        and object_ in (None, said.object)
        and source in (None, said.provenance.source_id)
    }
    found: list[uuid.UUID] = []
    while True:
        answer = await reader.query(client.caller, question)
        found += [fact.fact_id for fact in answer.facts]
        foreign = {other for fact in answer.facts for other in fact.contradicts} - admitted.keys()
        counts["foreign"] += len(foreign)
        if answer.next_cursor is None:
            break
        question = replace(question, cursor=answer.next_cursor)
    _count(counts, found, wanted)


async def _expand(
    reader: FactReader,
    client: _Client,
    project: str,
    as_of: datetime,
    admitted: Mapping[uuid.UUID, Statement],
    rng: random.Random,
    counts: Counter[str],
) -> None:
    start, hops = rng.choice(NAMES), rng.randint(1, 3)
    direction: Direction = rng.choice(DIRECTIONS)
    question = Expansion(
        project,
        (start,),
        hops=hops,
        direction=direction,
        sieve=Sieve(as_of=as_of),
        max_nodes=1000,
        max_edges=2000,
        fan_out=500,
    )
    graph = await expand(reader, client.caller, question)
    around = _around(admitted, direction)
    frontier, reached, wanted = {start}, {start}, set()
    for _ in range(hops):
        edges = [edge for node in frontier for edge in around.get(node, ())]
        wanted |= {key for _, key in edges}
        frontier = {node for node, _ in edges} - reached
        reached |= frontier
    _count(counts, [edge.fact.fact_id for edge in graph.edges], wanted)


async def _paths(
    reader: FactReader,
    client: _Client,
    project: str,
    as_of: datetime,
    admitted: Mapping[uuid.UUID, Statement],
    rng: random.Random,
    counts: Counter[str],
) -> None:
    source, target = rng.sample(NAMES, 2)
    direction: Direction = rng.choice(DIRECTIONS)
    question = PathQuestion(project, source, target, direction=direction, sieve=Sieve(as_of=as_of))
    found = await find_paths(reader, client.caller, question)
    around = _around(admitted, direction)
    reached, frontier, length = {source}, {source}, 0
    while frontier and target not in reached and length < question.max_hops:
        frontier = {node for key in frontier for node, _ in around.get(key, ())} - reached
        reached |= frontier
        length += 1
    used = {edge.fact.fact_id for path in found.paths for edge in path}
    counts["facts"] += len(used)
    counts["foreign"] += len(used - admitted.keys())
    lengths = {len(path) for path in found.paths}
    counts["short"] += lengths != ({length} if target in reached else set())


def _around(
    admitted: Mapping[uuid.UUID, Statement], direction: str
) -> Mapping[str, list[tuple[str, uuid.UUID]]]:
    around: defaultdict[str, list[tuple[str, uuid.UUID]]] = defaultdict(list)
    for key, said in admitted.items():
        if direction != "in":
            around[said.subject].append((said.object, key))
        if direction != "out":
            around[said.object].append((said.subject, key))
    return around


def _count(counts: Counter[str], found: list[uuid.UUID], wanted: set[uuid.UUID]) -> None:
    counts["facts"] += len(found)
    counts["foreign"] += len(set(found) - wanted)
    counts["short"] += len(found) != len(set(found)) or not wanted <= set(found)


if __name__ == "__main__":
    main()
