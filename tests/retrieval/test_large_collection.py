"""Where common words stand in too many chunks to read: what the PostgreSQL legs still find."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

import psycopg
import pytest

from knowledge.runtime import Runtime
from knowledge.storage.backend import Hit, ScopeFilter
from knowledge.storage.postgres import retrieval
from knowledge.storage.postgres.database import AsyncDatabase
from tests.publication import collection_of

CHUNKS = 20_000
SCOPE = ScopeFilter("large", "p1", ("s1",), (), 1, 1)
WEIGHTS = {"data": 0.1, "value": 0.7, "third": 1.1, "w7": 7.0}
"""Of words in every chunk, in every second, in every third, and in 20."""

Search = Callable[..., Awaitable[list[Hit]]]


@pytest.fixture(scope="module")
def collection(runtime: Runtime) -> uuid.UUID:
    made = collection_of(runtime, SCOPE.tenant_id).collection_id
    with runtime.owner.transaction() as connection:
        connection.execute("select set_config('knowledge.tenant', %s, true)", [SCOPE.tenant_id])
        connection.execute(
            "insert into chunk_versions (object_id, tenant_id, collection_id, chunk_id, from_rev,"
            " acl_rev, snapshot_id, source_id, project_id, path, anchor, title, text, kind, tags,"
            " content_hash, text_hash, words, title_words, terms)"
            " select gen_random_uuid(), 'large', %(c)s, gen_random_uuid(), 1, 1,"
            " gen_random_uuid(), 's1', 'p1', 'src/' || n, '', '', 't', 'document',"
            " case when n %% 5000 = 7 then array['few'] else '{}' end"
            " || case when n %% 400 = 7 then array['fifty'] else '{}' end, '', '', '1 x=1 ', '0 ',"
            " array['data', 'w' || n %% 1000]"
            " || case when n %% 2 = 0 then array['value'] else '{}' end"
            " || case when n %% 3 = 0 then array['third'] else '{}' end"
            " from generate_series(1, %(n)s) n",
            {"c": made, "n": CHUNKS},
        )
        connection.execute(
            "insert into metadata_items (object_id, tenant_id, collection_id, terms)"
            " select object_id, tenant_id, collection_id, terms from chunk_versions"
            " where collection_id = %s",
            [made],
        )
        connection.execute("select freeze_statistics(%s, 1)", [made])
    with psycopg.connect(runtime.urls.owner_url, autocommit=True) as connection:
        connection.execute("vacuum analyze knowledge.chunk_versions, knowledge.metadata_items")
    return made


def _scores(
    runtime: Runtime,
    collection: uuid.UUID,
    search: Search,
    weights: Mapping[str, float],
    limit: int = 60,
    scope: ScopeFilter = SCOPE,
) -> list[float]:
    async def run() -> list[Hit]:
        database = AsyncDatabase(runtime.urls.app_url)
        await database.open()
        try:
            return await search(database, collection, scope, weights, limit)
        finally:
            await database.close()

    hits = asyncio.run(run())
    assert len({hit.object_id for hit in hits}) == len(hits)
    return [round(hit.score, 6) for hit in hits]


def test_the_rare_word_comes_first_and_chunks_of_several_common_words_follow(
    runtime: Runtime, collection: uuid.UUID
) -> None:
    scores = _scores(runtime, collection, retrieval.search_full_text, WEIGHTS)
    assert len(scores) == 60
    assert scores == sorted(scores, reverse=True)
    assert sum(score > 7 for score in scores) == 20
    # The best of the others hold all three common words.
    assert scores[20:] == [1.9] * 40


@pytest.mark.parametrize("word", ["data", "value", "third"])
def test_a_single_common_word_is_answered(
    runtime: Runtime, collection: uuid.UUID, word: str
) -> None:
    for search in (retrieval.search_full_text, retrieval.search_metadata):
        weights = {word: 1.0}
        assert _scores(runtime, collection, search, weights, 30) == [1.0] * 30


def test_a_filter_that_admits_few_still_finds_them(runtime: Runtime, collection: uuid.UUID) -> None:
    few = replace(SCOPE, tags=("few",))
    for search in (retrieval.search_full_text, retrieval.search_metadata):
        assert len(_scores(runtime, collection, search, {"data": 1.0}, scope=few)) == 4
        rare = _scores(runtime, collection, search, {"data": 0.1, "w7": 7.0}, scope=few)
        assert len(rare) == 4


@pytest.mark.parametrize("others", [{}, {"absent": 9.0}, {"w7": 7.0}])
def test_what_holds_one_common_word_is_found_beside_what_holds_a_rarer_one(
    runtime: Runtime, collection: uuid.UUID, others: dict[str, float]
) -> None:
    # Of the fifty, the index looks up the 16 that hold "third"; "data" stands in all of them.
    fifty = replace(SCOPE, tags=("fifty",))
    weights = {"data": 0.1, "third": 1.1, **others}
    scores = _scores(runtime, collection, retrieval.search_full_text, weights, scope=fifty)
    assert len(scores) == 50
    assert scores == sorted(scores, reverse=True)
    assert sum(1.1 < score % 7 < 1.3 for score in scores) == 16


def test_metadata_hits_hold_most_of_the_query(runtime: Runtime, collection: uuid.UUID) -> None:
    search = retrieval.search_metadata
    assert _scores(runtime, collection, search, {**WEIGHTS, "absent": 9.0}) == []
    equal = dict.fromkeys(("data", "value", "third", "absent"), 1.0)
    assert set(_scores(runtime, collection, search, equal)) == {0.75}
    assert len(_scores(runtime, collection, search, WEIGHTS)) == 20
