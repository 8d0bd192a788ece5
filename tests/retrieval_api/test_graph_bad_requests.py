"""What is wrong with facts, or with a question about them, is said in one clear problem."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from knowledge.model.fact import Domain
from knowledge.runtime import Runtime
from retrieval_api.bodies import BodyLimit
from tests.graph.telling import fact, observed
from tests.publication import collection_of
from tests.retrieval_api.conftest import CallerFactory
from tests.retrieval_api.graph import EVERYTHING, GRAPH, facts, objects, tell, try_ask, try_tell
from tests.retrieval_api.service import Caller, assert_problem, http

TENANT = "graph-bad-requests"
OPERATIONS: dict[str, dict[str, Any]] = {
    "query": {"subject": "a"},
    "expand": {"entities": ["a"]},
    "paths": {"from": "a", "to": "b"},
    "history": {"entity": "a"},
}


@pytest.fixture(scope="module")
def caller(runtime: Runtime, caller_factory: CallerFactory) -> Caller:
    collection_of(runtime, TENANT)
    made = caller_factory(TENANT, scopes=EVERYTHING)
    tell(made, fact("a", "CAUSED_BY", "b"))
    return made


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"sourceId": None, "sourceVersion": None}, "provenance is missing: give sourceId and"),
        ({"sourceVersion": None}, "sourceVersion is missing"),
        ({"validFrom": "2025", "validTo": "2024"}, "validTo is before validFrom"),
        ({"validFrom": "soon"}, "validFrom 'soon' is not a time"),
        ({"validFrom": "10000"}, "validFrom '10000' is not a time"),
        ({"validFrom": 10**40}, "validFrom '1000"),
        ({"validFrom": "0001-01-01T00:00:00+14:00"}, "is not a time in the years 1 to 9999"),
        ({"validTo": [2024]}, "validTo '[2024]' is not a time"),
        ({"observedAt": True}, "observedAt 'True' is not a time"),
        ({"confidence": 1.5}, "confidence is not a number from 0 to 1"),
        ({"confidence": -0.1}, "confidence is not a number from 0 to 1"),
        ({"confidence": 10**400}, "confidence is not a number from 0 to 1"),
        ({"confidence": True}, "confidence is not a number from 0 to 1"),
        ({"confidence": "1"}, "confidence is not a number from 0 to 1"),
        ({"predicate": "dependsOn"}, "predicate 'dependsOn' is not UPPER_SNAKE_CASE"),
        ({"predicate": "DEPENDS__ON"}, "is not UPPER_SNAKE_CASE"),
        ({"predicate": "D" * 65}, "is not UPPER_SNAKE_CASE of at most 64"),
        ({"subject": "x" * 513}, "subject has 513 characters, at most 512 are allowed"),
        ({"object": "y" * 100_000}, "object has 100,000 characters"),
        ({"subject": " \t"}, "subject is empty"),
        ({"subject": "a\0b"}, "subject holds a control character"),
        ({"object": "\ud800"}, "object holds a control character"),
        ({"subject": 7}, "subject is not a text"),
        ({"subject": None}, "subject is missing"),
        ({"domain": "sales"}, "domain 'sales' is not known: use one of code, architecture"),
        ({"domain": "\ud800"}, "is not known: use one of"),
        ({"domain": None}, "domain is missing: use one of code"),
        ({"namespace": "No Space"}, "namespace 'No Space' is not valid"),
        ({"subjectType": "Build Job"}, "subjectType 'Build Job' is not a type name"),
        ({"trustTier": "Everything"}, "trustTier is not one of SourceFact"),
        ({"acl": "group:ops"}, "acl is not a list"),
        ({"acl": ["ops"]}, "acl is not a list of user:NAME and group:NAME"),
        ({"acl": [["group:ops"]]}, "acl is not a list of user:NAME and group:NAME"),
        ({"acl": ["group:\ud800"]}, "acl is not a list of user:NAME and group:NAME"),
        ({"verified": "yes"}, "verified is not true or false"),
        ({"corrects": "x"}, "corrects is not an id"),
        ({"chunkId": "6e8bc430-9c3a-11d9-9669-0800200c9a66"}, "collection and chunkId go together"),
        ({"collection": "docs"}, "collection and chunkId go together"),
        ({"sourceID": "s1"}, "unknown field 'sourceID': use acl"),
        ({"\ud800": 1}, "unknown field"),
    ],
)
def test_a_fact_that_is_not_valid_is_named_by_its_place(
    caller: Caller, fields: dict[str, Any], named: str
) -> None:
    before = len(facts(caller, limit=1000))
    wrong = fact("a", "NOTED_IN", "b") | fields
    response = try_tell(caller, fact("good", "CAUSED_BY", "b"), wrong)
    problem = assert_problem(response, 422, "facts[1]: ", named)
    assert "\n" not in problem["detail"]
    assert len(problem["detail"]) < 400
    assert len(facts(caller, limit=1000)) == before


def test_a_fact_without_a_source_claims_no_more_than_an_observation(caller: Caller) -> None:
    claimed = observed("a", "CAUSED_BY", "c", trustTier="SourceFact")
    assert_problem(try_tell(caller, claimed), 422, "trustTier SourceFact needs a sourceId")


@pytest.mark.parametrize("wrong", [None, 7, "fact", [], [{}]])
def test_a_fact_is_an_object(caller: Caller, wrong: Any) -> None:
    assert_problem(try_tell(caller, wrong), 422, "facts[0]: a fact is a JSON object")


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"facts": {"subject": "a"}}, "facts"),
        ({"facts": None}, "facts"),
        ({"retractions": ["x"]}, "retractions.0"),
        ({"retractions": [{"factId": "x"}]}, "retractions.0.factId"),
        ({"retractions": [{"factId": None, "why": "x"}]}, "retractions.0"),
        ({"projectId": None}, "projectId"),
        ({"project": "p1"}, "unknown field 'project': use projectId, facts, retractions"),
        ({"retractions": [{"id": "x"}]}, "retractions.0.id: unknown field 'id': use factId"),
    ],
)
def test_a_batch_that_is_not_one_is_named(
    caller: Caller, fields: dict[str, Any], named: str
) -> None:
    assert_problem(try_tell(caller, **fields), 422, named)


def test_more_facts_than_a_batch_takes_are_one_error(caller: Caller) -> None:
    said = [fact("many", "CAUSED_BY", str(n)) for n in range(5_001)]
    assert_problem(try_tell(caller, *said), 422, "5,001 facts in one request: at most 5,000")
    ids = ["6e8bc430-9c3a-11d9-9669-0800200c9a66"] * 5_000
    response = try_tell(caller, said[0], retract=ids)
    assert_problem(response, 422, "5,001 facts in one request: at most 5,000")
    assert facts(caller, subject="many") == []


@pytest.mark.parametrize(
    ("each", "status", "named"),
    [
        (b"{}", 400, "holds more than 200,000 values: send it in several parts"),
        (json.dumps(fact("a", "USES", "b")).encode(), 413, "larger than 8,000,000 bytes"),
    ],
)
@pytest.mark.parametrize("is_announced", [True, False])
def test_a_million_facts_are_one_error_and_the_service_goes_on(
    caller: Caller, each: bytes, status: int, named: str, is_announced: bool
) -> None:
    content = b'{"projectId": "p1", "facts": [' + b",".join([each] * 1_000_000) + b"]}"
    parts = (content[at : at + 65_536] for at in range(0, len(content), 65_536))
    started = time.monotonic()
    response = http().post(
        f"{caller.url}{GRAPH}/facts",
        headers=caller.headers,
        content=content if is_announced else parts,
        timeout=60,
    )
    assert_problem(response, status, named)
    assert time.monotonic() - started < 20
    assert objects(caller, subject="a") == ["b"]


def test_other_routes_take_no_more_than_before(caller: Caller) -> None:
    response = caller.post_raw(f"{GRAPH}/query", b" " * 1_000_001)
    assert_problem(response, 413, "1,000,000 bytes")


async def _taken(url: str, size_bytes: int) -> int:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await Request(scope, receive).body()
        await PlainTextResponse("taken")(scope, receive, send)

    app = Starlette(routes=[Mount("/kb", app=BodyLimit(answer, larger={"/facts": 2_000_000}))])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app)) as client:
        return (await client.post(f"http://test{url}", content=b" " * size_bytes)).status_code


def test_a_mounted_service_takes_as_much_of_facts() -> None:
    assert asyncio.run(_taken("/kb/facts", 2_000_000)) == 200
    assert asyncio.run(_taken("/kb/facts", 2_000_001)) == 413
    assert asyncio.run(_taken("/kb/other", 1_000_001)) == 413


# --- questions --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "fields", "named"),
    [
        ("expand", {"hops": 9}, "hops: Input should be less than or equal to 3"),
        ("expand", {"hops": 0}, "hops"),
        ("expand", {"hops": "2"}, "hops"),
        ("expand", {"hops": True}, "hops"),
        ("expand", {"hops": 10**30}, "hops"),
        ("expand", {"entities": []}, "entities"),
        ("expand", {"entities": ["a"] * 33}, "entities"),
        ("expand", {"entities": [""]}, "entity is empty"),
        ("expand", {"entities": ["x" * 513]}, "entity has 513 characters"),
        ("expand", {"direction": "up"}, "direction"),
        ("expand", {"predicates": ["uses"]}, "is not UPPER_SNAKE_CASE"),
        ("expand", {"maxNodes": 1_001}, "maxNodes"),
        ("expand", {"maxEdges": 0}, "maxEdges"),
        ("expand", {"fanOut": 501}, "fanOut"),
        ("paths", {"maxHops": 7}, "maxHops"),
        ("paths", {"from": ""}, "from is empty"),
        ("paths", {"to": "\0"}, "to holds a control character"),
        ("paths", {"limit": 51}, "limit"),
        ("query", {"subject": "x" * 513}, "subject has 513 characters"),
        ("query", {"subject": "\0"}, "subject holds a control character"),
        ("query", {"predicate": "uses"}, "is not UPPER_SNAKE_CASE"),
        ("query", {"limit": 1_001}, "limit"),
        ("query", {"limit": 0}, "limit"),
        ("query", {"limit": 2.5}, "limit"),
        ("query", {"cursor": "x"}, "cursor is not one that this question gave"),
        ("query", {"cursor": "é"}, "cursor is not one that this question gave"),
        ("query", {"cursor": "x" * 2_000}, "cursor"),
        ("query", {"subjectType": "\0"}, "subjectType"),
        ("history", {"entity": " "}, "entity is empty"),
        ("history", {"predicate": "uses"}, "is not UPPER_SNAKE_CASE"),
        ("history", {"asOf": "2024"}, "asOf"),
    ],
)
def test_a_question_out_of_bounds_is_named(
    caller: Caller, operation: str, fields: dict[str, Any], named: str
) -> None:
    response = try_ask(caller, operation, **OPERATIONS[operation] | fields)
    assert "\n" not in assert_problem(response, 422, named)["detail"]


@pytest.mark.parametrize("operation", ["query", "expand", "paths"])
@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"asOf": "yesterday"}, "asOf: the value 'yesterday' is not a time in the years 1"),
        ({"asOf": "0001-01-01T00:00:00+14:00"}, "asOf: "),
        ({"asOf": "9999-12-31T23:59:59-14:00"}, "asOf: "),
        ({"asOf": 1_700_000_000}, "asOf: "),
        ({"asOf": 2024.5}, "asOf: "),
        ({"asKnownAt": {}}, "asKnownAt: "),
        ({"between": ["2024"]}, "between"),
        ({"between": ["2025", "2024"]}, "between ends before it begins"),
        ({"between": ["2024", "2024"]}, "between ends before it begins"),
        ({"between": ["2024", None]}, "between.1"),
        ({"minTrust": "Everything"}, "minTrust"),
        ({"verified": "yes"}, "verified"),
        ({"suggestions": 1}, "suggestions"),
        ({"source": "s\0"}, "source"),
        ({"namespace": "\0"}, "namespace"),
        ({"tenantId": "another"}, "tenantId: unknown field 'tenantId': use projectId, domains,"),
        ({"as_of": "2024"}, "unknown field 'as_of': use "),
        ({"subjct": "a", "projectId": None}, "unknown field 'subjct': use "),
        ({"{braces}": 1}, "unknown field '{braces}': use "),
        ({"x" * 200: 1}, f"unknown field '{'x' * 80}': use "),
        ({"projectId": ""}, "projectId"),
    ],
)
def test_a_filter_that_is_not_valid_is_named_and_never_ignored(
    caller: Caller, operation: str, fields: dict[str, Any], named: str
) -> None:
    assert_problem(try_ask(caller, operation, **OPERATIONS[operation] | fields), 422, named)


def test_every_unknown_field_is_listed_with_its_place(caller: Caller) -> None:
    response = try_ask(caller, "query", subjct="a", obj="b")
    known = "use projectId, domains, namespace, asOf, between, asKnownAt, minTrust, verified,"
    assert_problem(response, 422, f"obj: unknown field 'obj': {known}")
    assert [error["field"] for error in response.json()["errors"]] == ["obj", "subjct"]


@pytest.mark.parametrize("decision", ["confirm", "reject"])
def test_a_decision_without_a_body_is_told_what_to_send(caller: Caller, decision: str) -> None:
    response = caller.post_raw(f"{GRAPH}/suggestions/x/{decision}", b"")
    assert_problem(response, 400, 'the body is empty: send a JSON object, {"projectId": "…"}')


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_unknown_domain_is_told_the_known_ones(caller: Caller, operation: str) -> None:
    response = try_ask(caller, operation, **OPERATIONS[operation], domains=["sales"])
    assert_problem(response, 422, "domains.0", *Domain)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({}, "projectId"),
        ({"projectId": "p1", "limit": "many"}, "limit"),
        ({"projectId": "p1", "limit": "0"}, "limit"),
        ({"projectId": "p1", "cursor": "x"}, "cursor"),
        ({"projectId": "p1", "subject": "a"}, "'subject': use projectId, limit, cursor"),
        ({"projectId": "\0"}, "projectId"),
    ],
)
def test_a_list_of_suggestions_is_asked_for_in_its_own_words(
    caller: Caller, asked: dict[str, str], named: str
) -> None:
    assert_problem(caller.get(f"{GRAPH}/suggestions", params=asked), 422, named)


@pytest.mark.parametrize(
    "path", ["query", "expand", "paths", "history", "facts", "suggestions/x/confirm"]
)
@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[" * 100_000, 400),
        (b'{"projectId": "p1", "facts": [' + b'{"subject":' * 50_000, 400),
        (b'{"projectId": "p1", "limit": ' + b"9" * 5_000 + b"}", 400),
        (b'{"projectId": "p1", "projectId": "p2"}', 400),
        (b'{"projectId": NaN}', 400),
        (b'{"projectId": "\xe9"}', 400),
        (b"[]", 422),
        (b"null", 422),
        (b'{"projectId": "\\ud800"}', 422),
        (b'{"projectId": "p1", "\\ud800": 1}', 422),
        (b'{"projectId": "p1", "domains": ["\\ud800"]}', 422),
    ],
)
def test_a_body_that_means_nothing_is_refused(
    caller: Caller, path: str, content: bytes, status: int
) -> None:
    assert_problem(caller.post_raw(f"{GRAPH}/{path}", content), status)
