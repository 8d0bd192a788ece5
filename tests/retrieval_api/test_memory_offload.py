"""Turns handed over HTTP: accepted at once, read for facts, and left nowhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from knowledge.home import Home
from knowledge.model.scope import READ, WRITE
from knowledge.runtime import Runtime
from knowledge.stack.process import wait_until
from knowledge.storage.postgres import catalogue
from tests.memory.llm_server import LlmServer, garbage, good, hangs, lies, running_llm
from tests.retrieval_api.conftest import CallerFactory
from tests.retrieval_api.memory import MEMORY, call, recall, tell, try_call
from tests.retrieval_api.service import Caller, assert_problem, caller, serving

TELLER = {"client": "tests", "sessionId": "s1"}
TURNS = [
    {"role": "user", "content": "The checkout service depends on PaymentGateway."},
    {"role": "assistant", "content": "Noted: I prefer pnpm as well."},
]


@pytest.fixture
def agent(caller_factory: CallerFactory, tenant: str) -> Caller:
    return caller_factory(tenant, scopes=(READ, WRITE))


def hand_over(agent: Caller, turns: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Offload, wait for the end of the job, and give its last status."""
    response = try_call(agent, "offload", turns=turns, **{**TELLER, **more})
    assert response.status_code == 202, response.text
    return ended(agent, response.json()["jobId"])


def ended(agent: Caller, job_id: str) -> dict[str, Any]:
    status: dict[str, Any] = {}

    def has_ended() -> bool:
        status.update(agent.get(f"{MEMORY}/jobs/{job_id}").json())
        return status["state"] in ("done", "failed")

    assert wait_until(has_ended, 60), status
    return status


def test_without_a_model_grammar_finds_facts_and_the_job_says_so(agent: Caller) -> None:
    started = time.monotonic()
    response = try_call(agent, "offload", turns=TURNS, **TELLER)
    assert time.monotonic() - started < 1
    accepted = response.json()
    assert (response.status_code, accepted["state"], accepted["turns"]) == (202, "queued", 2)
    job = ended(agent, accepted["jobId"])
    assert (job["state"], job["extractor"]) == ("done", "spacy"), job
    assert "no language model is configured" in job["extractorReason"]
    assert job["facts"]["added"] >= 1
    facts = call(agent, "recall", query="what does the checkout service depend on")["facts"]
    (fact,) = [f for f in facts if f["predicate"] == "DEPENDS_ON"]
    assert fact["object"] == "PaymentGateway"
    assert (fact["trustTier"], fact["client"]) == ("UnverifiedMemory", "tests")
    assert fact["model"] == job["model"]


def test_what_is_offloaded_again_raises_no_tier_and_adds_nothing(agent: Caller) -> None:
    first, again = hand_over(agent, TURNS), hand_over(agent, TURNS)
    assert first["facts"]["added"] >= 1
    assert again["facts"]["added"] == 0
    tell(agent, ("checkout service", "DEPENDS_ON", "PaymentGateway"))
    facts = call(agent, "recall", query="checkout service")["facts"]
    tiers = [f["trustTier"] for f in facts if f["predicate"] == "DEPENDS_ON"]
    assert tiers == ["AgentObservation", "UnverifiedMemory"]


def test_a_lower_tier_contradicts_a_higher_one_and_both_are_marked(agent: Caller) -> None:
    told = {"subject": "checkout", "predicate": "OWNED_BY", "object": "team a", "validFrom": "2024"}
    tell(agent, triples=[told])
    hand_over(agent, [{"role": "user", "content": "checkout is owned by Grace."}])
    facts = call(agent, "recall", query="who owns checkout")["facts"]
    assert {f["object"] for f in facts} == {"team a", "Grace"}
    assert all(f["contradicts"] for f in facts)


def test_turns_handed_over_again_under_the_same_key_are_one_job(agent: Caller) -> None:
    jobs = {
        try_call(agent, "offload", key="k1", turns=TURNS, **TELLER).json()["jobId"]
        for _ in range(3)
    }
    assert len(jobs) == 1
    other = try_call(agent, "offload", key="k2", turns=TURNS, **TELLER).json()["jobId"]
    assert other not in jobs


def test_another_clients_job_is_not_there(
    agent: Caller, caller_factory: CallerFactory, tenant: str
) -> None:
    job = hand_over(agent, TURNS)
    other = caller_factory(tenant, scopes=(READ, WRITE))
    assert_problem(other.get(f"{MEMORY}/jobs/{job['jobId']}"), 404)
    assert_problem(agent.get(f"{MEMORY}/jobs/nonsense"), 404)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"turns": []}, 422, "turns"),
        ({"turns": [{"role": "user", "content": "x"}] * 401}, 422, "turns"),
        ({"turns": [{"role": "king", "content": "x"}]}, 422, "role"),
        ({"turns": [{"role": "user", "content": "x" * 4_100_000}]}, 413, "larger than"),
        ({"turns": TURNS, "graph": "other|main"}, 404, "there is no memory"),
        ({"turns": TURNS, "client": " "}, 422, "client is empty"),
        ({"turns": TURNS, "turn": 1}, 422, "unknown field"),
    ],
)
def test_bad_turns_are_one_clear_line(
    agent: Caller, body: dict[str, Any], status: int, words: str
) -> None:
    assert_problem(try_call(agent, "offload", **{**TELLER, **body}), status, words)


CANARY = "xylophone-canary-7731"


def test_turns_are_left_in_no_table_and_no_file(
    agent: Caller, home: Home, runtime: Runtime
) -> None:
    turns = [
        *TURNS,
        {"role": "tool", "content": f"printed {CANARY} and more"},
        {"role": "user", "content": f"```\n{CANARY}\n```"},
        {"role": "user", "content": f"Should we ever rename it to {CANARY}?"},
    ]
    assert hand_over(agent, turns)["state"] == "done"
    with runtime.owner.transaction() as connection:
        tables = connection.execute(
            "select table_name as name from information_schema.tables"
            " where table_schema = 'knowledge' and table_type = 'BASE TABLE'"
        ).fetchall()
        assert len(tables) > 20
        for table in tables:
            held = connection.execute(
                f'select count(*) as held from knowledge."{table["name"]}" t where t::text like %s',
                [f"%{CANARY}%"],
            ).fetchone()
            assert held == {"held": 0}, table
    needle = CANARY.encode()
    files = [path for path in home.root.rglob("*") if path.is_file()]
    assert [path for path in files if needle in path.read_bytes()] == []


@pytest.fixture
def llm() -> Iterator[LlmServer]:
    with running_llm(good) as server:
        yield server


@pytest.fixture
def modelled(llm: LlmServer, home: Home, runtime: Runtime, tenant: str) -> Iterator[Caller]:
    """An agent of a service that has a model, and takes two jobs of a tenant at most."""
    section = "KNOWLEDGE__MEMORY__"
    environ = {
        f"{section}EXTRACTION__API_BASE": f"{llm.url}",
        f"{section}EXTRACTION__MODEL": "tiny-model",
        f"{section}EXTRACTION__TIMEOUT_S": "2",
        f"{section}OFFLOAD_JOBS": "4",
    }
    catalogue.ensure_project(runtime.owner, tenant, "p1")
    with serving(home, runtime, wait=False, environ=environ) as url:
        yield caller(url, runtime, tenant, scopes=(READ, WRITE))


def test_a_local_model_reads_the_turns_with_the_names_that_are_known(
    modelled: Caller, llm: LlmServer
) -> None:
    tell(modelled, ("PaymentGateway", "PART_OF", "the shop"))
    job = hand_over(modelled, TURNS)
    assert (job["extractor"], job["model"]) == ("llm", "tiny-model"), job
    assert "PaymentGateway" in str(llm.requests[-1]["messages"])
    assert ("checkout", "DEPENDS_ON", "PaymentGateway") in recall(modelled, "checkout")


@pytest.mark.parametrize("mode", [hangs, garbage], ids=["hangs", "garbage"])
def test_a_model_that_fails_leaves_the_job_to_grammar(
    modelled: Caller, llm: LlmServer, mode: Any
) -> None:
    llm.mode = mode
    job = hand_over(modelled, TURNS)
    assert (job["state"], job["extractor"]) == ("done", "spacy"), job
    assert job["extractorReason"]
    assert job["facts"]["added"] >= 1


def test_a_model_that_lies_is_believed_in_nothing_that_was_not_said(
    modelled: Caller, llm: LlmServer
) -> None:
    llm.mode = lies
    job = hand_over(modelled, TURNS)
    assert job["facts"]["dropped"] >= 4
    assert recall(modelled, "Elvis Graceland") == set()


def test_a_full_queue_says_when_to_come_back(modelled: Caller, llm: LlmServer) -> None:
    llm.mode = hangs
    answers = [try_call(modelled, "offload", turns=TURNS, **TELLER) for _ in range(5)]
    refused = [each for each in answers if each.status_code != 202]
    assert len(refused) >= 2
    for response in refused:
        assert_problem(response, 429, "jobs are waiting")
        assert int(response.headers["Retry-After"]) >= 1
