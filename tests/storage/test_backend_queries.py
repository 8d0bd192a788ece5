"""What every backend of the hybrid index finds, and when it is not asked."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pytest

from knowledge.errors import IndexUnavailable, NoTenant
from knowledge.model.revision import Generation
from knowledge.storage.backend import HybridIndex, HybridSearch
from knowledge.storage.guarded import GuardedSearch
from knowledge.storage.pgvector.search import PgvectorSearch
from knowledge.storage.postgres.database import AsyncDatabase
from knowledge.storage.weaviate.address import WeaviateAddress
from knowledge.storage.weaviate.search import WeaviateSearch
from tests.storage.conftest import Backend
from tests.storage.port import (
    SCOPE,
    ask,
    near,
    numbers,
    vectors_of,
    version_of,
    versions_of,
    worded,
)


def test_the_nearest_come_first_and_score_their_cosine(
    backend: Backend, index: HybridIndex, made: Callable[..., Generation]
) -> None:
    generation, vectors = made(), vectors_of(5)
    index.upsert(generation, versions_of(5), vectors)
    hits = near(backend, generation, vectors[0])
    assert numbers(hits) == [1, 2, 3, 4, 5]
    np.testing.assert_allclose([hit.score for hit in hits], vectors @ vectors[0], atol=1e-5)


def test_a_generation_without_vectors_is_found_by_words_alone(
    backend: Backend, index: HybridIndex, made: Callable[..., Generation]
) -> None:
    generation = made(None)
    index.upsert(generation, versions_of(2), None)
    assert numbers(worded(backend, generation, ["lease"])) == [1, 2]
    assert [item.vector for item in index.items(generation, with_vectors=True)] == [None, None]
    ids = [uuid.UUID(int=1)]
    assert ask(backend, lambda s: s.vectors(generation, ids, SCOPE)) == {}


def test_any_word_is_enough_and_more_of_them_rank_higher(
    backend: Backend, index: HybridIndex, made: Callable[..., Generation]
) -> None:
    generation = made()
    texts = ["lease owner", "owner", "clock", "lease owner clock"]
    versions = [version_of(number, text) for number, text in enumerate(texts, start=1)]
    index.upsert(generation, versions, vectors_of(4))
    hits = worded(backend, generation, ["lease", "clock"])
    assert numbers(hits)[0] == 4
    assert sorted(numbers(hits)) == [1, 3, 4]
    assert all(hit.score > 0 for hit in hits)
    assert len(worded(backend, generation, ["lease", "clock"], limit=2)) == 2
    assert worded(backend, generation, ["absent"]) == []
    assert worded(backend, generation, []) == []


def test_a_word_that_is_asked_twice_weighs_twice(
    backend: Backend, index: HybridIndex, made: Callable[..., Generation]
) -> None:
    generation = made()
    pair = [version_of(1, "lease filler"), version_of(2, "clock filler")]
    index.upsert(generation, pair, vectors_of(2))
    assert numbers(worded(backend, generation, ["lease", "clock", "clock"])) == [2, 1]
    assert numbers(worded(backend, generation, ["lease", "lease", "clock"])) == [1, 2]


def test_found_items_bring_their_vectors_when_asked(
    backend: Backend, index: HybridIndex, made: Callable[..., Generation]
) -> None:
    generation, vectors = made(), vectors_of(3)
    index.upsert(generation, versions_of(3), vectors)
    [first, *_] = worded(backend, generation, ["lease"], with_vectors=True)
    assert first.vector is not None
    assert first.vector.dtype == np.float32
    np.testing.assert_allclose(first.vector, vectors[first.object_id.int - 1])
    assert all(hit.vector is None for hit in worded(backend, generation, ["lease"]))


def test_vectors_of_items_out_of_scope_are_left_out(
    backend: Backend, index: HybridIndex, made: Callable[..., Generation]
) -> None:
    generation, vectors = made(), vectors_of(4)
    versions = [
        version_of(1),
        version_of(2, acl=("group:b",)),
        version_of(3, to_rev=5),
        version_of(4),
    ]
    index.upsert(generation, versions, vectors)
    ids = [uuid.UUID(int=number) for number in (1, 2, 3, 77)]
    found = ask(backend, lambda s: s.vectors(generation, ids, SCOPE))
    assert list(found) == [uuid.UUID(int=1)]
    np.testing.assert_allclose(found[uuid.UUID(int=1)], vectors[0])
    assert ask(backend, lambda s: s.vectors(generation, [], SCOPE)) == {}


def test_a_query_without_a_tenant_or_a_source_is_not_answered(
    backend: Backend, index: HybridIndex, made: Callable[..., Generation]
) -> None:
    generation = made()
    index.upsert(generation, versions_of(1), vectors_of(1))
    with pytest.raises(NoTenant):
        near(backend, generation, vectors_of(1)[0], replace(SCOPE, tenant_id=""))
    assert near(backend, generation, vectors_of(1)[0], replace(SCOPE, sources=())) == []


# --- what keeps a backend from being asked --------------------------------------------------


@dataclass(frozen=True)
class NeverAway:
    """Why a backend has no server that could be away."""

    reason: str


AWAY: Mapping[str, Callable[[AsyncDatabase], HybridSearch] | NeverAway] = {
    "weaviate": lambda _database: WeaviateSearch(
        WeaviateAddress("http://127.0.0.1:1", "127.0.0.1:2")
    ),
    "pgvector": PgvectorSearch,
    "memory": NeverAway("it lives in this process"),
}


def test_a_generation_of_another_backend_is_never_asked(
    backend: Backend, made: Callable[..., Generation]
) -> None:
    generation = replace(made(), backend="elsewhere")

    async def asked(search: HybridSearch) -> None:
        guarded = GuardedSearch(search)
        guarded.is_proven = True
        await guarded.near_vector(generation, vectors_of(1)[0], SCOPE, 1)

    with pytest.raises(IndexUnavailable, match=r"is indexed in elsewhere.*knowledge rebuild"):
        ask(backend, asked)


def test_a_backend_whose_server_is_away_says_so_as_an_index(
    index: HybridIndex, made: Callable[..., Generation]
) -> None:
    search = AWAY[index.name]
    if isinstance(search, NeverAway):
        assert search.reason
        return

    async def asked() -> None:
        database = AsyncDatabase("postgresql://nobody@127.0.0.1:1/none")
        await database.open()
        opened = search(database)
        try:
            await opened.near_vector(made(), vectors_of(1)[0], SCOPE, 1)
        finally:
            await opened.close()
            await database.close()

    with pytest.raises(IndexUnavailable):
        asyncio.run(asked())
