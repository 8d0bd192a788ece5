"""Facts of one session, promoted, verified and forgotten; and what crossed tenants meet."""

from __future__ import annotations

import pytest

from knowledge.model.scope import ADMIN, READ, WRITE
from knowledge.runtime import Runtime
from knowledge.stack.process import wait_until
from tests.retrieval_api.conftest import CallerFactory
from tests.retrieval_api.memory import (
    call,
    ids,
    names,
    recall,
    tell,
    try_call,
    wait_for_vectors,
)
from tests.retrieval_api.service import BASE, Caller, assert_problem

SHARED = ("build", "USES", "make")
PRIVATE = ("build", "BROKEN_BY", "the new linter")


@pytest.fixture
def agent(caller_factory: CallerFactory, tenant: str) -> Caller:
    return caller_factory(tenant, scopes=(READ, WRITE))


@pytest.fixture
def told(agent: Caller) -> list[str]:
    """Ids of a fact of session s1, and of one that everyone shares."""
    private = tell(agent, PRIVATE, scope="session")
    return ids(private) + ids(tell(agent, SHARED))


def test_facts_of_a_session_are_recalled_by_it_alone(agent: Caller, told: list[str]) -> None:
    assert recall(agent, "build") == {SHARED}
    assert recall(agent, "build", sessionId="s2") == {SHARED}
    assert recall(agent, "build", sessionId="s1") == {SHARED, PRIVATE}
    assert recall(agent, "build", sessionId="s1", shared=False) == {PRIVATE}
    assert "the new linter" not in names(call(agent, "search", query="linter"))
    assert "the new linter" in names(call(agent, "search", query="linter", sessionId="s1"))
    found = agent.post(f"{BASE}/graph/query", {"projectId": "p1", "subject": "build"}).json()
    assert [fact["object"] for fact in found["facts"]] == ["make"]


def test_a_promoted_fact_is_shared_and_as_trusted_as_before(agent: Caller, told: list[str]) -> None:
    done = call(agent, "promote", sessionId="s1")
    assert [each["factId"] for each in done["promoted"]] == told[:1]
    answer = call(agent, "recall", query="linter build")
    assert {fact["trustTier"] for fact in answer["facts"]} == {"AgentObservation"}
    assert recall(agent, "build") == {SHARED, PRIVATE}
    assert recall(agent, "build", sessionId="s1", shared=False) == set()
    assert call(agent, "promote", sessionId="s1")["promoted"] == []
    again = tell(agent, PRIVATE, scope="session")
    assert again["facts"][0]["state"] == "ended"
    assert_problem(try_call(agent, "promote", factIds=told[1:]), 404, "of one session")


def test_another_agents_facts_are_not_promoted_or_forgotten(
    agent: Caller, told: list[str], caller_factory: CallerFactory, tenant: str
) -> None:
    other = caller_factory(tenant, scopes=(READ, WRITE))
    assert_problem(try_call(other, "promote", factIds=told[:1]), 403, "told by another")
    assert_problem(try_call(other, "forget", factIds=told[1:]), 403, "told by another")
    admin = caller_factory(tenant, scopes=(READ, WRITE, ADMIN))
    assert call(admin, "forget", factIds=told[1:])["counts"]["facts"] == 1


def test_a_person_verifies_and_no_tier_rises(
    agent: Caller, told: list[str], caller_factory: CallerFactory, tenant: str
) -> None:
    assert_problem(try_call(agent, "verify", factIds=told[1:], verified=True), 403)
    admin = caller_factory(tenant, scopes=(READ, WRITE, ADMIN))
    done = call(admin, "verify", factIds=told[1:], verified=True)
    assert (done["verified"], done["verifiedBy"]) == (1, admin.client_id)
    assert call(admin, "verify", factIds=told[1:], verified=True)["unchanged"] == 1
    (fact,) = call(agent, "recall", query="build")["facts"]
    assert (fact["verified"], fact["trustTier"]) == (True, "AgentObservation")
    tell(agent, SHARED, sessionId="s9")  # told again it stays verified
    (fact,) = call(agent, "recall", query="build")["facts"]
    assert (fact["verified"], fact["sessionId"]) == (True, "s9")
    assert fact["verifiedBy"] == admin.client_id


@pytest.mark.parametrize(
    ("chosen", "left"),
    [
        ({"entity": "the new linter"}, {SHARED}),
        ({"sessionId": "s1"}, set()),
        ({"everything": True}, set()),
    ],
)
def test_what_is_forgotten_is_in_no_store(
    agent: Caller,
    told: list[str],
    chosen: dict[str, object],
    left: set[tuple[str, str, str]],
    runtime: Runtime,
    tenant: str,
) -> None:
    wait_for_vectors(agent)
    tell(agent, ("lorry park", "USES", "barriers"))
    cited = agent.search("who breaks the build, the new linter or make")
    found = [each["citation"] for each in cited["candidates"] if each["type"] == "fact"]
    is_cited = any(citation["factId"] in told for citation in found)
    path = f"{BASE}/queries/{cited['queryId']}"
    assert wait_until(lambda: agent.get(path).status_code == 200, 10)
    receipt = call(agent, "forget", **chosen)
    assert receipt["counts"]["facts"] >= 1
    assert is_cited
    assert receipt["counts"]["citations"] == (0 if "entity" in chosen else 1)
    assert receipt["receiptId"] and receipt["forgottenAt"]
    assert recall(agent, "build", sessionId="s1") == left
    assert "the new linter" not in names(call(agent, "search", query="new linter", sessionId="s1"))
    with runtime.owner.transaction() as connection:
        for table, column in (
            ("graph_facts", "object_key"),
            ("memory_vectors", "name_key"),
        ):
            held = connection.execute(
                f"select count(*) as held from {table} where tenant_id = %s and {column} like '%%linter%%'",
                [tenant],
            ).fetchone()
            assert held == {"held": 0}, table
        kept = connection.execute(
            "select asked, counts from memory_receipts where tenant_id = %s", [tenant]
        ).fetchone()
    assert kept is not None
    assert "linter" not in str(kept)


def test_a_session_is_forgotten_with_what_it_shared_and_not_what_others_told_too(
    agent: Caller, told: list[str]
) -> None:
    call(agent, "promote", sessionId="s1")
    tell(agent, ("build", "RUNS_ON", "linux"), sessionId="s2")
    tell(agent, ("build", "RUNS_ON", "linux"), sessionId="s1")
    receipt = call(agent, "forget", sessionId="s1")
    assert receipt["counts"]["toldElsewhere"] == 1
    assert recall(agent, "build", sessionId="s1") == {("build", "RUNS_ON", "linux")}
    response = try_call(agent, "forget", sessionId="s1")
    assert_problem(response, 404, "told in another as well")


def test_a_promoted_fact_is_forgotten_with_the_one_it_was(
    agent: Caller, told: list[str], runtime: Runtime, tenant: str
) -> None:
    (promoted,) = call(agent, "promote", factIds=told[:1])["promoted"]
    receipt = call(agent, "forget", factIds=[promoted["as"]])
    assert receipt["counts"]["facts"] == 2
    with runtime.owner.transaction() as connection:
        row = connection.execute(
            "select count(*) as held from graph_facts where tenant_id = %s and object like '%%linter'",
            [tenant],
        ).fetchone()
    assert row == {"held": 0}
    assert tell(agent, PRIVATE, scope="session")["facts"][0]["state"] == "added"


def test_forgetting_leaves_the_merges_that_another_project_needs(
    agent: Caller, caller_factory: CallerFactory, tenant: str, runtime: Runtime
) -> None:
    from knowledge.storage.postgres import catalogue
    from knowledge.storage.postgres.facts import entities

    catalogue.ensure_project(runtime.owner, tenant, "p2")
    sibling = caller_factory(tenant, projects=("p2",), scopes=(READ, WRITE))
    tell(agent, ("pay svc", "USES", "redis"))
    tell(sibling, ("payments", "OWNED_BY", "team green"))
    merge = {"name": "pay svc", "into": "payments", "reason": "same", "by": "operator"}
    entities.merge(runtime.app, tenant, namespace=f"{tenant}|main", **merge)
    wanted = {("payments", "OWNED_BY", "team green")}
    assert recall(sibling, "pay svc") == wanted
    assert call(agent, "forget", entity="pay svc")["counts"]["merges"] == 0
    assert recall(sibling, "pay svc") == wanted
    assert call(sibling, "forget", entity="payments")["counts"]["merges"] == 1


def test_what_is_forgotten_can_be_told_anew(agent: Caller, told: list[str]) -> None:
    call(agent, "forget", factIds=told[1:])
    assert tell(agent, SHARED)["counts"]["added"] == 1
    assert recall(agent, "build") == {SHARED}
    assert_problem(try_call(agent, "forget", entity="nobody knows"), 404, "nothing in the memory")


def test_facts_of_two_memories_do_not_contradict_one_another(agent: Caller) -> None:
    status = {"subject": "svc", "predicate": "HAS_STATUS", "validFrom": "2024", "validTo": "2030"}
    tell(agent, triples=[{**status, "object": "up"}])
    tell(agent, triples=[{**status, "object": "down"}], graph="archive")
    for graph, object_ in (("main", "up"), ("archive", "down")):
        (fact,) = call(agent, "recall", query="svc", graph=graph, asOf="2024-06")["facts"]
        assert fact["object"] == object_
        assert "contradicts" not in fact


def test_tenants_projects_and_graphs_never_meet(
    agent: Caller, caller_factory: CallerFactory, tenant: str, runtime: Runtime
) -> None:
    from knowledge.storage.postgres import catalogue

    catalogue.ensure_project(runtime.owner, tenant, "p2")
    catalogue.ensure_project(runtime.owner, f"{tenant}-x", "p1")
    sibling = caller_factory(tenant, projects=("p2",), scopes=(READ, WRITE))
    foreign = caller_factory(f"{tenant}-x", scopes=(READ, WRITE))
    tell(agent, ("vault", "HOLDS", "gold"))
    tell(sibling, ("vault", "HOLDS", "silver"))
    tell(foreign, ("vault", "HOLDS", "lead"))
    tell(agent, ("vault", "HOLDS", "paper"), graph="archive")
    assert recall(agent, "vault") == {("vault", "HOLDS", "gold")}
    assert recall(sibling, "vault") == {("vault", "HOLDS", "silver")}
    assert recall(foreign, "vault") == {("vault", "HOLDS", "lead")}
    assert recall(agent, "vault", graph="archive") == {("vault", "HOLDS", "paper")}
    assert recall(agent, "vault", graph=f"{tenant}|archive") == {("vault", "HOLDS", "paper")}
    for operation, body in (
        ("recall", {"query": "vault"}),
        ("search", {"query": "vault"}),
        ("subgraph", {"entities": ["vault"]}),
        ("forget", {"everything": True}),
    ):
        response = try_call(foreign, operation, graph=f"{tenant}|main", **body)
        assert_problem(response, 404, "there is no memory")
    (gold,) = ids(tell(agent, ("vault", "HOLDS", "gold")))
    assert_problem(try_call(foreign, "forget", factIds=[gold]), 404)
    assert_problem(try_call(sibling, "forget", factIds=[gold]), 404)


def test_a_revoked_client_recalls_nothing_from_its_next_call_on(
    agent: Caller, told: list[str], runtime: Runtime
) -> None:
    from knowledge.storage.postgres import catalogue

    assert recall(agent, "build") == {SHARED}
    catalogue.revoke_client(runtime.owner, agent.client_id)
    assert_problem(try_call(agent, "recall", query="build"), 401)
    assert_problem(try_call(agent, "recall", query="hello"), 401)
