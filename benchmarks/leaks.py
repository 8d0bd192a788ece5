"""``make leaks``: randomised scoped queries over generated tenants, projects, ACLs, sources, revisions.

Every hit of every backend query must be one that the scope's rule admits, and (where the index
is exact) an answer must be complete: k items when so many are in scope, else all of them. The
world is made anew from ``--seed``; half of the generations are forced to search the graph
(``flatSearchCutoff: 0``), which is approximate: there a short answer is counted, not a fault.

    python -m benchmarks.leaks [--queries 100000] [--seed 1]
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
from knowledge.storage.backend import Hit, HybridSearch, ScopeFilter, Vector
from knowledge.storage.contract import admits
from knowledge.storage.weaviate.client import WeaviateAddress
from knowledge.storage.weaviate.index import WeaviateIndex
from knowledge.storage.weaviate.search import WeaviateSearch

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


@click.command()
@click.option("--queries", default=100_000, show_default=True)
@click.option("--items", default=1500, show_default=True, help="Items a tenant and index kind.")
@click.option("--seed", default=1, show_default=True)
def main(queries: int, items: int, seed: int) -> None:
    """Exit 1 when a single hit is out of scope or a single answer is short."""
    with tempfile.TemporaryDirectory(prefix="kn-leaks-", dir="/tmp") as folder:
        home = Home(Path(folder))
        home.prepare()
        with running_servers(home, load_settings(home, {})) as at:
            address = WeaviateAddress(at.weaviate_url, at.weaviate_grpc, at.weaviate_api_key)
            faults = asyncio.run(_run(address, queries, items, seed))
    sys.exit(1 if faults else 0)


async def _run(address: WeaviateAddress, queries: int, items: int, seed: int) -> int:
    rng = random.Random(seed)
    worlds = []
    for cutoff in (40_000, 0):
        index = WeaviateIndex(
            address, installation_id=f"leaks{cutoff:07}", flat_search_cutoff=cutoff
        )
        worlds += [_world(rng, index, tenant, items, cutoff > items) for tenant in TENANTS]
        index.close()
    search = WeaviateSearch(address)
    counts: Counter[str] = Counter()
    started = time.perf_counter()
    numbers = iter(range(queries))
    try:
        await asyncio.gather(
            *(_ask(search, worlds, rng, numbers, counts, queries) for _ in range(CONCURRENCY))
        )
    finally:
        await search.close()
    seconds = time.perf_counter() - started
    print(
        f"{counts['queries']:,} scoped queries in {seconds:.0f} s:"
        f" {counts['foreign']} hits out of scope, {counts['short']} exact answers short"
        f" ({counts['graph short']} on the approximate graph);"
        f" {counts['hits']:,} hits, {counts['empty']:,} empty scopes,"
        f" {counts['narrow']:,} scopes of under 0.5 %"
    )
    return counts["foreign"] + counts["short"]


def _world(
    rng: random.Random, index: WeaviateIndex, tenant: str, items: int, is_exact: bool
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
            hits = await search.bm25(world.generation, terms, scope, limit, with_vectors=False)
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
