"""Facts told over HTTP: all or nothing, once however often sent, under the sender's permissions."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from knowledge.graph.reading import FIELDS
from knowledge.model.scope import ADMIN, READ, WRITE
from knowledge.runtime import Runtime
from knowledge.stack.process import wait_until
from retrieval_api.docs import openapi
from retrieval_api.graph_schemas import GRAPH_SCHEMAS
from tests.graph.telling import fact, observed
from tests.publication import collection_of, publish_documents
from tests.retrieval_api.conftest import CallerFactory
from tests.retrieval_api.graph import (
    EVERYTHING,
    GRAPH,
    WRITER,
    ask,
    facts,
    objects,
    tell,
    tell_one,
    try_tell,
)
from tests.retrieval_api.service import BASE, Caller, assert_problem, http


@pytest.fixture
def writer(tenant: str, caller_factory: CallerFactory) -> Caller:
    return caller_factory(tenant, scopes=WRITER)


@pytest.fixture
def admin(tenant: str, caller_factory: CallerFactory) -> Caller:
    return caller_factory(tenant, scopes=EVERYTHING)


def _owned(by: str, since: str, **fields: Any) -> dict[str, Any]:
    return fact("billing", "OWNED_BY", by, validFrom=since, **fields)


def test_a_batch_answers_with_what_became_of_its_facts(writer: Caller) -> None:
    written = tell(writer, _owned("a", "2024"), fact("billing", "NEWLY_NAMED", "x"))
    validator = Draft202012Validator(
        {**GRAPH_SCHEMAS["WrittenFacts"], "components": openapi()["components"]}
    )
    assert [error.message for error in validator.iter_errors(written)] == []
    assert (written["added"], len(written["factIds"])) == (2, 2)
    [violation] = written["violations"]
    assert "NEWLY_NAMED" in violation["message"]
    assert violation["facts"] == 1
    later = tell(writer, _owned("b", "2025"), _owned("a", "2024"))
    assert (later["added"], later["unchanged"]) == (1, 1)
    assert later["closed"] == [{"factId": written["factIds"][0], "reason": "superseded"}]
    assert later["factIds"][1] == written["factIds"][0]


def test_nothing_of_a_batch_with_one_wrong_fact_is_written(writer: Caller) -> None:
    wrong = fact("billing", "OWNED_BY", "c", validFrom="2024", validTo="2023")
    response = try_tell(writer, fact("a", "USES", "b"), fact("a", "USES", "c"), wrong)
    assert_problem(response, 422, "facts[2]: validTo is before validFrom")
    assert facts(writer) == []


def test_a_retraction_of_a_fact_that_is_not_there_writes_nothing(writer: Caller) -> None:
    response = try_tell(writer, fact("a", "USES", "b"), retract=[str(uuid.uuid4())])
    assert_problem(response, 404, "there is no fact")
    assert facts(writer) == []


def test_a_retraction_ends_the_belief_and_keeps_the_telling(writer: Caller) -> None:
    fact_id = tell_one(writer, fact("a", "USES", "b"))
    ended = tell(writer, retract=[fact_id])
    assert ended["closed"] == [{"factId": fact_id, "reason": "retracted"}]
    assert facts(writer) == []
    (told,) = ask(writer, "history", entity="a")["facts"]
    assert (told["closing"], told["closedAt"] is None) == ("retracted", False)


def test_only_the_teller_or_an_administrator_retracts(
    writer: Caller, admin: Caller, tenant: str, caller_factory: CallerFactory
) -> None:
    fact_id = tell_one(writer, fact("a", "USES", "b"))
    other = caller_factory(tenant, scopes=WRITER)
    assert_problem(try_tell(other, retract=[fact_id]), 403, "only an administrator may retract it")
    assert objects(writer) == ["b"]
    tell(admin, retract=[fact_id])
    assert facts(writer) == []


def test_a_lower_tier_corrects_no_higher_one(writer: Caller) -> None:
    fact_id = tell_one(writer, fact("a", "USES", "b"))
    guess = fact("a", "USES", "c", trustTier="AgentObservation", corrects=fact_id)
    assert_problem(try_tell(writer, guess), 403, "a lower tier never ends it")
    assert objects(writer, subject="a") == ["b"]


def test_what_another_said_is_not_corrected(writer: Caller, admin: Caller) -> None:
    fact_id = tell_one(writer, fact("a", "USES", "b"))
    for other in (
        fact("a", "USES", "c", sourceId="s2", corrects=fact_id),
        observed("a", "USES", "c", corrects=fact_id),
        fact("x", "USES", "c", corrects=fact_id),
    ):
        assert_problem(try_tell(writer, other), 403, f"fact {fact_id} is corrected by who said it")
    assert objects(writer, subject="a") == ["b"]
    tell(admin, fact("a", "USES", "c", sourceId="s2", corrects=fact_id))
    assert objects(writer, subject="a") == ["c"]


def test_verified_is_for_administrators(writer: Caller, admin: Caller) -> None:
    said = fact("a", "USES", "b", verified=True)
    assert_problem(try_tell(writer, said), 403, f"facts[0]: verified: true needs the scope {ADMIN}")
    assert facts(writer) == []
    tell(admin, said)
    assert [found["verified"] for found in facts(writer, verified=True)] == [True]


def test_an_admin_scope_that_was_not_asked_for_verifies_nothing(
    runtime: Runtime, url: str, admin: Caller
) -> None:
    response = http().post(
        f"{url}/oauth/token",
        data={"grant_type": "client_credentials", "scope": f"{READ} {WRITE}"},
        auth=(admin.client_id, admin.secret),
    )
    narrow = Caller(url, admin.client_id, admin.secret, response.json()["access_token"], "p1")
    assert_problem(try_tell(narrow, fact("a", "USES", "b", verified=True)), 403, "verified")


# --- what a fact may name ---------------------------------------------------------------


def test_a_fact_names_a_chunk_that_its_teller_reads(
    runtime: Runtime, tenant: str, writer: Caller, caller_factory: CallerFactory
) -> None:
    docs = collection_of(runtime, tenant)
    documents: list[dict[str, Any]] = [
        {"id": "open.md", "text": "a uses b"},
        {"id": "shut.md", "text": "a uses c", "acl": ["group:ops"]},
    ]
    publish_documents(runtime, docs, documents)
    operator = caller_factory(tenant, groups=["ops"], scopes=WRITER)
    chunks = {
        candidate["citation"]["path"]: candidate["citation"]["chunkId"]
        for candidate in operator.search("uses")["candidates"]
        if candidate["type"] == "chunk"
    }

    def said(path: str, collection: str = "docs") -> dict[str, Any]:
        return fact("a", "USES", path, collection=collection, chunkId=chunks[path])

    tell(writer, said("open.md"))
    tell(writer, said("open.md", str(docs.collection_id)))
    response = try_tell(writer, fact("a", "USES", "d"), said("shut.md"))
    unknown = fact("a", "USES", "d", collection="docs", chunkId=str(uuid.uuid4()))
    assert_problem(response, 422, f"facts[1]: there is no chunk {chunks['shut.md']}")
    assert_problem(try_tell(writer, unknown), 422, "facts[0]: there is no chunk")
    assert_problem(try_tell(writer, said("open.md", "none")), 422, "there is no collection none")
    tell(operator, said("shut.md"))
    assert objects(operator) == ["open.md", "shut.md"]
    assert objects(writer) == ["open.md"]


def test_a_collection_of_another_project_or_tenant_is_not_there(
    runtime: Runtime, tenant: str, writer: Caller
) -> None:
    others = [
        collection_of(runtime, tenant, "other", project_id="p2"),
        collection_of(runtime, f"{tenant}-x", "theirs"),
    ]
    for collection in others:
        for name in (collection.slug, str(collection.collection_id)):
            said = fact("a", "USES", "b", collection=name, chunkId=str(uuid.uuid4()))
            assert_problem(try_tell(writer, said), 422, f"there is no collection {name}")


def test_every_field_of_a_fact_is_documented() -> None:
    body = openapi()["components"]["schemas"]["FactBody"]
    assert set(body["properties"]) == FIELDS
    assert set(body["required"]) == {"subject", "predicate", "object"}


# --- what it leaves behind --------------------------------------------------------------


def test_added_and_closed_facts_are_announced_by_domain(tenant: str, admin: Caller) -> None:
    tell(admin, _owned("a", "2024"), fact("x", "DEPENDS_ON", "y", domain="code"))
    tell(admin, _owned("b", "2025"))

    def events() -> list[dict[str, Any]]:
        found = admin.get(f"{BASE}/events").json()["events"]
        return [event for event in found if event["type"] == "GraphFactsUpdated"]

    assert wait_until(lambda: len(events()) == 3, 20)
    announced = events()
    assert {event["topic"] for event in announced} == {"retrieval.graph.v1.graph-facts-updated"}
    data = [event["data"] for event in announced]
    assert {(entry["domain"], entry["added"], entry["closed"]) for entry in data} == {
        ("organization", 1, 0),
        ("code", 1, 0),
        ("organization", 1, 1),
    }
    assert {entry["tenantId"] for entry in data} == {tenant}


def test_the_metrics_count_believed_facts_by_domain_and_tier(
    tenant: str, url: str, writer: Caller
) -> None:
    def counted() -> dict[str, float]:
        text = http().get(f"{url}/metrics").text
        name = "connectsoft_factory_knowledge_graph_facts{"
        lines = [line for line in text.splitlines() if line.startswith(name) and tenant in line]
        return {
            line.rsplit(" ", 1)[0].removeprefix(name): float(line.rsplit(" ", 1)[1])
            for line in lines
        }

    fact_id = tell_one(writer, fact("a", "CAUSED_BY", "b"))
    tell(writer, fact("a", "CAUSED_BY", "c"), observed("a", "CAUSED_BY", "d", domain="customer"))
    labels = f'domain="organization",tenant="{tenant}",trust_tier="SourceFact"}}'
    seen = counted()
    assert {label: seen[label] for label in seen if "organization" in label} == {labels: 2}
    assert [seen[label] for label in seen if "AgentObservation" in label] == [1]
    tell(writer, retract=[fact_id])
    assert counted()[labels] == 1


def test_a_batch_of_the_largest_size_is_written(writer: Caller) -> None:
    said = [
        fact(f"subject {n} " + "x" * 300, "CAUSED_BY", "y" * 400 + f" {n}") for n in range(5_000)
    ]
    body = {"projectId": "p1", "facts": said}
    response = http().post(
        f"{writer.url}{GRAPH}/facts", headers=writer.headers, json=body, timeout=60
    )
    assert response.status_code == httpx.codes.OK, response.text[:300]
    assert response.json()["added"] == 5_000


def test_other_requests_are_answered_while_facts_pour_in(writer: Caller) -> None:
    def pour(number: int) -> int:
        said = [fact(f"s{number}-{n}", "CAUSED_BY", f"o{n}") for n in range(1_000)]
        return int(tell(writer, *said)["added"])

    with ThreadPoolExecutor(6) as pool:
        pouring = [pool.submit(pour, number) for number in range(6)]
        answers = [objects(writer, subject="s0-1") for _ in range(20)]
        assert [done.result() for done in pouring] == [1_000] * 6
    assert all(answer in ([], ["o1"]) for answer in answers)
    assert objects(writer, subject="s5-999") == ["o999"]
