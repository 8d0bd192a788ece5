"""Facts of agents over HTTP: told, found again by name and meaning, bounded, counted."""

from __future__ import annotations

import json

import pytest

from knowledge.model.scope import READ, WRITE
from tests.retrieval_api.conftest import CallerFactory
from tests.retrieval_api.memory import call, ids, names, recall, said, tell, wait_for_vectors
from tests.retrieval_api.service import BASE, Caller, http


@pytest.fixture
def agent(caller_factory: CallerFactory, tenant: str) -> Caller:
    return caller_factory(tenant, scopes=(READ, WRITE))


def test_what_was_told_is_recalled_at_once(agent: Caller) -> None:
    written = tell(
        agent, ("billing-service", "DEPENDS_ON", "ledger"), ("ledger", "USES", "postgres")
    )
    assert written["counts"]["added"] == 2
    assert written["open"] == {"facts": 2, "entities": 3}
    answer = call(agent, "recall", query="how does the billing service work")
    assert answer["skipped"] is None
    assert names(answer)[0] == "billing-service"
    assert ("billing-service", "DEPENDS_ON", "ledger") in said(answer)
    assert answer["facts"][0]["trustTier"] == "AgentObservation"
    assert answer["facts"][0]["sessionId"] == "s1"
    assert "data" in answer["notice"]
    tell(agent, ("billing-service", "OWNED_BY", "team payments"))
    assert recall(agent, "billing-service", hops=2) >= {
        ("billing-service", "OWNED_BY", "team payments"),
        ("ledger", "USES", "postgres"),
    }


def test_an_answer_names_what_it_rests_on(agent: Caller) -> None:
    tell(agent, ("api", "USES", "uvicorn"), client="claude-code", model="opus", sessionId="abc")
    answer = call(agent, "recall", query="api")
    (fact,) = answer["facts"]
    assert (fact["client"], fact["model"], fact["sessionId"]) == ("claude-code", "opus", "abc")
    assert answer["asKnownAt"] and answer["asOf"]
    assert answer["scope"]["principal"] == agent.client_id
    assert answer["namespace"] == f"{answer['scope']['tenantId']}|main"


def test_the_same_call_again_changes_nothing(agent: Caller) -> None:
    told = ("cache", "USES", "redis"), ("cache", "RUNS_ON", "node-7")
    first, again = tell(agent, *told), tell(agent, *told)
    assert (first["counts"]["added"], again["counts"]["added"]) == (2, 0)
    assert again["counts"]["unchanged"] == 2
    assert ids(first) == ids(again)
    other_session = tell(agent, *told, sessionId="s2")
    assert (other_session["counts"]["restated"], other_session["open"]["facts"]) == (2, 2)


def test_a_call_with_a_key_is_answered_as_the_first_time(agent: Caller) -> None:
    first = tell(agent, ("queue", "USES", "rabbitmq"), key="k1")
    assert tell(agent, ("queue", "USES", "rabbitmq"), key="k1") == first
    assert first["counts"]["added"] == 1


def test_a_name_is_found_by_what_it_means_once_it_has_a_vector(agent: Caller) -> None:
    tell(agent, ("automobile", "OWNED_BY", "the attorney"))
    wait_for_vectors(agent)
    answer = call(agent, "recall", query="whose car is it")
    assert answer["mode"] == "hybrid"
    assert answer["embeddingProfileVersion"] == "minilm@1"
    assert {"name": "automobile", "type": None, "via": "vector"} in answer["entities"]
    assert ("automobile", "OWNED_BY", "the attorney") in said(answer)
    both = call(agent, "search", query="the automobile")["entities"][0]
    assert (both["name"], both["via"], both["facts"]) == ("automobile", "both", 1)


def test_a_functional_fact_ends_the_one_before_and_both_are_remembered(agent: Caller) -> None:
    old = {"subject": "pay", "predicate": "HAS_STATUS", "object": "beta", "validFrom": "2024"}
    new = {**old, "object": "live", "validFrom": "2025"}
    tell(agent, triples=[old])
    written = tell(agent, triples=[new])
    assert [each["reason"] for each in written["closed"]] == ["superseded"]
    assert recall(agent, "pay") == {("pay", "HAS_STATUS", "live")}
    assert recall(agent, "pay", asOf="2024-06") == {("pay", "HAS_STATUS", "beta")}


def test_what_goes_back_to_what_it_was_is_in_force_again(agent: Caller) -> None:
    def told(owner: str) -> str:
        state: str = tell(agent, ("kiln", "OWNED_BY", owner))["facts"][0]["state"]
        return state

    assert [told("red"), told("blue"), told("red"), told("red")] == [
        "added",
        "added",
        "added",
        "unchanged",
    ]
    assert recall(agent, "kiln") == {("kiln", "OWNED_BY", "red")}


def test_a_name_that_is_no_word_is_found_as_it_stands(agent: Caller) -> None:
    tell(agent, ("🔥", "MEANS", "an incident"), ("hello", "SAID_BY", "the greeter"))
    assert recall(agent, "🔥") == {("🔥", "MEANS", "an incident")}
    assert recall(agent, "Hello") == {("hello", "SAID_BY", "the greeter")}
    assert names(call(agent, "search", query="🔥"))[0] == "🔥"


@pytest.mark.parametrize(
    "greeting",
    [
        "hello!",
        "Guten Morgen",
        "bonjour",
        "¡Hola!",
        "привет",
        "你好",
        "ありがとう",
        "مرحبا",
        "thanks",
    ],
)
def test_a_greeting_recalls_nothing_and_says_so(agent: Caller, greeting: str) -> None:
    tell(agent, ("hello-service", "SAYS", "hello"))
    answer = call(agent, "recall", query=greeting)
    assert (answer["skipped"], answer["facts"], answer["entities"]) == ("greeting", [], [])


@pytest.mark.parametrize("query", ["", "   ", "?!…", "👋🏽 🎉", "---", "\u200d\ufe0f"])
def test_a_query_without_a_word_recalls_nothing(agent: Caller, query: str) -> None:
    assert call(agent, "recall", query=query)["skipped"] == "no words"


def test_an_answer_keeps_within_its_tokens_and_counts_what_it_leaves_out(agent: Caller) -> None:
    many = [("hub", "CONNECTS_TO", f"a peer with quite a long name, number {n}") for n in range(60)]
    tell(agent, *many)
    answer = call(agent, "recall", query="hub")
    assert answer["tokens"] <= 2000
    assert 5 <= len(answer["facts"]) <= 40
    assert answer["truncated"] > 0
    short = call(agent, "recall", query="hub", maxTokens=700)
    assert short["tokens"] <= 700
    assert 0 < len(short["facts"]) < len(answer["facts"])
    few = call(agent, "subgraph", entities=["hub"], limit=3)
    assert len(few["facts"]) == 3


@pytest.mark.parametrize("max_tokens", [500, 900, 2000])
def test_long_names_keep_within_the_tokens_too(agent: Caller, max_tokens: int) -> None:
    long = [f"служба {n} " + "ж" * 100 for n in range(12)]
    tell(agent, *[(name, "NEXT_TO", long[0]) for name in long])
    for operation, asked in (
        ("recall", {"query": "служба"}),
        ("subgraph", {"entities": long[:8]}),
    ):
        answer = call(agent, operation, maxTokens=max_tokens, **asked)
        written = json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode()
        assert len(written) / 3 <= max_tokens
        assert answer["tokens"] <= max_tokens
        assert answer["truncated"] + len(answer["facts"]) >= 11


def test_facts_of_every_entity_asked_for_are_answered(agent: Caller) -> None:
    tell(agent, *[("alpha", "CONNECTS_TO", f"peer {n}") for n in range(50)])
    tell(agent, ("beta", "OWNED_BY", "team b"))
    found = recall(agent, "what do alpha and beta have in common", limit=10)
    assert ("beta", "OWNED_BY", "team b") in found
    assert len(found) == 10


def test_the_surroundings_of_an_entity_are_nodes_and_facts(agent: Caller) -> None:
    tell(agent, ("web", "DEPENDS_ON", "api"), ("api", "DEPENDS_ON", "db"))
    answer = call(agent, "subgraph", entities=["WEB"], hops=2)
    assert {(e["name"].lower(), e["distance"]) for e in answer["entities"]} == {
        ("web", 0),
        ("api", 1),
        ("db", 2),
    }
    assert said(answer) == {("web", "DEPENDS_ON", "api"), ("api", "DEPENDS_ON", "db")}


def test_recalls_are_counted_by_tenant_and_mode_and_nothing_else(agent: Caller) -> None:
    tell(agent, ("canarybird", "SINGS_IN", "the mine"))
    call(agent, "recall", query="canarybird")
    call(agent, "recall", query="hello")
    text = http().get(f"{agent.url}/metrics").text
    tenant = call(agent, "recall", query="canarybird")["scope"]["tenantId"]
    lines = [line for line in text.splitlines() if "memory_recalls_total{" in line]
    mine = {line.split("{")[1].split("}")[0] for line in lines if f'tenant="{tenant}"' in line}
    assert f'mode="skipped",tenant="{tenant}"' in mine
    assert len(mine) == 2
    assert "canarybird" not in text


def test_every_name_that_may_be_read_is_listed_for_clients_that_keep_them(agent: Caller) -> None:
    tell(agent, ("web", "DEPENDS_ON", "api"))
    listed = agent.get(f"{BASE}/memory/names", params={"projectId": "p1"}).json()
    assert [each["name"] for each in listed["entities"]] == ["api", "web"]
    assert listed["asKnownAt"]
