from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from knowledge.home import Home
from knowledge.stack.process import ProcessId
from knowledge.stack.record import StackRecord, only_supervisor, write_record
from retrieval_api.memory_bodies import OffloadBody, RecallBody
from tests.cli.memory.conftest import PAYLOADS, Ended, Hooks, recorded
from tests.cli.memory.service import FakeService

KEPT = 10
OFFLOAD_S = 2.0


def line(kind: str, text: str, number: int, **more: Any) -> dict[str, Any]:
    """A line of Claude Code's transcript."""
    told = {"type": kind, "message": {"role": kind, "content": text}, "uuid": f"{kind}-{number}"}
    return {**told, "timestamp": "2026-03-02T09:00:00.000Z", **more}


class Conversation:
    """A transcript that grows: exchange n is the prompt ``ask n`` and the answer ``say n``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.length = 0
        path.touch()

    def grow(self, exchanges: int, *, padding: str = "") -> Conversation:
        for _ in range(exchanges):
            self.length += 1
            self.add(
                line("user", f"ask {self.length}{padding}", self.length),
                line("assistant", f"say {self.length}{padding}", self.length),
            )
        return self

    def add(self, *lines: Mapping[str, Any]) -> None:
        with self.path.open("a") as file:
            file.writelines(json.dumps(told) + "\n" for told in lines)

    def spoken(self, first: int, last: int) -> list[str]:
        return [f"{word} {n}" for n in range(first, last + 1) for word in ("ask", "say")]


@pytest.fixture
def conversation(tmp_path: Path) -> Conversation:
    return Conversation(tmp_path / "session.jsonl")


@pytest.fixture
def offload(hooks: Hooks, conversation: Conversation) -> Callable[..., Ended]:
    """Runs the hook of a compaction on the conversation, or on another path."""

    def run(*arguments: str, path: str | Path = conversation.path, **environ: str) -> Ended:
        payload = recorded("claude-code-pre-compact-auto", transcript_path=str(path))
        return hooks.run("offload", *arguments, payload=payload, environ=environ)

    return run


@pytest.mark.parametrize("event", ["pre-compact-auto", "pre-compact-manual", "session-end", "stop"])
def test_what_people_and_the_agent_said_before_the_last_ten_exchanges_is_sent(
    event: str, hooks: Hooks, service: FakeService
) -> None:
    path = PAYLOADS / "claude-code.jsonl"
    payload = recorded(f"claude-code-{event}", transcript_path=str(path))
    ended = hooks.run("offload", "--project", "p1", payload=payload)
    assert (ended.answer, ended.err) == ({}, "")
    (asked,) = service.asked
    turns = asked.body.pop("turns")
    assert asked.body == {
        "projectId": "p1",
        "client": "claude-code",
        "sessionId": payload["session_id"],
        "model": "claude-sonnet-4-5-20250929",
    }
    assert [(turn["role"], turn["content"]) for turn in turns] == [
        ("user", "Prompt 1: how does part 1 of booking work?"),
        ("assistant", "Answer 1: the Ledger service owns part 1."),
        ("assistant", "Closing 1."),
        ("user", "Prompt 2: which service owns refunds?"),
        ("assistant", "Answer 2: the Ledger service owns part 2."),
        ("assistant", "Closing 2."),
        ("user", "Prompt 3: who renews a lease?"),
        ("assistant", "Answer 3: the Ledger service owns part 3."),
        ("assistant", "Closing 3."),
    ]
    assert turns[0]["time"] == "2026-03-02T09:00:04+00:00"
    assert "SECRET" not in json.dumps(turns)


@pytest.mark.parametrize("agent", ["codex", "cursor"])
def test_transcripts_of_other_agents_are_read_too(
    agent: str, hooks: Hooks, service: FakeService
) -> None:
    path = PAYLOADS / f"{agent}.jsonl"
    ended = hooks.run(
        "offload", payload=recorded(f"{agent}-pre-compact", transcript_path=str(path))
    )
    assert ended.answer == {}
    assert service.turns() == ["Prompt 1", "Answer 1", "Prompt 2", "Answer 2"]
    assert service.asked[0].body["client"] == agent


def test_nothing_is_sent_while_nothing_is_older_than_ten_exchanges(
    hooks: Hooks, service: FakeService, conversation: Conversation, offload: Callable[..., Ended]
) -> None:
    conversation.grow(KEPT)
    assert offload().answer == {}
    assert service.asked == []
    status = hooks.status()["offload"]
    assert (status["outcome"], status["reason"]) == (
        "skipped",
        "nothing is older than 10 exchanges",
    )


def test_nothing_is_offloaded_when_a_session_starts(
    hooks: Hooks, service: FakeService, conversation: Conversation
) -> None:
    conversation.grow(KEPT + 2)
    payload = recorded("claude-code-session-start-compact", transcript_path=str(conversation.path))
    hooks.run("offload", payload=payload)
    assert service.asked == []


def test_a_repeated_hook_sends_nothing_twice_and_a_later_one_only_what_is_new(
    service: FakeService, conversation: Conversation, offload: Callable[..., Ended]
) -> None:
    conversation.grow(KEPT + 2)
    offload()
    offload()
    assert service.turns() == conversation.spoken(1, 2)
    conversation.grow(3)
    offload()
    assert service.turns() == conversation.spoken(1, 5)


@pytest.mark.parametrize("status", [200, 401, 429, 500])
def test_only_an_accepted_request_moves_the_marker(
    status: int, service: FakeService, conversation: Conversation, offload: Callable[..., Ended]
) -> None:
    service.statuses = [status]
    conversation.grow(KEPT + 1)
    offload()
    offload()
    assert service.turns() == conversation.spoken(1, 1) * (1 if status == 200 else 2)


def test_two_hooks_at_once_send_once(
    hooks: Hooks, service: FakeService, conversation: Conversation
) -> None:
    conversation.grow(KEPT + 2)
    payload = recorded("claude-code-pre-compact-auto", transcript_path=str(conversation.path))
    running = [hooks.start("offload") for _ in range(4)]
    for process in running:
        assert process.stdin is not None
        process.stdin.write(json.dumps(payload).encode())
        process.stdin.flush()
    for process in running:
        process.communicate(timeout=10)
        assert process.returncode == 0
    assert service.turns() == conversation.spoken(1, 2)


def test_a_long_conversation_goes_in_requests_of_400_turns(
    service: FakeService, conversation: Conversation, offload: Callable[..., Ended]
) -> None:
    conversation.grow(KEPT + 450)
    assert offload().seconds <= OFFLOAD_S
    assert [len(asked.body["turns"]) for asked in service.asked] == [400, 400, 100]
    assert service.turns() == conversation.spoken(1, 450)


def test_long_turns_are_cut_and_go_in_requests_of_256_kib(
    hooks: Hooks, service: FakeService, conversation: Conversation, offload: Callable[..., Ended]
) -> None:
    conversation.grow(KEPT + 10, padding="\U0001f4a1" * 30_000)
    assert offload().seconds <= OFFLOAD_S
    sizes = [int(asked.headers["Content-Length"]) for asked in service.asked]
    assert len(service.turns()) == 20
    assert max(sizes) <= 256 * 1024
    assert all(len(turn) < 20_010 and turn.endswith("[…]") for turn in service.turns())
    assert hooks.status()["offload"]["counts"]["turns"] == 20


def test_a_failure_between_requests_is_gone_on_from(
    hooks: Hooks, service: FakeService, conversation: Conversation, offload: Callable[..., Ended]
) -> None:
    service.statuses = [202, 429]
    conversation.grow(KEPT + 450)
    offload()
    status = hooks.status()["offload"]
    assert status["outcome"] == "ok"
    assert (status["counts"]["turns"], status["counts"]["left"]) == (400, 500)
    assert status["reason"].startswith("the rest waits for the next hook: the queue")
    del service.asked[1:]
    offload()
    assert service.turns() == conversation.spoken(1, 450)


def test_a_copy_of_a_transcript_is_not_sent_again(
    service: FakeService,
    conversation: Conversation,
    offload: Callable[..., Ended],
    tmp_path: Path,
) -> None:
    conversation.grow(KEPT + 2)
    offload()
    copy = tmp_path / "resumed.jsonl"
    shutil.copy(conversation.path, copy)
    conversation.path = copy
    conversation.grow(1)
    offload(path=copy)
    assert service.turns() == conversation.spoken(1, 3)


def test_a_transcript_that_was_written_anew_is_read_from_its_beginning(
    service: FakeService, conversation: Conversation, offload: Callable[..., Ended]
) -> None:
    conversation.grow(KEPT + 5)
    offload()
    conversation.path.write_text("")
    for number in range(KEPT + 2):
        conversation.add(line("user", f"other {number} {'x' * 500}", 100 + number))
    del service.asked[:]
    offload()
    assert [turn[:7] for turn in service.turns()] == ["other 0", "other 1"]


def test_broken_and_huge_lines_are_passed_over_and_counted(
    hooks: Hooks, service: FakeService, conversation: Conversation, offload: Callable[..., Ended]
) -> None:
    conversation.grow(1)
    with conversation.path.open("ab") as file:
        file.write(b"\xff\xfe\n{broken\n[1]\n\n" + b"[" * 5000 + b"\n")
        file.write(json.dumps(line("user", "x" * 3_000_000, 0)).encode() + b"\n")
        file.write(b'{"type": "user", "message": {"role": "user", "content": {"a": 1}}}\n')
        file.write(b'{"type": "user", "message": {"content": "lone \\ud800 half"}}\n')
    conversation.grow(KEPT)
    with conversation.path.open("ab") as file:
        file.write(json.dumps(line("user", "not ended yet", 0)).encode())
    assert offload().seconds <= OFFLOAD_S
    assert service.turns() == [*conversation.spoken(1, 1), "lone ? half"]
    assert hooks.status()["offload"]["counts"]["skippedLines"] == 5


def test_of_two_gigabytes_the_end_is_read(
    hooks: Hooks, service: FakeService, conversation: Conversation, offload: Callable[..., Ended]
) -> None:
    size = 2 * 1024**3
    os.truncate(conversation.path, size)
    conversation.add({"type": "summary"})  # ends the line of zeroes
    conversation.grow(KEPT + 2)
    ended = offload()
    assert ended.seconds <= OFFLOAD_S
    assert service.turns() == conversation.spoken(1, 2)
    assert hooks.status()["offload"]["counts"]["skippedBytes"] > size - 17 * 1024**2


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing.jsonl", "the transcript that the agent named does not exist"),
        ("missing", "the transcript that the agent named does not exist"),
        ("folder.jsonl", "not a regular file"),
        ("zero.jsonl", "not a regular file"),
        ("fifo.jsonl", "not a regular file"),
        ("loop.jsonl", "cannot be opened: Too many levels"),
        ("passwd", "not a .jsonl file"),
        ("below/a-file.jsonl/x.jsonl", "cannot be opened: Not a directory"),
        ("nul\0.jsonl", "not a .jsonl file"),
        (f"{'x' * 300}.jsonl", "cannot be opened: File name too long"),
        ("", "the hook names no transcript"),
    ],
)
def test_a_path_that_leads_to_no_transcript_is_one_clear_line(
    name: str, reason: str, hooks: Hooks, service: FakeService, tmp_path: Path
) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    (tmp_path / "passwd").symlink_to("/etc/passwd")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "a-file.jsonl").touch()
    os.mkfifo(tmp_path / "fifo.jsonl")
    path = f"{tmp_path}/{name}" if name else None
    payload = recorded("claude-code-pre-compact-auto", transcript_path=path)
    ended = hooks.run("offload", payload=payload)
    assert ended.answer == {}
    (told,) = ended.err.splitlines()
    assert reason in told
    assert reason in hooks.status()["offload"]["reason"]
    assert service.asked == []
    assert ended.seconds <= OFFLOAD_S


def test_without_being_told_to_nothing_of_the_turns_touches_the_disk(
    hooks: Hooks,
    service: FakeService,
    conversation: Conversation,
    offload: Callable[..., Ended],
    tmp_path: Path,
) -> None:
    conversation.grow(KEPT + 2, padding=" CANARY")
    for statuses in ([503], [202]):
        service.statuses = list(statuses)
        offload()
        written = [path for path in tmp_path.rglob("*") if path.is_file()]
        holding = [path for path in written if "CANARY" in path.read_text()]
        assert holding == [conversation.path]


def test_told_to_spool_turns_wait_privately_and_go_first_and_once(
    hooks: Hooks, service: FakeService, conversation: Conversation, offload: Callable[..., Ended]
) -> None:
    conversation.grow(KEPT + 2)
    service.statuses = [503]
    ended = offload("--spool")
    assert "is not well (HTTP 503)" in ended.err
    (waiting,) = (hooks.state_dir / "spool").glob("*.json")
    assert waiting.stat().st_mode & 0o777 == 0o600
    status = hooks.status()
    assert (status["offload"]["outcome"], status["offload"]["counts"]["spooled"]) == ("spooled", 4)
    assert status["spool"]["files"] == 1
    service.statuses = [503]
    offload(KNOWLEDGE_HOOKS_SPOOL="1")  # the same turns again: they wait already
    assert hooks.status()["spool"]["files"] == 1
    del service.asked[:]
    conversation.grow(1)
    offload()
    offload()
    assert service.turns() == conversation.spoken(1, 3)
    assert hooks.status()["spool"] == {"files": 0, "bytes": 0, "oldestAt": None}


def test_what_waits_goes_out_although_its_transcript_has_gone(
    service: FakeService,
    conversation: Conversation,
    offload: Callable[..., Ended],
    tmp_path: Path,
) -> None:
    conversation.grow(KEPT + 1)
    service.statuses = [503]
    offload("--spool")
    conversation.path.unlink()
    del service.asked[:]
    offload(path=Conversation(tmp_path / "next.jsonl").grow(1).path)
    assert service.turns() == conversation.spoken(1, 1)


def test_what_waits_goes_to_no_other_key(
    hooks: Hooks, service: FakeService, conversation: Conversation, offload: Callable[..., Ended]
) -> None:
    conversation.grow(KEPT + 1)
    service.statuses = [503]
    offload("--spool")
    del service.asked[:]
    other = Conversation(conversation.path.with_name("other.jsonl")).grow(1)
    offload(path=other.path, KNOWLEDGE_API_KEY="kk_eve_key")
    assert service.asked == []
    assert hooks.status()["spool"]["files"] == 1


def test_the_spool_is_bounded_and_what_finds_no_room_is_read_again(
    hooks: Hooks, service: FakeService, conversation: Conversation, offload: Callable[..., Ended]
) -> None:
    conversation.grow(KEPT + 150, padding="x" * 19_000)
    service.statuses = [503]
    assert offload("--spool").seconds <= OFFLOAD_S
    status = hooks.status()
    assert 4_500_000 < status["spool"]["bytes"] <= 5_000_000
    assert status["offload"]["counts"]["left"] > 0
    del service.asked[:]
    for _ in range(10):
        offload()
    heads = [" ".join(turn.split("x")[0].split()[:2]) for turn in service.turns()]
    assert heads == conversation.spoken(1, 150)


def test_what_waited_too_long_is_removed_and_read_from_its_transcript(
    hooks: Hooks, service: FakeService, conversation: Conversation, offload: Callable[..., Ended]
) -> None:
    conversation.grow(KEPT + 1)
    service.statuses = [503]
    offload("--spool")
    (waiting,) = (hooks.state_dir / "spool").glob("*.json")
    old = time.time() - 8 * 24 * 3600
    os.utime(waiting, (old, old))
    del service.asked[:]
    offload()
    assert service.turns() == conversation.spoken(1, 1)
    assert hooks.status()["spool"]["files"] == 0


def test_a_refused_request_that_waited_does_not_block_the_rest(
    hooks: Hooks, service: FakeService, conversation: Conversation, offload: Callable[..., Ended]
) -> None:
    conversation.grow(KEPT + 1)
    service.statuses = [503]
    offload("--spool")
    (waiting,) = (hooks.state_dir / "spool").glob("*.json")
    waiting.with_name("0000.json").write_text("{broken")
    service.statuses = [422]
    del service.asked[:]
    offload()
    assert service.turns() == conversation.spoken(1, 1) * 2  # refused as it waited, then anew
    assert hooks.status()["spool"]["files"] == 0


def test_every_request_carries_an_idempotency_key_of_its_turns(
    service: FakeService, conversation: Conversation, offload: Callable[..., Ended]
) -> None:
    conversation.grow(KEPT + 1)
    service.statuses = [500]
    offload()
    offload()
    conversation.grow(1)
    offload()
    first, again, later = (asked.headers["Idempotency-Key"] for asked in service.asked)
    assert first == again != later


def test_a_marker_that_nobody_needs_goes_with_its_lock(
    hooks: Hooks, conversation: Conversation, offload: Callable[..., Ended]
) -> None:
    conversation.grow(KEPT + 1)
    offload()
    folder = hooks.state_dir / "offloaded"
    old = time.time() - 61 * 24 * 3600
    for path in folder.iterdir():
        os.utime(path, (old, old))
    offload(path=Conversation(conversation.path.with_name("next.jsonl")).path)
    assert [path.suffix for path in folder.iterdir()] == [".lock"]


def test_the_service_takes_what_the_hooks_send(hooks: Hooks, service: FakeService) -> None:
    for agent in ("claude-code", "codex", "cursor"):
        compaction = {"claude-code": "pre-compact-auto"}.get(agent, "pre-compact")
        path = str(PAYLOADS / f"{agent}.jsonl")
        payload = recorded(f"{agent}-{compaction}", transcript_path=path)
        hooks.run("offload", "--project", "p1", "--graph", "main", payload=payload)
        start = {"claude-code": "session-start-resume"}.get(agent, "session-start")
        payload = recorded(f"{agent}-{start}", transcript_path=path)
        hooks.run("recall", "--project", "p1", "--graph", "main", payload=payload)
    bodies: dict[str, type[BaseModel]] = {"recall": RecallBody, "offload": OffloadBody}
    assert [asked.route for asked in service.asked] == ["offload", "recall"] * 3
    for asked in service.asked:
        bodies[asked.route].model_validate(asked.body)


@pytest.fixture
def away(tmp_path: Path) -> dict[str, str]:
    """Settings without an address, and of an installation whose stack does not run."""
    return {"KNOWLEDGE_URL": "", "KNOWLEDGE_HOME": str(tmp_path / "home")}


def test_turns_wait_for_the_stack_of_the_installation_whatever_its_port(
    hooks: Hooks,
    service: FakeService,
    conversation: Conversation,
    offload: Callable[..., Ended],
    away: dict[str, str],
) -> None:
    conversation.grow(KEPT + 1)
    told = f"no knowledge service runs for {away['KNOWLEDGE_HOME']}"
    assert told in offload(**away).err
    assert hooks.status()["spool"]["files"] == 0
    ended = offload("--spool", **away)
    assert told in ended.err
    assert hooks.status()["offload"]["outcome"] == "spooled"
    assert hooks.status()["spool"]["files"] == 1
    offload()  # to the address of another: what waits is of the installation
    assert hooks.status()["spool"]["files"] == 1
    del service.asked[:]
    home = Home(Path(away["KNOWLEDGE_HOME"]))
    home.prepare()
    port = int(service.url.rpartition(":")[2])
    with only_supervisor(home):
        write_record(home, StackRecord(ProcessId.of_self(), "running", port, 0))
        offload(**away)
    assert service.turns() == conversation.spoken(1, 1)
    assert hooks.status()["spool"]["files"] == 0
