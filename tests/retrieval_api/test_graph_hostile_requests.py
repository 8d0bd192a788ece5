"""Strange facts and strange questions about them, the same each time: never a failure."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.graph.telling import fact
from tests.retrieval_api.conftest import CallerFactory
from tests.retrieval_api.graph import EVERYTHING, GRAPH, facts, tell
from tests.retrieval_api.service import Caller
from tests.retrieval_api.test_graph_bad_requests import OPERATIONS
from tests.retrieval_api.test_hostile_requests import VALUES

ROUNDS = 300
QUESTION_FIELDS = [
    "projectId", "domains", "subject", "predicate", "object", "subjectType", "objectType",
    "namespace", "asOf", "between", "asKnownAt", "minTrust", "verified", "source", "suggestions",
    "limit", "cursor", "entities", "hops", "direction", "predicates", "maxNodes", "maxEdges",
    "fanOut", "from", "to", "maxHops", "entity", "tenantId",
]  # fmt: skip
FACT_FIELDS = [
    "subject", "subjectType", "predicate", "object", "objectType", "domain", "namespace",
    "validFrom", "validTo", "observedAt", "confidence", "trustTier", "verified", "sourceId",
    "sourceVersion", "client", "model", "sessionId", "acl", "collection", "chunkId", "corrects",
    "tenantId",
]  # fmt: skip
STRANGE = [
    *VALUES, 2024, "2024", "2024-05", ["2024", "2025"], ["a", "b"], "out", "both", "CAUSED_BY",
    10**400, [[["a"]]], ["\ud800"], ["\0"], ["user:\udfff"], {"\ud800": "\0"}, "default",
    "İ", "ﬀ" * 300, "é" * 512, "\u200b", "\u2028", [None], [True], ["code"], "customer",
]  # fmt: skip


@pytest.fixture(scope="module")
def caller(caller_factory: CallerFactory) -> Caller:
    made = caller_factory("graph-strange", scopes=EVERYTHING)
    tell(made, fact("a", "CAUSED_BY", "b"))
    return made


def test_hostile_questions_are_answered_or_refused(caller: Caller) -> None:
    chance = random.Random(21)
    statuses: dict[int, int] = {}
    for _ in range(ROUNDS):
        operation = chance.choice(list(OPERATIONS))
        body: dict[str, Any] = {"projectId": "p1", **OPERATIONS[operation]}
        fields = [name for name in QUESTION_FIELDS if chance.random() < 0.1]
        body |= {name: chance.choice(STRANGE) for name in fields}
        response = caller.post_raw(f"{GRAPH}/{operation}", json.dumps(body).encode())
        assert response.status_code in (200, 400, 404, 422), (operation, body, response.text)
        statuses[response.status_code] = statuses.get(response.status_code, 0) + 1
    assert statuses[200] > 10
    assert statuses[422] > ROUNDS // 4


def test_hostile_facts_are_written_or_refused(caller_factory: CallerFactory) -> None:
    chance = random.Random(22)
    caller = caller_factory("graph-hostile", scopes=EVERYTHING)
    statuses: dict[int, int] = {}
    for number in range(ROUNDS):
        said = fact(f"s{number}", "CAUSED_BY", "o")
        for name in [name for name in FACT_FIELDS if chance.random() < 0.08]:
            said[name] = chance.choice(STRANGE)
        body = {"projectId": "p1", "facts": [said]}
        response = caller.post_raw(f"{GRAPH}/facts", json.dumps(body).encode())
        assert response.status_code in (200, 403, 404, 422), (body, response.text)
        statuses[response.status_code] = statuses.get(response.status_code, 0) + 1
    assert statuses[200] > ROUNDS // 10
    assert statuses[422] > ROUNDS // 3
    known = facts(caller, limit=1000, between=["0001", "9999"])
    assert len(known) <= statuses[200]
    assert {found["tenantId"] for found in known} == {"graph-hostile"}


@pytest.mark.parametrize("name", FACT_FIELDS[:-1])
def test_every_field_of_a_fact_survives_every_strange_value(caller: Caller, name: str) -> None:
    for value in STRANGE:
        body = {"projectId": "p1", "facts": [fact("strange", "CAUSED_BY", "o") | {name: value}]}
        response = caller.post_raw(f"{GRAPH}/facts", json.dumps(body).encode())
        assert response.status_code in (200, 403, 404, 422), (name, value, response.text)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_field_of_a_question_survives_every_strange_value(
    caller: Caller, operation: str
) -> None:
    for name in QUESTION_FIELDS:
        for value in STRANGE:
            body = {"projectId": "p1", **OPERATIONS[operation], name: value}
            response = caller.post_raw(f"{GRAPH}/{operation}", json.dumps(body).encode())
            assert response.status_code in (200, 404, 422), (name, value, response.text)
