"""Questions about facts over HTTP, answered as the OpenAPI document says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from knowledge.client import KnowledgeClient, RequestRefused
from knowledge.model.fact import Domain
from retrieval_api.docs import openapi
from retrieval_api.graph_schemas import GRAPH_SCHEMAS
from tests.graph.telling import fact, observed
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
    try_ask,
)
from tests.retrieval_api.service import Caller, assert_problem, http

TENANT = "graph-questions"


@pytest.fixture(scope="module")
def reader(caller_factory: CallerFactory) -> Caller:
    """Who told of billing: owned by one team until March 2025, by another from then on."""
    caller = caller_factory(TENANT, scopes=WRITER)
    tell(
        caller,
        fact("billing", "OWNED_BY", "team-a", validFrom="2024", domain="architecture"),
        fact("billing", "OWNED_BY", "team-b", validFrom="2025-03", domain="architecture"),
        fact("billing", "DEPENDS_ON", "ledger", domain="architecture", subjectType="service"),
        fact("ledger", "DEPENDS_ON", "postgres", domain="infrastructure"),
        fact("team-b", "MEMBER_OF", "finance", sourceId="hr"),
        observed("team-b", "KNOWS_ABOUT", "ledger", domain="agentExperience"),
    )
    return caller


def valid(name: str, answer: dict[str, Any]) -> dict[str, Any]:
    """The answer, which has exactly the fields that the document names."""
    schema = {**GRAPH_SCHEMAS[name], "components": openapi()["components"]}
    validator = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    assert [error.message for error in validator.iter_errors(answer)] == []
    return answer


def test_a_query_answers_with_facts_that_hold_now(reader: Caller) -> None:
    answer = valid("FactPage", ask(reader, "query", subject="Billing", predicate="OWNED_BY"))
    (found,) = answer["facts"]
    assert (found["object"], found["validFrom"], found["validTo"]) == (
        "team-b",
        "2025-03-01T00:00:00Z",
        None,
    )
    assert found["validFromPrecision"] == "month"
    assert found["tenantId"] == TENANT
    assert found["principal"] == reader.client_id
    assert answer["scope"] == {
        "tenantId": TENANT,
        "projectId": "p1",
        "principal": reader.client_id,
        "groups": [],
    }
    asked_at = datetime.fromisoformat(answer["asOf"])
    assert abs(datetime.now(UTC) - asked_at) < timedelta(minutes=5)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"asOf": "2024-06"}, ["team-a"]),
        ({"asOf": 2024}, ["team-a"]),
        ({"asOf": "2025-02-28T23:59:59Z"}, ["team-a"]),
        ({"asOf": "2025-03-01T00:00:00+00:00"}, ["team-b"]),
        ({"asOf": "2023"}, []),
        ({"between": ["2024", "2026"]}, ["team-a", "team-b"]),
        ({"between": [2023, "2024-01-01"]}, []),
        ({"asKnownAt": "2020"}, []),
    ],
)
def test_a_time_is_the_first_instant_of_what_was_written(
    reader: Caller, fields: dict[str, Any], expected: list[str]
) -> None:
    assert objects(reader, subject="billing", predicate="OWNED_BY", **fields) == expected


def test_a_fact_that_was_ended_names_what_ended_it(reader: Caller) -> None:
    (ended,) = facts(reader, subject="billing", predicate="OWNED_BY", asOf="2024-06")
    (later,) = facts(reader, subject="billing", predicate="OWNED_BY")
    assert ended["supersededBy"] == later["factId"]
    assert (ended["validTo"], ended["statedTo"]) == ("2025-03-01T00:00:00Z", None)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"domains": ["infrastructure"]}, ["postgres"]),
        ({"domains": ["agentExperience", "infrastructure"]}, ["ledger", "postgres"]),
        ({"object": "LEDGER"}, ["ledger", "ledger"]),
        ({"source": "hr"}, ["finance"]),
        ({"minTrust": "SourceFact", "subject": "team-b"}, ["finance"]),
        ({"minTrust": "AgentObservation", "subject": "team-b"}, ["finance", "ledger"]),
        ({"verified": True}, []),
        ({"namespace": "elsewhere"}, []),
        ({"subject": "billing", "subjectType": "gateway", "predicate": "DEPENDS_ON"}, []),
        ({"predicate": "DEPENDS_UPON", "subject": "ledger"}, ["postgres"]),
    ],
)
def test_every_filter_narrows(reader: Caller, fields: dict[str, Any], expected: list[str]) -> None:
    assert objects(reader, **fields) == expected


def test_every_domain_can_be_asked_for(reader: Caller) -> None:
    for domain in Domain:
        assert try_ask(reader, "query", domains=[domain.value]).status_code == 200


def test_pages_follow_one_another_as_of_one_time(caller_factory: CallerFactory) -> None:
    caller = caller_factory("graph-pages", scopes=WRITER)
    told = [fact("hub", "USES", f"part-{n:02}", domain="architecture") for n in range(25)]
    tell(caller, *told)
    seen: list[str] = []
    cursor, times = None, set()
    while True:
        page = ask(
            caller, "query", subject="hub", limit=10, **({"cursor": cursor} if cursor else {})
        )
        seen += [found["object"] for found in page["facts"]]
        times.add((page["asOf"], page["asKnownAt"]))
        tell(caller, fact("hub", "USES", f"late-{len(seen)}", domain="architecture"))
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert sorted(seen) == [f"part-{n:02}" for n in range(25)]
    assert len(times) == 1


def test_suggestions_come_only_when_asked_for(reader: Caller) -> None:
    asked = {"subject": "ledger", "predicate": "DEPENDENCY_OF"}
    assert facts(reader, **asked) == []
    (found,) = facts(reader, **asked, suggestions=True)
    assert (found["object"], found["trustTier"], found["suggestion"]) == (
        "billing",
        "InferredFact",
        "suggested",
    )


def test_an_expansion_answers_with_nodes_edges_and_paths(reader: Caller) -> None:
    answer = valid("Subgraph", ask(reader, "expand", entities=["billing"], hops=2, direction="out"))
    names = {node["name"]: node["distance"] for node in answer["nodes"]}
    assert names == {"billing": 0, "ledger": 1, "team-b": 1, "postgres": 2, "finance": 2}
    assert ("ledger", "postgres") in {(edge["from"], edge["to"]) for edge in answer["edges"]}
    ways = {path["node"]: path["facts"] for path in answer["paths"]}
    ids = {edge["fact"]["factId"]: edge["to"] for edge in answer["edges"]}
    assert [ids[fact_id] for fact_id in ways["postgres"]] == ["ledger", "postgres"]
    assert not answer["truncated"]


def test_an_expansion_says_that_it_was_cut(reader: Caller) -> None:
    answer = ask(reader, "expand", entities=["billing"], fanOut=1, predicates=[])
    assert (answer["truncated"], answer["cut"]) == (True, ["billing"])


def test_an_expansion_keeps_to_its_predicates_domains_and_time(reader: Caller) -> None:
    def reached(**fields: Any) -> set[str]:
        answer = ask(reader, "expand", entities=["billing"], hops=3, direction="out", **fields)
        return {node["name"] for node in answer["nodes"]} - {"billing"}

    assert reached(predicates=["DEPENDS_ON"]) == {"ledger", "postgres"}
    assert reached(domains=["architecture"]) == {"ledger", "team-b"}
    assert reached(asOf="2024-06", domains=["architecture"]) == {"ledger", "team-a"}
    assert reached(minTrust="SourceFact", source="hr") == set()


def test_paths_are_the_shortest_chains(reader: Caller) -> None:
    answer = valid("FactPaths", ask(reader, "paths", from_="billing", to="Postgres"))
    (path,) = answer["paths"]
    assert path["hops"] == 2
    assert [found["object"] for found in path["facts"]] == ["ledger", "postgres"]
    assert ask(reader, "paths", from_="billing", to="postgres", maxHops=1)["paths"] == []
    assert ask(reader, "paths", from_="billing", to="postgres", direction="in")["paths"] == []
    assert ask(reader, "paths", from_="billing", to="nothing")["paths"] == []


def test_a_history_keeps_what_is_believed_no_longer(caller_factory: CallerFactory) -> None:
    caller = caller_factory("graph-history", scopes=WRITER)
    wrong = tell_one(caller, fact("billing", "OWNED_BY", "team-x", validFrom="2023"))
    tell(caller, fact("billing", "OWNED_BY", "team-a", validFrom="2023", corrects=wrong))
    tell(caller, fact("billing", "OWNED_BY", "team-b", validFrom="2025"))
    answer = valid("FactHistory", ask(caller, "history", entity="BILLING", predicate="OWNED_BY"))
    told = [(found["object"], found["closing"]) for found in answer["facts"]]
    assert sorted(told, key=str) == [("team-a", None), ("team-b", None), ("team-x", "corrected")]
    assert not answer["truncated"]
    assert ask(caller, "history", entity="billing", limit=1)["truncated"]
    assert objects(caller, subject="billing", asOf="2024") == ["team-a"]


def test_a_deadline_ends_a_question_and_leaves_the_service_well(reader: Caller) -> None:
    statuses = set()
    for _ in range(20):
        response = reader.post(
            f"{GRAPH}/expand",
            {"projectId": "p1", "entities": ["billing"], "hops": 3},
            X_Request_Timeout_Ms="1",
        )
        statuses.add(response.status_code)
        if response.status_code != 200:
            assert_problem(response, 504, "deadline")
    assert 504 in statuses
    assert objects(reader, subject="ledger") == ["postgres"]


@pytest.mark.parametrize("operation", ["query", "expand", "paths", "history"])
def test_a_deadline_that_is_no_number_is_refused(reader: Caller, operation: str) -> None:
    headers = {**reader.headers, "X-Request-Timeout-Ms": "soon"}
    response = http().post(f"{reader.url}{GRAPH}/{operation}", headers=headers, json={})
    assert_problem(response, 422, "x-request-timeout-ms")


def test_a_search_answers_with_facts_that_are_cited_like_chunks(reader: Caller) -> None:
    answer = reader.search("who owns billing", asOf="2024-06")
    schema = {"$ref": "#/components/schemas/Answer", "components": openapi()["components"]}
    assert [error.message for error in Draft202012Validator(schema).iter_errors(answer)] == []
    (ended,) = facts(reader, subject="billing", predicate="OWNED_BY", asOf="2024-06")
    cited = [found["citation"] for found in answer["candidates"] if found["type"] == "fact"]
    assert ended["factId"] in [citation["factId"] for citation in cited]
    with KnowledgeClient(reader.url, reader.client_id, reader.secret) as client:
        found = client.search("who owns billing", project_id="p1", asOf="2024-06").candidates
    assert str(found[0].citation.fact_id) == answer["candidates"][0]["citation"]["factId"]
    assert (found[0].type, found[0].citation.path) == ("fact", None)


def test_the_python_client_tells_and_asks(reader: Caller) -> None:
    with KnowledgeClient(reader.url, reader.client_id, reader.secret) as client:
        said = [
            fact("client-a", "USES", "client-b", validFrom="2024"),
            fact("client-b", "USES", "c"),
        ]
        written = client.assert_facts(said, project_id="p1", idempotency_key="of-the-client")
        assert (written.added, len(written.fact_ids), written.closed) == (2, 2, ())
        again = client.assert_facts(said, project_id="p1", idempotency_key="of-the-client")
        assert again == written
        page = client.query_facts(project_id="p1", subject="client-a", asOf="2024-05")
        assert page.facts[0].object == "client-b"
        assert page.facts[0].valid_from == datetime(2024, 1, 1, tzinfo=UTC)
        graph = client.expand(["client-a"], project_id="p1", hops=2, direction="out")
        assert [(edge.source, edge.target) for edge in graph.edges] == [
            ("client-a", "client-b"),
            ("client-b", "c"),
        ]
        ways = client.paths("client-a", "c", project_id="p1").paths
        assert [way.hops for way in ways] == [2]
        ended = client.assert_facts([], project_id="p1", retract=[written.fact_ids[1]])
        assert [(closed.fact_id, closed.reason) for closed in ended.closed] == [
            (written.fact_ids[1], "retracted")
        ]
        told = client.history("client-b", project_id="p1", predicate="USES")
        closings = {(found.subject, found.object): found.closing for found in told.facts}
        assert closings == {("client-a", "client-b"): None, ("client-b", "c"): "retracted"}
        assert (told.entity, told.truncated) == ("client-b", False)


def test_the_python_client_decides_on_suggestions(caller_factory: CallerFactory) -> None:
    admin = caller_factory("graph-deciding-client", scopes=EVERYTHING)
    with KnowledgeClient(admin.url, admin.client_id, admin.secret) as client:
        said = [fact("a", "USES", "b"), fact("c", "USES", "d")]
        assert client.assert_facts(said, project_id="p1").suggested == 2
        first = client.suggestions(project_id="p1", limit=1)
        rest = client.suggestions(project_id="p1", limit=1, cursor=first.next_cursor)
        assert rest.next_cursor is None
        (yes,), (no,) = first.facts, rest.facts
        confirmed = client.confirm(yes.fact_id, project_id="p1")
        assert (confirmed.fact_id, confirmed.suggestion) == (yes.fact_id, "confirmed")
        assert client.reject(str(no.fact_id), project_id="p1").suggestion == "rejected"
        assert client.suggestions(project_id="p1").facts == ()
        with pytest.raises(RequestRefused, match="there is no suggestion"):
            client.confirm("x", project_id="p1")
