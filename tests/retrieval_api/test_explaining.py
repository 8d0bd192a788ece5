"""What became of a chunk that the request names, and what is not told about those of others."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from knowledge.client import KnowledgeClient
from knowledge.indexing.tick import leased, tick
from knowledge.model.collection import Collection
from knowledge.model.scope import TrustTier
from knowledge.retrieval.explaining import LOST
from knowledge.runtime import Runtime
from knowledge.storage.postgres import catalogue, generations
from retrieval_api.docs import openapi
from tests.publication import announce_documents, collection_of, publish_documents
from tests.retrieval_api.conftest import CallerFactory
from tests.retrieval_api.service import Caller, assert_problem

TENANT = "explaining"
QUERY = "who renews the lease"
LEASES: list[dict[str, Any]] = [
    {"id": f"lease/{n:02}.md", "text": f"The lease number {n} is renewed. " + "lease " * n}
    for n in range(40)
]
ASIDE: dict[str, Any] = {
    "id": "aside/clock.md",
    "text": "A clock ticks.",
    "tags": ["adr", "old"],
    "metadata": {"updatedAt": "2026-05-01T00:00:00Z"},
}


@pytest.fixture(scope="module")
def docs(runtime: Runtime) -> Collection:
    """Forty chunks about leases and one about something else, with a model."""
    collection = collection_of(runtime, TENANT, profile="minilm@1")
    publish_documents(runtime, collection, [*LEASES, ASIDE])
    other = collection_of(runtime, TENANT, "other")
    publish_documents(runtime, other, [{"id": "o.md", "text": "another lease"}])
    return collection


@pytest.fixture(scope="module")
def reader(docs: Collection, caller_factory: CallerFactory) -> Caller:
    return caller_factory(TENANT)


def chunk_at(runtime: Runtime, tenant_id: str, path: str) -> str:
    with runtime.app.tenant(tenant_id) as connection:
        row = connection.execute(
            "select chunk_id from chunk_versions where path = %s", [path]
        ).fetchone()
    assert row is not None
    return str(row["chunk_id"])


def explained(reader: Caller, chunk: str, query: str = QUERY, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = reader.search(query, explainChunk=chunk, **fields)["explainedChunk"]
    assert found["chunkId"] == chunk
    return found


def by_leg(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {leg["leg"]: leg for leg in found["legs"]}


def test_a_returned_chunk_is_explained_with_its_places(reader: Caller) -> None:
    answer = reader.search(QUERY, collections=["docs"], explain=True)
    for place, candidate in enumerate(answer["candidates"], start=1):
        citation = candidate["citation"]
        found = explained(reader, citation["chunkId"], collections=["docs"])
        assert (found["outcome"], found["rank"]) == ("returned", place)
        assert (found["collection"], found["indexRevision"]) == ("docs", 1)
        assert found["score"] == citation["score"]
        assert found["rerankRank"] == place
        ranks = {leg["leg"]: leg["rank"] for leg in found["legs"] if leg["rank"]}
        assert ranks == candidate["explain"]["ranks"]
        for leg, value in citation["signals"].items():
            assert by_leg(found)[leg]["signal"] == pytest.approx(value, abs=1e-5)


def test_a_chunk_below_top_k_has_its_place_and_score(reader: Caller) -> None:
    ten = reader.search(QUERY, collections=["docs"])["candidates"]
    for place, candidate in enumerate(ten[3:], start=4):
        citation = candidate["citation"]
        found = explained(reader, citation["chunkId"], collections=["docs"], topK=3)
        assert (found["outcome"], found["rank"]) == ("below_top_k", place)
        assert found["score"] == citation["score"]
        assert f"rank {place} of" in found["reason"]
        assert "topK is 3" in found["reason"]


def test_the_fused_order_explains_itself_without_a_rerank_rank(reader: Caller) -> None:
    answer = reader.search(QUERY, collections=["docs"], rerank="none")
    chunk = answer["candidates"][4]["citation"]["chunkId"]
    found = explained(reader, chunk, collections=["docs"], rerank="none")
    assert (found["fusionRank"], found["rerankRank"], found["rank"]) == (5, None, 5)


def test_what_no_leg_ranks_is_no_candidate_and_every_leg_says_why(
    runtime: Runtime, reader: Caller
) -> None:
    chunk = chunk_at(runtime, TENANT, ASIDE["id"])
    found = explained(reader, chunk, collections=["docs"])
    assert found["outcome"] == "not_a_candidate"
    assert (found["rank"], found["fusionRank"], found["score"]) == (None, None, None)
    legs = by_leg(found)
    assert legs["fullText"]["signal"] == 0
    assert legs["fullText"]["reason"] == "it holds none of the query's words"
    assert legs["metadata"]["reason"].startswith("path, title and tags hold 0%")
    assert legs["vector"]["reason"] == "its rank is beyond the 30 hits of this leg"
    assert -1 <= legs["vector"]["signal"] <= legs["vector"]["weakestSignal"] <= 1


def test_the_signals_of_no_candidate_are_those_it_has_where_it_is_found(
    runtime: Runtime, reader: Caller
) -> None:
    deep = reader.search(QUERY, collections=["docs"], topK=100)["candidates"]
    signals = {c["citation"]["chunkId"]: c["citation"]["signals"] for c in deep}
    checked = 0
    for chunk, expected in signals.items():
        found = explained(reader, chunk, collections=["docs"])
        if found["outcome"] != "not_a_candidate":
            continue
        checked += 1
        for leg, value in expected.items():
            assert by_leg(found)[leg]["signal"] == pytest.approx(value, abs=1e-4)
    assert checked


def _lose(runtime: Runtime, collection: Collection, path: str) -> str:
    """Delete the chunk's object from the index alone; returns the chunk."""
    with runtime.app.tenant(collection.tenant_id) as connection:
        generation = generations.serving_generation(connection, collection)
        row = connection.execute(
            "select object_id, chunk_id from chunk_versions where path = %s", [path]
        ).fetchone()
    assert generation is not None
    assert row is not None
    runtime.index.delete(generation, [row["object_id"]])
    return str(row["chunk_id"])


def test_an_object_that_the_index_lost_is_told_of_as_lost(
    runtime: Runtime, tenant: str, caller_factory: CallerFactory
) -> None:
    collection = collection_of(runtime, tenant, profile="minilm@1")
    clocks = [{"id": f"{n}.md", "text": f"Clock {n} ticks."} for n in range(3)]
    publish_documents(runtime, collection, [*LEASES, *clocks])
    chunk = _lose(runtime, collection, "1.md")
    found = explained(caller_factory(tenant), chunk, "clock ticks")
    assert found["outcome"] == "not_a_candidate"
    legs = by_leg(found)
    # Two hits come back where 60 were asked for, and 30 of 42 vectors.
    for leg in ("fullText", "vector"):
        assert legs[leg]["reason"] == LOST, leg
    assert "rank is beyond" not in str(found)


def test_a_lost_object_among_many_hits_is_known_by_its_signal(
    runtime: Runtime, tenant: str, caller_factory: CallerFactory
) -> None:
    collection = collection_of(runtime, tenant)
    texts = [("lease " * 9, 1), ("lease and a clock that ticks", 70)]
    documents = [
        {"id": f"{w[:9]}{n}", "text": f"{w} {n}"} for w, many in texts for n in range(many)
    ]
    publish_documents(runtime, collection, documents)
    best = _lose(runtime, collection, documents[0]["id"])
    reader = caller_factory(tenant)
    assert by_leg(explained(reader, best, "lease"))["fullText"]["reason"] == LOST
    others = (explained(reader, chunk_at(runtime, tenant, d["id"]), "lease") for d in documents[1:])
    reasons = {by_leg(found)["fullText"]["reason"] for found in others}
    assert len(reasons) == 3
    assert LOST not in reasons


@pytest.mark.parametrize(
    ("fields", "excluded"),
    [
        ({"filters": {"sourceId": "s2"}}, ["sourceId"]),
        ({"filters": {"pathPrefix": "lease/"}}, ["pathPrefix"]),
        ({"filters": {"kind": "code"}}, ["kind"]),
        ({"filters": {"language": "de"}}, ["language"]),
        ({"filters": {"tags": ["adr", "new"]}}, ["tags"]),
        ({"filters": {"updatedAfter": "2026-05-01T00:00:01Z"}}, ["updatedAfter"]),
        ({"filters": {"kind": "code", "tags": ["new"]}}, ["kind", "tags"]),
        ({"legs": ["graph"]}, ["legs"]),
        ({"collections": ["other"]}, ["collections"]),
    ],
)
def test_a_filter_that_leaves_a_chunk_out_is_named(
    runtime: Runtime, reader: Caller, fields: dict[str, Any], excluded: list[str]
) -> None:
    found = explained(reader, chunk_at(runtime, TENANT, ASIDE["id"]), "clock", **fields)
    assert (found["outcome"], found["excludedBy"]) == ("filtered", excluded)
    assert all(field in found["reason"] for field in excluded)


@pytest.mark.parametrize(
    "filters",
    [
        {"sourceId": "s1", "pathPrefix": "aside/", "kind": "document"},
        {"tags": ["old", "adr"], "updatedAfter": "2026-05-01T00:00:00Z"},
    ],
)
def test_filters_that_a_chunk_meets_do_not_exclude_it(
    runtime: Runtime, reader: Caller, filters: dict[str, Any]
) -> None:
    chunk = chunk_at(runtime, TENANT, ASIDE["id"])
    assert explained(reader, chunk, "clock", filters=filters)["outcome"] == "returned"


def test_a_trust_that_is_too_low_is_named(
    runtime: Runtime, tenant: str, caller_factory: CallerFactory
) -> None:
    collection = collection_of(runtime, tenant)
    publish_documents(runtime, collection, [ASIDE])
    with runtime.owner.transaction() as connection:
        connection.execute(
            "update sources set trust_tier = 'InferredFact' where collection_id = %s",
            [collection.collection_id],
        )
    reader, chunk = caller_factory(tenant), chunk_at(runtime, tenant, ASIDE["id"])
    found = explained(reader, chunk, "clock", minTrust=TrustTier.SOURCE_FACT)
    assert found["excludedBy"] == ["minTrust"]
    met = explained(reader, chunk, "clock", minTrust=TrustTier.INFERRED_FACT)
    assert met["outcome"] == "returned"


def test_a_chunk_of_other_revisions_says_in_which_it_is_visible(
    runtime: Runtime, tenant: str, caller_factory: CallerFactory
) -> None:
    collection = collection_of(runtime, tenant)
    for documents in ([ASIDE], [ASIDE, LEASES[0]], [LEASES[0]]):
        publish_documents(runtime, collection, documents)
    reader = caller_factory(tenant)
    gone, later = (chunk_at(runtime, tenant, str(d["id"])) for d in (ASIDE, LEASES[0]))
    now = explained(reader, gone)
    assert (now["outcome"], now["indexRevision"]) == ("not_at_this_revision", 3)
    assert "visible in [1, 3)" in now["reason"]
    pinned = explained(reader, later, pinnedRevisions={"docs": 1})
    assert (pinned["outcome"], pinned["indexRevision"]) == ("not_at_this_revision", 1)
    assert "visible in [2, …)" in pinned["reason"]
    assert explained(reader, gone, "clock", pinnedRevisions={"docs": 2})["outcome"] == "returned"


def test_a_chunk_that_is_committed_but_not_served_says_so(
    runtime: Runtime, tenant: str, caller_factory: CallerFactory
) -> None:
    collection = collection_of(runtime, tenant)
    reader = caller_factory(tenant)
    for revision, document in enumerate((ASIDE, LEASES[0]), start=1):
        announce_documents(runtime, collection, [document], source=f"s{revision}")
        with leased(runtime, tenant, "docs", "run") as lease:
            tick(runtime, lease, check=lambda _snapshot: None)
        found = explained(reader, chunk_at(runtime, tenant, str(document["id"])))
        assert found["outcome"] == "not_served_yet"
        assert f"committed at revision {revision}" in found["reason"]
        publish_documents(runtime, collection, [document], source=f"s{revision}")
    assert found["indexRevision"] == 1
    assert explained(reader, found["chunkId"])["outcome"] == "returned"


# --- what is not told ----------------------------------------------------------------------


def _foreign_chunks(runtime: Runtime, tenant: str, collection: Collection) -> dict[str, str]:
    """Chunks of the same words that the reader of ``tenant`` and p1 may not read, by why."""

    def lease(name: str, **fields: Any) -> dict[str, Any]:
        return {"id": f"{name}.md", "text": "a lease is renewed", **fields}

    publish_documents(runtime, collection, [lease("mine")])
    chunk_acls = [lease("nobody", acl=[]), lease("ops", acl=["group:ops"])]
    publish_documents(runtime, collection, chunk_acls, source="s2")
    publish_documents(runtime, collection, [lease("source")], source="s3", acl=("group:ops",))
    publish_documents(runtime, collection, [lease("deleted")], source="s4")
    with runtime.owner.transaction() as connection:
        connection.execute(
            "update sources set deleted_at = now() where collection_id = %s and source_id = 's4'",
            [collection.collection_id],
        )
    catalogue.ensure_project(runtime.owner, tenant, "p2")
    publish_documents(runtime, collection, [lease("project")], source="s5", project_id="p2")
    elsewhere = collection_of(runtime, tenant, "elsewhere", project_id="p2")
    publish_documents(runtime, elsewhere, [lease("collection")])
    stranger = f"{tenant}-x"
    catalogue.ensure_project(runtime.owner, stranger, "p1")
    publish_documents(runtime, collection_of(runtime, stranger), [lease("tenant")])
    names = ("nobody", "ops", "source", "deleted", "project", "collection")
    chunks = {name: chunk_at(runtime, tenant, f"{name}.md") for name in names}
    return {**chunks, "tenant": chunk_at(runtime, stranger, "tenant.md")}


def test_a_chunk_of_others_is_told_of_like_one_that_never_existed(
    runtime: Runtime, tenant: str, caller_factory: CallerFactory
) -> None:
    collection = collection_of(runtime, tenant)
    foreign = _foreign_chunks(runtime, tenant, collection)
    reader = caller_factory(tenant)
    assert reader.paths("lease") == ["mine.md"]

    def told(chunk: str, **fields: Any) -> dict[str, Any]:
        found = explained(reader, chunk, "lease", **fields)
        del found["chunkId"]
        return found

    variants: list[dict[str, Any]] = [
        {},
        {"collections": ["docs"]},
        {"pinnedRevisions": {"docs": 2}},
        {"filters": {"sourceId": "s3"}},
        {"filters": {"tags": ["x"]}, "explain": True},
    ]
    for fields in variants:
        unknown = told(str(uuid.uuid4()), **fields)
        assert unknown == {
            "outcome": "not_found",
            "reason": "there is no chunk with this id that this client may read",
            **dict.fromkeys(("collection", "indexRevision", "fusionRank", "rerankRank")),
            **dict.fromkeys(("rank", "score")),
            "excludedBy": [],
            "legs": [],
        }
        for name, chunk in foreign.items():
            assert told(chunk, **fields) == unknown, name
    # Each of them is there for somebody: the test would see a chunk that is merely missing.
    operator = caller_factory(tenant, groups=["ops"], projects=["p1", "p2"])
    for name in ("ops", "source"):
        assert explained(operator, foreign[name], "lease")["outcome"] == "returned", name


# --- the edges -------------------------------------------------------------------------------


def test_an_answer_without_the_field_explains_no_chunk(reader: Caller) -> None:
    assert "explainedChunk" not in reader.search(QUERY, explain=True)


@pytest.mark.parametrize(
    "fields", [{"explainChunk": "x"}, {"explainChunk": 7}, {"explain_chunk": str(uuid.uuid4())}]
)
def test_what_is_no_chunk_id_or_no_field_is_refused(reader: Caller, fields: dict[str, Any]) -> None:
    assert_problem(reader.try_search(QUERY, **fields), 422, next(iter(fields)))


def test_the_explanation_is_valid_under_the_documented_schema(
    runtime: Runtime, reader: Caller
) -> None:
    schema = {"$ref": "#/components/schemas/Answer", "components": openapi()["components"]}
    for chunk in (chunk_at(runtime, TENANT, ASIDE["id"]), str(uuid.uuid4())):
        for fields in ({}, {"legs": ["fullText"]}, {"legs": ["graph"]}):
            answer = reader.search(QUERY, explainChunk=chunk, **fields)
            assert "explainedChunk" in answer
            Draft202012Validator(schema).validate(answer)


def test_the_python_client_reads_the_explanation(reader: Caller, runtime: Runtime) -> None:
    chunk = uuid.UUID(chunk_at(runtime, TENANT, ASIDE["id"]))
    with KnowledgeClient(reader.url, reader.client_id, reader.secret) as client:
        answer = client.search(QUERY, project_id="p1", collections=["docs"], explain_chunk=chunk)
        assert answer.explained_chunk is not None
        assert answer.explained_chunk.chunk_id == chunk
        assert answer.explained_chunk.outcome == "not_a_candidate"
        assert client.search(QUERY, project_id="p1").explained_chunk is None


def test_a_leg_that_was_not_asked_for_says_so(reader: Caller) -> None:
    answer = reader.search(QUERY, collections=["docs"], legs=["fullText"])
    chunk = answer["candidates"][0]["citation"]["chunkId"]
    found = explained(reader, chunk, collections=["docs"], legs=["fullText"])
    assert by_leg(found)["vector"]["reason"] == "not asked for"
