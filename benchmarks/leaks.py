"""``make leaks``: randomised scoped queries over generated tenants, projects, ACLs, sources, revisions.

Every hit of every backend query must be one that the scope's rule admits, and (where the index
is exact) an answer must be complete: k items when so many are in scope, else all of them. The
world is made anew from ``--seed``. Half of Weaviate's generations are forced to search the graph
(``flatSearchCutoff: 0``), which is approximate: there a short answer is counted, not a fault.

    python -m benchmarks.leaks [--backend pgvector] [--queries 100000] [--seed 1]
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import numpy as np

from knowledge.home import Home
from knowledge.model.chunk import Chunk, ChunkVersion
from knowledge.model.revision import OPEN, VISIBILITY_MARGIN, Generation
from knowledge.settings import load_settings
from knowledge.stack.servers import running_servers
from knowledge.storage.backend import Hit, HybridIndex, HybridSearch, ScopeFilter, Vector
from knowledge.storage.backends import IndexLocation
from knowledge.storage.contract import admits
from knowledge.storage.postgres.bootstrap import prepare_database
from knowledge.storage.postgres.database import AsyncDatabase, Database

DIMENSION = 16
TENANTS = ("acme", "acme-eu", "globex")
PROJECTS = ("p1", "p1-eu", "p2")
SOURCES = ("s1", "s1 ", "s1-private", "repo:acme", "repo:acme/eu", "EU acme")
GROUPS = ("eng", "eng-eu", "hr", "all")
USERS = ("ada", "ada-eu", "bob")
WORDS = tuple(f"word{number}" for number in range(60))
PREFIXES = (None, None, None, "src/", "src/a*", "docs/x?y/", "src/ß")
HEAD = 12
CONCURRENCY = 8


@dataclass(frozen=True, slots=True)
class World:
    """One tenant's generation with everything that is in it."""

    generation: Generation
    is_exact: bool
    versions: tuple[ChunkVersion, ...]
    vectors: Vector


CUTOFFS = {"weaviate": (40_000, 0), "pgvector": (40_000,)}
"""Of each backend: at how many items it goes over from a scan to the graph, where it has one."""


@click.command()
@click.option("--backend", default="weaviate", show_default=True, type=click.Choice(list(CUTOFFS)))
@click.option("--queries", default=100_000, show_default=True)
@click.option("--items", default=1500, show_default=True, help="Items a tenant and index kind.")
@click.option("--seed", default=1, show_default=True)
def main(backend: str, queries: int, items: int, seed: int) -> None:
    """Exit 1 when a single hit is out of scope or a single answer is short."""
    with tempfile.TemporaryDirectory(prefix="kn-leaks-", dir="/tmp") as folder:
        home = Home(Path(folder))
        home.prepare()
        settings = load_settings(home, {"KNOWLEDGE_VECTOR_BACKEND": backend})
        with running_servers(home, settings) as at:
            app_url = prepare_database(at.database_admin_url, home.database_key).app_url
            locations = [
                IndexLocation(backend, f"leaks{cutoff:07}", cutoff, at.weaviate)
                for cutoff in CUTOFFS[backend]
            ]
            counts = asyncio.run(_run(locations, app_url, queries, items, seed))
    sys.exit(1 if counts["foreign"] + counts["short"] else 0)


async def _run(
    locations: Sequence[IndexLocation], app_url: str, queries: int, items: int, seed: int
) -> Counter[str]:
    writer, database = Database(app_url), AsyncDatabase(app_url)
    indexes = [(at.open_index(writer), at.flat_search_cutoff > items) for at in locations]
    await database.open()
    search = locations[0].open_search(database)
    started = time.perf_counter()
    try:
        counts = await find_leaks(indexes, search, queries, items, seed)
    finally:
        await search.close()
        await database.close()
        for index, _ in indexes:
            index.close()
        writer.close()
    print(
        f"{search.name}: {counts['queries']:,} scoped queries"
        f" in {time.perf_counter() - started:.0f} s:"
        f" {counts['foreign']} hits out of scope, {counts['short']} exact answers short"
        f" ({counts['graph short']} on the approximate graph);"
        f" {counts['hits']:,} hits, {counts['empty']:,} empty scopes,"
        f" {counts['narrow']:,} scopes of under 0.5 %"
    )
    return counts


async def find_leaks(
    indexes: Sequence[tuple[HybridIndex, bool]],
    search: HybridSearch,
    queries: int,
    items: int,
    seed: int,
) -> Counter[str]:
    """Fill a world in each index (with whether it is exact), ask, and count what came back.

    ``foreign`` are hits out of scope, ``short`` answers of an exact index that lack a hit.
    """
    rng = random.Random(seed)
    worlds = [
        _world(rng, index, tenant, items, is_exact)
        for index, is_exact in indexes
        for tenant in TENANTS
    ]
    counts: Counter[str] = Counter()
    numbers = iter(range(queries))
    await asyncio.gather(
        *(_ask(search, worlds, rng, numbers, counts, queries) for _ in range(CONCURRENCY))
    )
    return counts


def _world(
    rng: random.Random, index: HybridIndex, tenant: str, items: int, is_exact: bool
) -> World:
    generation = Generation(
        generation_id=uuid.UUID(int=rng.getrandbits(128)),
        tenant_id=tenant,
        collection_id=uuid.uuid4(),
        backend=index.name,
        class_name=index.class_name("leaks@1"),
        backend_tenant=uuid.UUID(int=rng.getrandbits(128)).hex,
        embedding_profile="leaks@1",
        created_rev=0,
        applied_rev=0,
        state="serving",
    )
    versions = tuple(_version(rng) for _ in range(items))
    numbers = np.random.default_rng(rng.getrandbits(32))
    vectors = numbers.standard_normal((items, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    index.create_generation(generation, with_vectors=True)
    index.upsert(generation, versions, vectors)
    return World(generation, is_exact, versions, vectors)


def _version(rng: random.Random) -> ChunkVersion:
    born = rng.randint(1, HEAD)
    folder = rng.choice(("src/", "src/a*", "src/ab", "docs/x?y/", "docs/xzy/", "src/ß"))
    chunk = Chunk(
        path=f"{folder}{rng.randint(0, 99)}.md",
        anchor="",
        title="",
        text="",
        kind=rng.choice(("document", "code")),
        language=rng.choice((None, "python", "go")),
        tags=tuple(rng.sample(("adr", "adr-old", "x y", "rare"), rng.choice((0, 1, 1, 2)))),
        acl=_acl(rng),
        updated_at=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=rng.randint(0, 300)),
    )
    return ChunkVersion(
        object_id=uuid.UUID(int=rng.getrandbits(128)),
        chunk_id=uuid.UUID(int=rng.getrandbits(128)),
        from_rev=born,
        to_rev=rng.choice((OPEN, OPEN, rng.randint(born + 1, HEAD + 3))),
        source_id=rng.choice(SOURCES),
        project_id=rng.choice(PROJECTS),
        chunk=chunk,
        analysed=" ".join(rng.choices(WORDS, k=rng.randint(3, 30))),
        text_hash=b"",
    )


def _acl(rng: random.Random) -> tuple[str, ...] | None:
    entries = [f"group:{group}" for group in GROUPS] + [f"user:{user}" for user in USERS]
    return rng.choice((None, None, (), tuple(sorted(rng.sample(entries, rng.randint(1, 3))))))


def _scope(rng: random.Random, tenant: str) -> ScopeFilter:
    groups = rng.sample(GROUPS, rng.randint(0, 3))
    revision = rng.randint(1, HEAD)
    scope = ScopeFilter(
        tenant_id=tenant,
        project_id=rng.choice(PROJECTS),
        sources=tuple(rng.sample(SOURCES, rng.randint(0, len(SOURCES)))),
        acl=(f"user:{rng.choice(USERS)}", *(f"group:{group}" for group in groups)),
        revision=revision,
        head=max(revision, HEAD - rng.randint(0, VISIBILITY_MARGIN - 3)),
    )
    if rng.random() < 0.4:
        scope = replace(scope, path_prefix=rng.choice(PREFIXES))
    if rng.random() < 0.2:
        scope = replace(scope, kind=rng.choice(("document", "code")))
    if rng.random() < 0.2:
        scope = replace(scope, language=rng.choice(("python", "go", "Python")))
    if rng.random() < 0.2:
        scope = replace(scope, tags=rng.choice((("adr",), ("adr-old",), ("x y",), ("rare", "adr"))))
    if rng.random() < 0.2:
        day = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=rng.randint(0, 320))
        scope = replace(scope, updated_after=day)
    return scope


async def _ask(
    search: HybridSearch,
    worlds: Sequence[World],
    rng: random.Random,
    numbers: object,
    counts: Counter[str],
    total: int,
) -> None:
    for number in numbers:  # type: ignore[attr-defined]
        world = rng.choice(worlds)
        scope = _scope(rng, world.generation.tenant_id)
        limit = rng.choice((1, 5, 20, 50))
        admitted = {v.object_id: i for i, v in enumerate(world.versions) if admits(scope, v)}
        if number % 2:
            terms = rng.sample(WORDS, rng.randint(1, 4))
            weights = dict.fromkeys(terms, 1.0)
            hits = await search.bm25(
                world.generation, terms, scope, limit, weights=weights, with_vectors=False
            )
            wanted = {
                key
                for key, i in admitted.items()
                if not set(terms).isdisjoint(world.versions[i].analysed.split())
            }
        else:
            vector = world.vectors[rng.randrange(len(world.vectors))]
            hits = await search.near_vector(world.generation, vector, scope, limit)
            wanted = set(admitted)
        _count(counts, hits, wanted, limit, world)
        if counts["queries"] % 10_000 == 0:
            print(f"  {counts['queries']:,} of {total:,}, {counts['foreign']} foreign", flush=True)


def _count(
    counts: Counter[str], hits: list[Hit], wanted: set[uuid.UUID], limit: int, world: World
) -> None:
    found = {hit.object_id for hit in hits}
    counts["queries"] += 1
    counts["hits"] += len(found)
    counts["foreign"] += len(found - wanted)
    counts["short" if world.is_exact else "graph short"] += len(found) < min(limit, len(wanted))
    counts["empty"] += not wanted
    counts["narrow"] += 0 < len(wanted) < len(world.versions) * 0.005


if __name__ == "__main__":
    main()
