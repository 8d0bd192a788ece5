"""What an answer says: citations, order, leg states, its record."""

from __future__ import annotations

import random
import uuid
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from knowledge.model.collection import Collection
from knowledge.model.scope import ADMIN, READ
from knowledge.runtime import Runtime
from knowledge.stack.process import wait_until
from knowledge.storage.postgres import catalogue
from retrieval_api.docs import openapi
from tests.publication import collection_of, index, publish_documents
from tests.retrieval_api.conftest import CallerFactory
from tests.retrieval_api.service import BASE, Caller, assert_problem, legs

WORDS = [
    "lease",
    "clock",
    "token",
    "switch",
    "tenant",
    "scope",
    "index",
    "revision",
    "pin",
    "chunk",
    "source",
    "vector",
]


def _documents(count: int, seed: int) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    return [
        {
            "id": f"notes/{number:03}.md",
            "title": " ".join(chance.choices(WORDS, k=2)),
            "text": " ".join(chance.choices(WORDS, k=chance.randint(3, 40))) + f" n{number}",
            "tags": [chance.choice(WORDS)],
        }
        for number in range(count)
    ]


@pytest.fixture(scope="module")
def notes(runtime: Runtime) -> Collection:
    """301 documents of twelve words, so that every query has many hits."""
    collection = collection_of(runtime, "answers")
    zebra = {"id": "notes/zebra.md", "text": "one zebra"}
    publish_documents(runtime, collection, [*_documents(300, 1), zebra], source="notes")
    return collection


@pytest.fixture(scope="module")
def reader(notes: Collection, caller_factory: CallerFactory) -> Caller:
    return caller_factory("answers", groups=["eng"])


def _citations(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [candidate["citation"] for candidate in answer["candidates"]]


def test_every_candidate_is_fully_cited_at_the_revision_it_was_read(
    runtime: Runtime, tenant: str, caller_factory: CallerFactory
) -> None:
    collection = collection_of(runtime, tenant)
    for text in ("a lease is held", "a lease is renewed"):
        publish_documents(
            runtime, collection, [{"id": "a.md", "text": text}, {"id": "b", "text": "lease"}]
        )
    reader = caller_factory(tenant)
    now = reader.search("lease")
    before = reader.search("lease", pinnedRevisions={"docs": 1})
    for answer, revision in ((now, 2), (before, 1)):
        for citation in _citations(answer):
            assert uuid.UUID(citation["chunkId"])
            assert citation["sourceId"] == "s1"
            assert citation["sourceVersion"].startswith("sha256:")
            assert citation["collection"] == "docs"
            assert citation["indexRevision"] == revision
            assert citation["embeddingProfileVersion"] is None
            assert citation["trustTier"] == "SourceFact"
            assert citation["lines"] is None
            assert citation["signals"]["fullText"] > 0
    texts = [{c["citation"]["path"]: c["text"] for c in a["candidates"]} for a in (before, now)]
    assert [t["a.md"] for t in texts] == ["a lease is held", "a lease is renewed"]
    versions = [{c["sourceVersion"] for c in _citations(a)} for a in (before, now)]
    assert all(len(found) == 1 for found in versions)
    assert versions[0] != versions[1]
    same = [{c["path"]: c["chunkId"] for c in _citations(a)} for a in (before, now)]
    assert same[0] == same[1]


@pytest.mark.parametrize("fields", [{}, {"explain": True}, {"rerank": "none", "legs": ["graph"]}])
def test_an_answer_is_valid_under_the_documented_schema(
    reader: Caller, fields: dict[str, Any]
) -> None:
    schema = {"$ref": "#/components/schemas/Answer", "components": openapi()["components"]}
    Draft202012Validator(schema).validate(reader.search("lease clock", **fields))


def test_the_scope_of_the_answer_is_the_callers(reader: Caller) -> None:
    assert reader.search("lease")["scope"] == {
        "tenantId": "answers",
        "projectId": "p1",
        "principal": reader.client_id,
        "groups": ["eng"],
    }


@pytest.mark.parametrize("fields", [{}, {"rerank": "none"}, {"rerank": "reranker"}])
def test_scores_lie_in_0_to_1_and_never_rise(reader: Caller, fields: dict[str, Any]) -> None:
    for query in ("lease", "lease clock token", "n7", "notes 013", "switch the tenant's scope"):
        scores = [c["score"] for c in _citations(reader.search(query, topK=100, **fields))]
        assert scores
        assert all(0 <= score <= 1 for score in scores)
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("fields", [{}, {"rerank": "none"}])
def test_fewer_answers_are_the_first_of_more(reader: Caller, fields: dict[str, Any]) -> None:
    chance = random.Random(3)
    for _ in range(25):
        query = " ".join(chance.choices([*WORDS, "n7", "n211"], k=chance.randint(1, 6)))
        many = _citations(reader.search(query, topK=100, **fields))
        for top_k in (1, 10, 30):
            few = _citations(reader.search(query, topK=top_k, **fields))
            assert few == many[:top_k], query


def test_the_same_question_gets_the_same_answer(reader: Caller) -> None:
    first = reader.search("lease clock token", topK=50)
    for _ in range(5):
        again = reader.search("lease clock token", topK=50)
        assert again["candidates"] == first["candidates"]
        assert again["queryId"] != first["queryId"]


def test_equal_documents_stand_in_the_order_of_their_ids(
    runtime: Runtime, tenant: str, caller_factory: CallerFactory
) -> None:
    collection = collection_of(runtime, tenant)
    publish_documents(runtime, collection, [{"id": f"{n}.md", "text": "lease"} for n in range(30)])
    reader = caller_factory(tenant)
    first = reader.paths("lease", topK=30)
    assert len(set(first)) == 30
    assert reader.paths("lease", topK=30) == first
    assert reader.paths("lease", topK=7) == first[:7]


def test_a_single_hit_is_not_lost(reader: Caller) -> None:
    [citation] = _citations(reader.search("zebra"))
    assert citation["path"] == "notes/zebra.md"
    assert citation["score"] > 0


def test_pinned_answers_stay_when_a_delta_changes_the_document_frequencies(
    runtime: Runtime, tenant: str, caller_factory: CallerFactory
) -> None:
    collection = collection_of(runtime, tenant)
    words = [f"{word}{number}" for word in WORDS for number in range(20)]
    chance = random.Random(5)
    documents = [
        {"id": f"{n}.md", "text": " ".join(chance.choices(words, k=30))} for n in range(200)
    ]
    publish_documents(runtime, collection, documents, source="notes")
    reader = caller_factory(tenant)
    queries = [" ".join(chance.choices(words, k=1 + n % 3)) for n in range(20)]
    before = [_citations(reader.search(q, pinnedRevisions={"docs": 1}, topK=20)) for q in queries]
    changed = [{**d, "text": " ".join(queries)} for d in documents[::40]]
    publish_documents(runtime, collection, changed, source="notes", mode="delta")
    after = [_citations(reader.search(q, pinnedRevisions={"docs": 1}, topK=20)) for q in queries]
    assert after == before
    assert [_citations(reader.search(q, topK=20)) for q in queries] != before


def test_legs_report_their_state_revision_and_reason(reader: Caller) -> None:
    answer = reader.search("lease clock", legs=["fullText", "graph"])
    assert answer["degraded"] is False
    assert legs(answer) == {"vector": "skipped", "fullText": "ok", "metadata": "skipped"}
    by_leg = {leg["leg"]: leg for leg in answer["legs"]}
    assert by_leg["fullText"]["indexRevision"] == 1
    assert by_leg["fullText"]["count"] > 0
    assert by_leg["vector"]["reason"] == "not asked for"
    assert {by_leg[leg]["state"] for leg in ("graph", "symbol", "temporal")} == {"skipped"}
    assert "not built" in by_leg["symbol"]["reason"]
    assert "has no facts" in by_leg["graph"]["reason"]
    everything = {leg["leg"]: leg for leg in reader.search("lease")["legs"]}
    assert "no embedding profile" in everything["vector"]["reason"]


def test_a_query_of_stop_words_finds_nothing_and_says_why(reader: Caller) -> None:
    answer = reader.search("who is it?")
    assert answer["candidates"] == []
    reasons = {leg["leg"]: leg["reason"] for leg in answer["legs"]}
    assert "no words" in reasons["fullText"]


def test_an_empty_collection_is_searched_and_says_that_nothing_serves(
    runtime: Runtime, tenant: str, caller_factory: CallerFactory
) -> None:
    reader = caller_factory(tenant)
    assert "no collection" in str(reader.search("lease")["legs"])
    collection_of(runtime, tenant)
    answer = reader.search("lease")
    assert answer["candidates"] == []
    assert set(legs(answer).values()) == {"skipped"}
    assert "nothing serves yet" in str(answer["legs"])


def test_explain_adds_ranks_and_the_fused_score(reader: Caller) -> None:
    for candidate in reader.search("lease clock", explain=True)["candidates"]:
        explained = candidate["explain"]
        assert explained["ranks"].keys() <= {"fullText", "metadata"}
        weights = {"fullText": 1.0, "metadata": 0.5}
        fused = sum(weights[leg] / (60 + rank) for leg, rank in explained["ranks"].items())
        assert explained["fusion"] == pytest.approx(fused, abs=1e-6)
    assert "explain" not in reader.search("lease")["candidates"][0]


def test_vectors_and_words_answer_together(
    runtime: Runtime, tenant: str, caller_factory: CallerFactory
) -> None:
    collection = collection_of(runtime, tenant, profile="minilm@1")
    texts = {
        "car": "The automobile would not start this morning.",
        "soup": "Boil the vegetables for an hour.",
        "tax": "File the return before April.",
    }
    publish_documents(runtime, collection, [{"id": k, "text": v} for k, v in texts.items()])
    reader = caller_factory(tenant)
    answer = reader.search("my vehicle is broken")
    assert legs(answer) == {"vector": "ok", "fullText": "ok", "metadata": "ok"}
    best = answer["candidates"][0]["citation"]
    assert best["path"] == "car"
    assert best["embeddingProfileVersion"] == "minilm@1"
    assert 0 < best["signals"]["vector"] <= 1
    worded = reader.search("vegetables", topK=3)["candidates"][0]["citation"]
    assert worded["path"] == "soup"
    assert worded["signals"].keys() == {"vector", "fullText"}


# --- records ----------------------------------------------------------------------------


def _record(caller: Caller, query_id: str) -> dict[str, Any]:
    path = f"{BASE}/queries/{query_id}"
    assert wait_until(lambda: caller.get(path).status_code == 200, 10)
    found: dict[str, Any] = caller.get(path).json()
    return found


def test_a_record_is_read_by_its_own_caller_and_the_administrator_only(
    runtime: Runtime, notes: Collection, reader: Caller, caller_factory: CallerFactory
) -> None:
    answer = reader.search("lease clock", topK=5, filters={"pathPrefix": "notes/"})
    record = _record(reader, answer["queryId"])
    assert record["principal"] == reader.client_id
    assert record["resultCount"] == 5
    assert record["filters"] == {"topK": 5, "pathPrefix": "notes/"}
    assert len(record["indexesUsed"]) == 2
    assert "lease clock" not in str(record)
    citations = reader.get(f"{BASE}/citations/{record['citationsRef']}").json()
    assert citations["citations"] == _citations(answer)
    assert citations["withheld"] == 0
    admin = caller_factory("answers", scopes=(READ, ADMIN))
    assert admin.get(f"{BASE}/queries/{answer['queryId']}").json() == record
    for other in (
        caller_factory("answers", groups=["eng"]),
        caller_factory("answers-eu", scopes=(READ, ADMIN)),
    ):
        assert_problem(other.get(f"{BASE}/queries/{answer['queryId']}"), 404)
        assert_problem(other.get(f"{BASE}/citations/{record['citationsRef']}"), 404)


def test_citations_of_a_source_that_may_no_longer_be_read_are_withheld(
    runtime: Runtime, tenant: str, caller_factory: CallerFactory
) -> None:
    collection = collection_of(runtime, tenant)
    publish_documents(runtime, collection, [{"id": "a.md", "text": "lease"}])
    publish_documents(runtime, collection, [{"id": "b.md", "text": "lease"}], source="s2")
    reader = caller_factory(tenant)
    record = _record(reader, reader.search("lease")["queryId"])
    path = f"{BASE}/citations/{record['citationsRef']}"
    assert reader.get(path).json()["withheld"] == 0
    catalogue.set_source_acl(runtime.app, collection, "s1", ("group:ops",))
    withheld = reader.get(path).json()
    assert [c["path"] for c in withheld["citations"]] == ["b.md"]
    assert withheld["withheld"] == 1
    catalogue.revoke_client(runtime.owner, reader.client_id)
    assert_problem(reader.get(path), 401)


def test_citations_of_a_chunk_whose_acl_was_taken_back_are_withheld(
    runtime: Runtime, tenant: str, caller_factory: CallerFactory
) -> None:
    collection = collection_of(runtime, tenant)
    publish_documents(runtime, collection, [{"id": "a.md", "text": "lease"}])
    reader = caller_factory(tenant)
    record = _record(reader, reader.search("lease")["queryId"])
    publish_documents(runtime, collection, [{"id": "a.md", "text": "lease", "acl": []}])
    withheld = reader.get(f"{BASE}/citations/{record['citationsRef']}").json()
    assert withheld["citations"] == []
    assert withheld["withheld"] == 1


def test_metrics_count_by_tenant_and_never_label_queries_names_or_paths(
    reader: Caller, notes: Collection
) -> None:
    reader.search("lease zanzibar", filters={"pathPrefix": "notes/", "sourceId": "notes"})
    text = reader.get("/metrics").text
    assert 'tenant="answers"' in text
    for word in ("zanzibar", "lease", "notes", reader.client_id, "docs", "p1"):
        assert word not in text
    assert "foreign_hits_dropped_total{" not in text


def test_index_revisions_are_listed_newest_first(
    runtime: Runtime, tenant: str, caller_factory: CallerFactory
) -> None:
    collection = collection_of(runtime, tenant)
    for text in ("one", "two"):
        publish_documents(runtime, collection, [{"id": "a.md", "text": text}])
    index(runtime, collection)
    reader = caller_factory(tenant)
    for name in ("docs", str(collection.collection_id)):
        listed = reader.get(f"{BASE}/collections/{name}/indexes").json()
        assert listed["headRevision"] == 2
        found = [(i["kind"], i["revision"], i["state"]) for i in listed["indexes"]]
        assert found == [
            ("fullText", 2, "Ready"),
            ("metadata", 2, "Ready"),
            ("fullText", 1, "Retired"),
            ("metadata", 1, "Retired"),
        ]
    [entry] = reader.get(f"{BASE}/collections").json()["collections"]
    assert entry["servedRevisions"] == {"fullText": 2, "metadata": 2}
