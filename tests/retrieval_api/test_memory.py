"""Agent memory over HTTP: told, found again, bounded, and kept apart."""

from __future__ import annotations

from typing import Any

import pytest

from knowledge.model.scope import READ, WRITE
from knowledge.stack.process import wait_until
from tests.retrieval_api.conftest import CallerFactory
from tests.retrieval_api.service import BASE, Caller, assert_problem

MEMORY = f"{BASE}/memory"


@pytest.fixture
def agent(caller_factory: CallerFactory, tenant: str) -> Caller:
    return caller_factory(tenant, scopes=(READ, WRITE))


def call(caller: Caller, operation: str, **body: Any) -> dict[str, Any]:
    response = caller.post(f"{MEMORY}/{operation}", body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def tell(caller: Caller, *triples: tuple[str, str, str], **more: Any) -> dict[str, Any]:
    body = {"client": "tests", "sessionId": "s1", **more}
    body["triples"] = [{"subject": s, "predicate": p, "object": o} for s, p, o in triples]
    return call(caller, "upsert", **body)


def said(answer: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(f["subject"], f["predicate"], f["object"]) for f in answer["facts"]}


def test_what_was_told_is_recalled_at_once(agent: Caller) -> None:
    written = tell(agent, ("billing-service", "DEPENDS_ON", "ledger"), ("ledger", "USES", "postgres"))
    assert written["counts"]["added"] == 2
    assert written["open"] == {"facts": 2, "entities": 3}
    answer = call(agent, "recall", query="how does the billing service work")
    assert answer["skipped"] is None
    assert [e["name"] for e in answer["entities"]][0] == "billing-service"
    assert ("billing-service", "DEPENDS_ON", "ledger") in said(answer)
    assert answer["facts"][0]["trustTier"] == "AgentObservation"
    assert answer["facts"][0]["sessionId"] == "s1"
    assert "data" in answer["notice"]
    tell(agent, ("billing-service", "OWNED_BY", "team payments"))
    answer = call(agent, "recall", query="billing-service", hops=2)
    assert said(answer) >= {("billing-service", "OWNED_BY", "team payments"), ("ledger", "USES", "postgres")}


def test_the_same_call_again_changes_nothing(agent: Caller) -> None:
    triples = ("cache", "USES", "redis"), ("cache", "RUNS_ON", "node-7")
    first, again = tell(agent, *triples), tell(agent, *triples)
    assert (first["counts"]["added"], again["counts"]["added"]) == (2, 0)
    assert again["counts"]["unchanged"] == 2
    assert [f["factId"] for f in first["facts"]] == [f["factId"] for f in again["facts"]]


def test_a_name_is_found_by_what_it_means_once_it_has_a_vector(agent: Caller) -> None:
    tell(agent, ("automobile", "OWNED_BY", "the attorney"))
    wait_for_vectors(agent)
    answer = call(agent, "recall", query="whose car is it")
    assert answer["mode"] == "hybrid"
    assert answer["embeddingProfileVersion"] == "minilm@1"
    assert {"name": "automobile", "type": None, "via": "vector"} in answer["entities"]
    assert ("automobile", "OWNED_BY", "the attorney") in said(answer)


def wait_for_vectors(caller: Caller) -> None:
    """Until the names that were just told are found by meaning too."""
    probe = tell(caller, ("a lorry", "OWNED_BY", "nobody at all"))
    assert probe["counts"]["refused"] == 0

    def is_found() -> bool:
        answer = call(caller, "search", query="truck")
        return any(entity["name"] == "a lorry" for entity in answer["entities"])

    assert wait_until(is_found, 20)
