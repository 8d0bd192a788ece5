"""Every filter gives the same chunks in every leg: those that plain Python says, whole sets."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from knowledge.home import Home
from knowledge.model.chunk import Chunk, ChunkVersion
from knowledge.model.collection import Collection
from knowledge.model.identity import chunk_id, content_hash, object_id, text_hash
from knowledge.model.revision import Generation
from knowledge.runtime import Runtime
from knowledge.storage.backend import Hit, HybridSearch, ScopeFilter
from knowledge.storage.contract import admits
from knowledge.storage.postgres import chunk_versions, clock, metadata, retrieval
from knowledge.storage.postgres.database import AsyncDatabase
from knowledge.text.analysis import analyse
from tests.publication import collection_of
from tests.storage.conftest import BACKENDS, Backend

SOURCES = ("s1", "s 1", "S1", "s%", "s_1")
PATHS = (
    *("a%b/x", "a_b/x", "aXb/x", "a\\b/x", "a\\%b", "a b/c", "a/b", "A/b", "a.b", "a'b", 'a"b'),
    *("ä/ö", "a\u0308/x", "\u00e9", "e\u0301", "日本/語", "😀/x", "*/x", "a*b/?", "-/x", "~/x"),
)
PREFIXES = (
    *("a", "a%", "a_", "a\\", "a\\%", "a ", "a/", "A", "a'", 'a"', "ä", "a\u0308", "\u00e9"),
    *("e", "日", "日本/", "😀", "*", "a*", "%", "_", "\\", "a%b/x", "a%b/xy", "zz"),
)
LANGUAGES = (None, "python", "Python", "py thon", "py")
TAGS = ("a tag", "a", "tag", "adr", "ADR", "a%", "a_b", "ä", "日本", "a,b", '"')
MOMENT = datetime(2026, 5, 1, tzinfo=UTC)
STEP = timedelta(milliseconds=1)
DATES = (None, MOMENT, MOMENT - STEP, MOMENT + STEP, MOMENT - timedelta(days=9000))
ACLS = (None, (), ("group:eng",), ("group:ops", "group:eng"), ("group:ops",))
COUNT = 150
REVISION = 1


def _chunks() -> list[tuple[str, Chunk]]:
    chance = random.Random(4)
    return [
        (
            chance.choice(SOURCES),
            Chunk(
                path=PATHS[number % len(PATHS)],
                anchor=str(number),
                title=f"Lease {number}",
                text="it is renewed",
                kind=chance.choice(("document", "code")),
                language=chance.choice(LANGUAGES),
                tags=tuple(chance.sample(TAGS, chance.randint(0, 4))),
                updated_at=chance.choice(DATES),
                acl=chance.choice((None, *ACLS)),
            ),
        )
        for number in range(COUNT)
    ]


def _narrowings() -> Iterator[dict[str, Any]]:
    """Each filter alone with every value, then combinations."""
    values: dict[str, tuple[Any, ...]] = {
        "path_prefix": PREFIXES,
        "kind": ("document", "code"),
        "language": (*LANGUAGES[1:], "PYTHON", "python "),
        "tags": (
            *((tag,) for tag in TAGS),
            ("a", "tag"),
            ("adr", "a tag", "a"),
            ("a", "b"),
            ("A",),
        ),
        "updated_after": (*DATES[1:], MOMENT + timedelta(days=9000)),
        "sources": (*((source,) for source in SOURCES), ("s1", "s%"), ("s",), ()),
        "acl": (("user:x",), ("group:eng",), ("group:en",), ("group:ops", "group:eng")),
    }
    for field, options in values.items():
        for option in options:
            yield {field: option}
    chance = random.Random(5)
    for _ in range(60):
        fields = chance.sample(sorted(values), chance.randint(2, 4))
        yield {field: chance.choice(values[field][:7]) for field in fields}


NARROWINGS = list(_narrowings())


@dataclass(frozen=True)
class Corpus:
    """The chunk versions, where they lie, and the widest scope that is asked."""

    collection: Collection
    versions: list[ChunkVersion]
    scope: ScopeFilter


@pytest.fixture(scope="module")
def corpus(runtime: Runtime) -> Corpus:
    """All chunks hold "lease" in the title, which the text index and the metadata index take."""
    tenant = f"filters-{uuid.uuid4().hex[:8]}"  # made anew for each backend
    collection = collection_of(runtime, tenant)
    openings = [_opening(collection, source, chunk) for source, chunk in _chunks()]
    with runtime.app.tenant(tenant) as connection:
        clock.open_versions(connection, collection, REVISION, openings)
        clock.advance(connection, collection, REVISION, [])
        connection.execute("select freeze_statistics(%s, 1)", [collection.collection_id])
    batches = chunk_versions.versions_visible(runtime.app, collection, REVISION)
    versions = [version for batch in batches for version in batch]
    with runtime.app.tenant(tenant) as connection:
        metadata.upsert(connection, collection, versions)
    scope = ScopeFilter(tenant, "p1", SOURCES, ("group:eng", "user:x"), REVISION, REVISION)
    return Corpus(collection, versions, scope)


def _opening(collection: Collection, source: str, chunk: Chunk) -> clock.Opening:
    made = chunk_id(collection.tenant_id, collection.slug, source, chunk.path, chunk.anchor)
    title = analyse(chunk.title)
    return clock.Opening(
        object_id=object_id(collection.collection_id, made, REVISION),
        chunk_id=made,
        snapshot_id=uuid.UUID(int=1),
        source_id=source,
        project_id="p1",
        chunk=chunk,
        content_hash=content_hash(chunk),
        text_hash=text_hash(chunk),
        terms=[*title, *analyse(chunk.text)],
        title_terms=title,
    )


Leg = Callable[[ScopeFilter], Awaitable[list[Hit]]]


def _mismatches(corpus: Corpus, found: list[tuple[dict[str, Any], set[uuid.UUID]]]) -> list[Any]:
    by_id = {version.object_id: version for version in corpus.versions}
    wrong = []
    for narrowing, ids in found:
        scope = replace(corpus.scope, **narrowing)
        expected = {key for key, version in by_id.items() if admits(scope, version)}
        if ids != expected:
            extra, lacking = ids - expected, expected - ids
            wrong.append(
                (narrowing, *([by_id[k].chunk for k in part] for part in (extra, lacking)))
            )
    return wrong


async def _ask(corpus: Corpus, leg: Leg) -> list[tuple[dict[str, Any], set[uuid.UUID]]]:
    return [
        (narrowing, {hit.object_id for hit in await leg(replace(corpus.scope, **narrowing))})
        for narrowing in NARROWINGS
    ]


def test_the_filters_tell_chunks_apart(corpus: Corpus) -> None:
    """The reference itself: nearly every filter admits some chunks and leaves out others."""
    counts = [
        sum(admits(replace(corpus.scope, **narrowing), v) for v in corpus.versions)
        for narrowing in NARROWINGS
    ]
    assert len(corpus.versions) == COUNT
    assert sum(0 < count < COUNT for count in counts) > 0.6 * len(counts)


@pytest.mark.parametrize("search", ["full_text", "metadata"])
def test_postgres_finds_what_each_filter_admits(
    runtime: Runtime, corpus: Corpus, search: str
) -> None:
    async def run() -> list[tuple[dict[str, Any], set[uuid.UUID]]]:
        database = AsyncDatabase(runtime.urls.app_url)
        await database.open()
        function = {
            "full_text": retrieval.search_full_text,
            "metadata": retrieval.search_metadata,
        }[search]
        collection, weights = corpus.collection.collection_id, {"leas": 1.0}
        try:
            return await _ask(
                corpus, lambda scope: function(database, collection, scope, weights, COUNT)
            )
        finally:
            await database.close()

    assert _mismatches(corpus, asyncio.run(run())) == []


@pytest.fixture(scope="module", params=BACKENDS)
def filled(
    request: pytest.FixtureRequest, home: Home, runtime: Runtime, corpus: Corpus
) -> Iterator[tuple[Backend, Generation]]:
    """A backend that holds the corpus with vectors all alike."""
    backend = BACKENDS[request.param](home, runtime)
    generation = Generation(
        generation_id=uuid.uuid4(),
        tenant_id=corpus.collection.tenant_id,
        collection_id=corpus.collection.collection_id,
        backend=backend.index.name,
        class_name=backend.index.class_name("filters@1"),
        backend_tenant=uuid.uuid4().hex,
        embedding_profile="filters@1",
        created_rev=REVISION,
        applied_rev=0,
        state="building",
    )
    backend.index.create_generation(generation, with_vectors=True)
    vectors = np.full((COUNT, 4), 0.5, dtype=np.float32)
    backend.index.upsert(generation, corpus.versions, vectors)
    yield backend, generation
    backend.index.drop_generation(generation)
    backend.index.close()


def _near_vector(search: HybridSearch, generation: Generation) -> Leg:
    vector = np.full(4, 0.5, dtype=np.float32)
    return lambda scope: search.near_vector(generation, vector, scope, COUNT)


def _bm25(search: HybridSearch, generation: Generation) -> Leg:
    return lambda scope: search.bm25(
        generation, ["leas"], scope, COUNT, weights={"leas": 1.0}, with_vectors=False
    )


LEGS: Mapping[str, Callable[[HybridSearch, Generation], Leg]] = {
    "vector": _near_vector,
    "full_text": _bm25,
}


@pytest.mark.parametrize("leg", LEGS)
def test_the_index_finds_what_each_filter_admits(
    corpus: Corpus, filled: tuple[Backend, Generation], leg: str
) -> None:
    backend, generation = filled

    async def run() -> list[tuple[dict[str, Any], set[uuid.UUID]]]:
        async with backend.search() as search:
            return await _ask(corpus, LEGS[leg](search, generation))

    assert _mismatches(corpus, asyncio.run(run())) == []
