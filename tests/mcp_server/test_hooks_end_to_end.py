"""A coding agent's day: hooks and tools on one memory, on the real service, over every transport."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from knowledge.stack.process import wait_until
from tests.mcp_server.agents import COMMAND, Agent, Connect, answer_of, call, environment_of
from tests.mcp_server.conftest import AgentFactory
from tests.retrieval_api.service import BASE, http

PAYLOADS = Path(__file__).parents[1] / "cli" / "memory" / "hook_payloads"
SESSION = "5f0c1c5e-2a6f-4b57-9a0e-6f7b1f3c2d10"


def hook(agent: Agent, verb: str, payload: str, **changes: Any) -> Any:
    """Run a hook as the agent's program does, with what it sends; gives what it prints."""
    given = json.loads((PAYLOADS / f"{payload}.json").read_text()) | changes
    environ = {**environment_of(agent), "KNOWLEDGE_STATE_DIR": str(agent.state / "hooks")}
    done = subprocess.run(
        [COMMAND, "memory", verb],
        input=json.dumps(given).encode(),
        env=environ,
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return json.loads(done.stdout)


def transcript(path: Path, *said: str) -> Path:
    """Claude Code's, one exchange a prompt."""
    lines = []
    for number, prompt in enumerate(said):
        for role, content in (
            ("user", prompt),
            ("assistant", [{"type": "text", "text": "Noted."}]),
        ):
            line = {
                "type": role,
                "uuid": f"{number:08}-{role}",
                "sessionId": SESSION,
                "timestamp": f"2026-03-02T09:{number:02}:00.000Z",
                "message": {"role": role, "content": content},
            }
            lines.append(json.dumps(line) + "\n")
    path.write_text("".join(lines))
    return path


def test_what_leaves_the_context_comes_back_when_the_session_goes_on(
    connect: Connect, agent_factory: AgentFactory, tenant: str
) -> None:
    agent = agent_factory(tenant)
    talk = [
        "The checkout service depends on PaymentGateway.",
        *(f"Please look at file number {number}." for number in range(11)),
        "The scheduler depends on Quartz.",  # one of the last ten exchanges
    ]
    path = transcript(agent.state / "transcript.jsonl", *talk)
    before = "claude-code-pre-compact-auto"
    assert hook(agent, "offload", before, transcript_path=str(path)) == {}

    def recalled() -> dict[str, Any]:
        return answer_of(call(connect, agent, "recall_context", {"query": "checkout service"}))

    def is_known() -> bool:
        return any(fact["object"] == "PaymentGateway" for fact in recalled()["facts"])

    assert wait_until(is_known, 30)
    (fact,) = [each for each in recalled()["facts"] if each["predicate"] == "DEPENDS_ON"]
    assert (fact["trustTier"], fact["sessionId"]) == ("UnverifiedMemory", SESSION)
    nodes = answer_of(call(connect, agent, "search_graph_nodes", {"query": "Quartz scheduler"}))
    assert nodes["entities"] == []
    written = {
        "triples": [{"subject": "checkout service", "predicate": "OWNED_BY", "object": "team pay"}],
        "client": "claude-code",
        "sessionId": SESSION,
    }
    assert answer_of(call(connect, agent, "upsert_graph_triples", written))["counts"]["added"] == 1
    goes_on = "claude-code-session-start-compact"
    path = transcript(path, *talk, "What was it again with the checkout service?")
    answer = hook(agent, "recall", goes_on, transcript_path=str(path), cwd=str(agent.state))
    context = answer["hookSpecificOutput"]["additionalContext"]
    assert answer["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    assert "PaymentGateway" in context and "team pay" in context
    assert "data" in context.lower()


def test_a_conversation_offloaded_twice_is_told_once(
    agent_factory: AgentFactory, tenant: str
) -> None:
    agent = agent_factory(tenant)
    said = ["The cache uses Redis.", *(f"Go on with step {number}." for number in range(12))]
    path = transcript(agent.state / "transcript.jsonl", *said)
    for _ in range(2):
        hook(agent, "offload", "claude-code-pre-compact-manual", transcript_path=str(path))
    headers = {"Authorization": f"Bearer {agent.credential}"}
    body = {"query": "cache"}

    def facts() -> list[dict[str, Any]]:
        url = f"{agent.url}{BASE}/memory/recall"
        found: list[dict[str, Any]] = http().post(url, json=body, headers=headers).json()["facts"]
        return found

    assert wait_until(lambda: bool(facts()), 30)
    assert len(facts()) == len({(f["subject"], f["predicate"], f["object"]) for f in facts()})
