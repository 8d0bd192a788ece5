"""Whatever goes wrong: exit code 0, an answer the agent can read, in time, and one clear line."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.memory.conftest import PAYLOADS, Ended, Hooks, recorded
from tests.cli.memory.service import FakeService, fact, recalled

RECALL_S = 5.0
OFFLOAD_S = 2.0
TYPICAL_S = 0.6
EMPTY = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": ""}}


@pytest.fixture
def session() -> dict[str, Any]:
    return recorded("claude-code-session-start-startup")


@pytest.fixture
def compaction() -> dict[str, Any]:
    path = PAYLOADS / "claude-code.jsonl"
    return recorded("claude-code-pre-compact-auto", transcript_path=str(path))


def the_line(ended: Ended) -> str:
    (line,) = ended.err.splitlines()
    return line


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, "the key is not valid"),
        (403, "does not carry the scope"),
        (404, "no such project or graph"),
        (422, "did not accept the request"),
        (429, "the queue of the service is full"),
        (302, "answered with an error (HTTP 302)"),
        (500, "is not well (HTTP 500)"),
        (503, "is not well (HTTP 503)"),
    ],
)
def test_a_service_that_refuses_leaves_an_empty_answer_and_the_reason(
    status: int,
    reason: str,
    hooks: Hooks,
    service: FakeService,
    session: dict[str, Any],
    compaction: dict[str, Any],
) -> None:
    service.statuses = [status, status]
    for verb, payload, answer in (("recall", session, EMPTY), ("offload", compaction, {})):
        ended = hooks.run(verb, payload=payload)
        assert ended.answer == answer
        assert reason in the_line(ended)
        assert reason in hooks.status()[verb]["reason"]


@pytest.mark.parametrize("raw", [b"<html>", b"[]", b'{"facts": ', b'{"facts": [1, null, {}]}'])
def test_an_answer_that_is_none_breaks_nothing(
    raw: bytes, hooks: Hooks, service: FakeService, session: dict[str, Any]
) -> None:
    service.raw_answer = raw
    assert set(hooks.run("recall", payload=session).answer) == {"hookSpecificOutput"}


def test_an_unreachable_service_is_named_and_failures_are_counted(
    hooks: Hooks, session: dict[str, Any]
) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers there
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        for _ in range(2):
            ended = hooks.run("recall", "--url", url, payload=session)
            assert ended.answer == EMPTY
            assert f"{url} cannot be reached: Connection refused" in the_line(ended)
    status = hooks.status()["recall"]
    assert (status["failuresInARow"], status["lastOkAt"]) == (2, None)


def test_a_service_that_hangs_ends_a_recall_within_5_s(
    hooks: Hooks, service: FakeService, session: dict[str, Any]
) -> None:
    service.hangs = True
    ended = hooks.run("recall", payload=session)
    assert ended.answer == EMPTY
    assert "did not answer in" in the_line(ended)
    assert ended.seconds <= RECALL_S


def test_a_service_that_hangs_ends_an_offload_within_2_s(
    hooks: Hooks, service: FakeService, compaction: dict[str, Any]
) -> None:
    service.hangs = True
    ended = hooks.run("offload", payload=compaction)
    assert ended.answer == {}
    assert "did not answer in" in the_line(ended)
    assert ended.seconds <= OFFLOAD_S


@pytest.mark.parametrize(("verb", "limit_s"), [("recall", RECALL_S), ("offload", OFFLOAD_S)])
def test_standard_input_that_never_ends_is_given_up(
    verb: str, limit_s: float, hooks: Hooks
) -> None:
    started = time.monotonic()
    with hooks.start(verb) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b'{"hook_event_name": "SessionSta')
        process.stdin.flush()
        assert process.wait(10) == 0
        assert time.monotonic() - started <= limit_s
        assert json.loads(process.stdout.read()) == {}
    assert "while reading standard input" in hooks.status()[verb]["reason"]


def test_a_pipe_that_stays_open_after_the_payload_is_not_waited_for(
    hooks: Hooks, session: dict[str, Any]
) -> None:
    with hooks.start("recall") as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(session).encode())
        process.stdin.flush()
        assert process.wait(3) == 0
    assert hooks.status()["recall"]["outcome"] == "ok"


@pytest.mark.parametrize(("verb", "limit_s"), [("recall", RECALL_S), ("offload", OFFLOAD_S)])
def test_a_name_server_that_hangs_ends_in_time(
    verb: str,
    limit_s: float,
    hooks: Hooks,
    tmp_path: Path,
    session: dict[str, Any],
    compaction: dict[str, Any],
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import socket, time\nsocket.getaddrinfo = lambda *a, **k: time.sleep(60)\n"
    )
    ended = hooks.run(
        verb,
        payload=session if verb == "recall" else compaction,
        environ={"PYTHONPATH": str(tmp_path), "KNOWLEDGE_URL": "http://memory.invalid:8080"},
    )
    assert ended.code == 0
    assert "did not answer" in the_line(ended)
    assert ended.seconds <= limit_s


def test_git_that_hangs_is_left_behind(
    hooks: Hooks, service: FakeService, tmp_path: Path, session: dict[str, Any]
) -> None:
    programs, project = tmp_path / "bin", tmp_path / "booking"
    programs.mkdir()
    project.mkdir()
    (programs / "git").write_text("#!/bin/sh\nsleep 8\n")
    (programs / "git").chmod(0o755)
    ended = hooks.run(
        "recall",
        payload={**session, "cwd": str(project)},
        environ={"PATH": f"{programs}:{os.environ['PATH']}"},
    )
    assert ended.answer == EMPTY
    assert service.asked[0].body["query"] == "booking"
    assert ended.seconds < 3


def test_a_state_folder_that_hangs_or_cannot_be_written_does_not_hold_the_answer(
    hooks: Hooks, service: FakeService, session: dict[str, Any], tmp_path: Path
) -> None:
    service.answer = recalled(fact("Ledger", "OWNS", "refunds"))
    hooks.state_dir.mkdir()
    os.mkfifo(hooks.state_dir / "last-recall.json")
    ended = hooks.run("recall", payload=session)
    assert "Ledger OWNS refunds" in ended.context
    assert ended.seconds < 2
    (tmp_path / "file").touch()
    unwritable = {"KNOWLEDGE_STATE_DIR": str(tmp_path / "file" / "state")}
    assert "Ledger OWNS refunds" in hooks.run("recall", payload=session, environ=unwritable).context


def test_nothing_is_sent_where_no_marker_can_be_kept(
    hooks: Hooks, service: FakeService, compaction: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    unwritable = {"KNOWLEDGE_STATE_DIR": str(tmp_path / "file" / "state")}
    ended = hooks.run("offload", payload=compaction, environ=unwritable)
    assert ended.answer == {}
    assert "Not a directory" in the_line(ended)
    assert service.asked == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_hook_that_is_told_to_end_answers_and_ends_with_0(
    number: signal.Signals, hooks: Hooks, service: FakeService, session: dict[str, Any]
) -> None:
    service.hangs = True
    with hooks.start("recall") as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(session).encode())
        process.stdin.close()
        _wait_for(lambda: bool(service.asked))
        started = time.monotonic()
        process.send_signal(number)
        assert process.wait(5) == 0
        assert time.monotonic() - started < 1
        assert json.loads(process.stdout.read()) == EMPTY
    assert "was told to end while asking" in hooks.status()["recall"]["reason"]


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"\x00\xff\xfe",
        b"not JSON",
        b"[]",
        b"null",
        b'{"hook_event_name": "PreToolUse"}',
        b'{"hook_event_name": 7, "session_id": {"a": 1}}',
        b"[" * 100_000,
        b'{"a": ' * 100_000,
        b'{"prompt": "' + b"x" * 5_000_000,
    ],
)
@pytest.mark.parametrize("verb", ["recall", "offload"])
def test_garbage_on_standard_input_is_an_empty_answer(
    verb: str, given: bytes, hooks: Hooks
) -> None:
    ended = hooks.run(verb, payload=given)
    assert ended.answer == {}
    assert the_line(ended).startswith(f"knowledge memory {verb}: standard input holds")
    assert hooks.status()[verb]["outcome"] == "failed"


def test_fields_of_the_wrong_kind_are_passed_over(hooks: Hooks, service: FakeService) -> None:
    payload = {"hook_event_name": "SessionStart", "session_id": 7, "cwd": ["x"], "source": "a b"}
    assert hooks.run("recall", payload=payload).answer == EMPTY
    assert service.asked == []
    assert hooks.status()["recall"]["reason"] == "nothing is at hand to ask with"


@pytest.mark.parametrize(
    ("arguments", "environ", "reason"),
    [
        ((), {"KNOWLEDGE_API_KEY": ""}, "no API key: set KNOWLEDGE_API_KEY"),
        ((), {"KNOWLEDGE_API_KEY": "kk_a b\r\nX: y"}, "characters no key has"),
        (("--key-file", "/nowhere"), {}, "the key file is not a file"),
        (("--key-file", "/dev/zero"), {}, "the key file is not a file"),
        (("--url", "ftp://x"), {}, "must be an http or https address"),
        (("--url", "http://[::1"), {}, "must be an http or https address"),
        (("--url", "http://x:99999"), {}, "must be an http or https address"),
        (("--client", "a b"), {}, "--client must be a name"),
        (("--no-such-option",), {}, "No such option"),
        (("surplus",), {}, "unexpected extra argument"),
    ],
)
def test_a_wrong_setting_is_told_and_never_vetoes_the_agent(
    arguments: tuple[str, ...],
    environ: dict[str, str],
    reason: str,
    hooks: Hooks,
    session: dict[str, Any],
) -> None:
    ended = hooks.run("recall", *arguments, payload=session, environ=environ)
    assert ended.answer in ({}, EMPTY)
    assert reason in the_line(ended)
    assert reason in hooks.status()["recall"]["reason"]


def test_without_an_address_or_a_running_stack_nobody_is_asked(
    hooks: Hooks, session: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "home" / "run").mkdir(parents=True)
    unknown = {"KNOWLEDGE_URL": "", "KNOWLEDGE_HOME": str(tmp_path / "home")}
    for content in (None, "{broken"):
        if content:
            (tmp_path / "home" / "run" / "stack.json").write_text(content)
        ended = hooks.run("recall", payload=session, environ=unknown)
        assert ended.answer == EMPTY
        assert f"no knowledge service runs for {tmp_path / 'home'}" in the_line(ended)


def test_output_that_cannot_be_written_is_no_failure(hooks: Hooks, session: dict[str, Any]) -> None:
    given = json.dumps(session).encode()
    for redirected in (">&-", ">/dev/full", "2>&-", ">&- 2>&-", "<&-", ">/dev/full 2>/dev/full"):
        line = f'"$0" memory recall {redirected}'
        command = str(Path(sys.executable).with_name("knowledge"))
        done = subprocess.run(
            ["sh", "-c", line, command],
            input=given,
            env=hooks.environ(),
            capture_output=True,
            check=False,
        )
        assert (redirected, done.returncode) == (redirected, 0)
        assert b"Traceback" not in done.stderr


def test_a_reader_that_has_gone_is_no_failure(hooks: Hooks, session: dict[str, Any]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with hooks.start("recall", stdout=writing) as process:
        os.close(writing)
        _, err = process.communicate(json.dumps(session).encode(), timeout=10)
    assert (process.returncode, err) == (0, b"")


def test_a_reader_that_does_not_read_is_not_waited_for(
    hooks: Hooks, session: dict[str, Any]
) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        while True:
            os.write(writing, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writing, True)
    started = time.monotonic()
    with hooks.start("recall", stdout=writing, stdin=subprocess.PIPE) as process:
        process.communicate(json.dumps(session).encode(), timeout=20)
    assert process.returncode == 0
    assert time.monotonic() - started <= RECALL_S
    os.close(reading)
    os.close(writing)


def test_many_hooks_at_once_leave_a_whole_status(hooks: Hooks, session: dict[str, Any]) -> None:
    given = json.dumps(session).encode()
    running = [hooks.start("recall") for _ in range(6)]
    for process in running:
        process.communicate(given, timeout=20)
    assert [process.returncode for process in running] == [0] * 6
    assert hooks.status()["recall"]["outcome"] == "ok"
    assert [path.name for path in hooks.state_dir.glob("*.json")] == ["last-recall.json"]
    assert [path.name for path in hooks.state_dir.glob(".*")] == []


@pytest.mark.parametrize("verb", ["recall", "offload"])
def test_a_hook_imports_nothing_heavy(verb: str, hooks: Hooks) -> None:
    code = (
        f"import sys; from knowledge.cli.main import run; run(['memory', {verb!r}]);"
        "heavy = {'numpy', 'onnxruntime', 'psycopg', 'pydantic', 'httpx', 'weaviate', 'mcp'};"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    name = {"recall": "session-start-startup", "offload": "pre-compact-auto"}[verb]
    payload = recorded(f"claude-code-{name}", transcript_path=str(PAYLOADS / "claude-code.jsonl"))
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(payload).encode(),
        env=hooks.environ(),
        capture_output=True,
        check=True,
    )
    assert done.stderr == b"[]\n"


@pytest.mark.parametrize("verb", ["recall", "offload"])
def test_a_hook_usually_takes_a_fraction_of_a_second(
    verb: str, hooks: Hooks, session: dict[str, Any], compaction: dict[str, Any]
) -> None:
    payload = session if verb == "recall" else compaction
    fastest = min(hooks.run(verb, payload=payload).seconds for _ in range(3))
    assert fastest < TYPICAL_S


def _wait_for(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not happened():
        assert time.monotonic() < end
        os.sched_yield()
