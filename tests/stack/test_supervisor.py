from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import psutil  # type: ignore[import-untyped]
import pytest

from knowledge.home import Home
from knowledge.settings import Settings
from knowledge.stack.lifecycle import down
from knowledge.stack.parts import parts_of
from knowledge.stack.postgres import find_postgres
from knowledge.stack.process import MARK, wait_until
from knowledge.stack.record import read_record, running_supervisor
from knowledge.stack.servers import running_servers
from knowledge.stack.status import status
from knowledge.stack.supervisor import CRASHES_ALLOWED, Crashes


@contextmanager
def _start(home: Home, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.stack.small_stack", str(home.root), *(arguments or ("-",))],
        stdout=subprocess.PIPE,
        text=True,
    ) as supervisor:
        try:
            yield supervisor
        except BaseException:  # else a failed test would wait for it
            supervisor.terminate()
            raise


def _wait_for(supervisor: subprocess.Popen[str], words: str) -> None:
    assert supervisor.stdout is not None
    seen = []
    for line in supervisor.stdout:
        seen.append(line)
        if words in line:
            return
    raise AssertionError(f"no line with {words!r} in {seen}")


def _of_the_stack(home: Home) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == home.installation_id:
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_another_installation_that_answers_on_the_port_is_not_taken_for_this_one(
    home: Home,
) -> None:
    with _start(home, "-", "foreign") as supervisor:
        _wait_for(supervisor, "another installation answers at http://127.0.0.1:")
        assert supervisor.wait(timeout=30) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_everything_even_a_child_that_left_its_session(
    home: Home, number: signal.Signals
) -> None:
    with _start(home) as supervisor:
        _wait_for(supervisor, "stack: ready")
        assert len(_of_the_stack(home)) == 2
        assert find_postgres(home) is not None
        supervisor.send_signal(number)
        assert supervisor.wait(60) == 0
    assert _of_the_stack(home) == []
    assert find_postgres(home) is None
    assert running_supervisor(home) is None
    assert read_record(home) is None


def test_a_part_that_crashes_is_started_again_on_the_same_port(home: Home) -> None:
    with _start(home) as supervisor:
        _wait_for(supervisor, "stack: ready")
        record = read_record(home)
        assert record is not None
        first = record.parts["api"]
        os.kill(first.pid, signal.SIGKILL)
        _wait_for(supervisor, "api: ended unexpectedly, restart in 1 s")
        assert wait_until(lambda: _answers(record.api_port), 30)
        again = read_record(home)
        assert again is not None and again.parts["api"] != first
        supervisor.terminate()
        assert supervisor.wait(60) == 0
    assert _of_the_stack(home) == []


def test_a_database_that_crashes_is_started_again(home: Home, postgres_only: Settings) -> None:
    with _start(home) as supervisor:
        _wait_for(supervisor, "stack: ready")
        first = find_postgres(home)
        assert first is not None
        os.kill(first.pid, signal.SIGQUIT)
        _wait_for(supervisor, "postgres: starting")
        assert wait_until(lambda: find_postgres(home) not in (None, first), 30)
        with running_servers(home, postgres_only):  # its stop is the supervisor's business
            pass
        assert find_postgres(home) is not None
        supervisor.terminate()
        assert supervisor.wait(60) == 0
    assert find_postgres(home) is None


def test_a_part_that_does_not_start_is_quoted_and_nothing_is_left_running(home: Home) -> None:
    with _start(home, "-", "fails") as supervisor:
        _wait_for(supervisor, "knowledge: api ended: the part says why (see ")
        assert supervisor.wait(60) == 1
    assert _of_the_stack(home) == []
    assert find_postgres(home) is None


def test_a_part_whose_port_was_taken_meanwhile_is_started_on_another(home: Home) -> None:
    with _start(home, "-", "taken") as supervisor:
        _wait_for(supervisor, "was taken meanwhile, starting on ")
        _wait_for(supervisor, "stack: ready")
        record = read_record(home)
        assert record is not None and _answers(record.api_port)
        supervisor.terminate()
        assert supervisor.wait(60) == 0
    assert _of_the_stack(home) == []


def test_an_explicit_port_in_use_is_one_line_and_nothing_is_left_running(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with _start(home, str(port)) as supervisor:
            _wait_for(supervisor, f"knowledge: port {port} is in use")
            assert supervisor.wait(60) == 1
    assert find_postgres(home) is None


def test_down_ends_what_a_killed_supervisor_has_left(home: Home, postgres_only: Settings) -> None:
    with _start(home) as supervisor:
        _wait_for(supervisor, "stack: ready")
        supervisor.kill()
    assert len(_of_the_stack(home)) == 2
    lines: list[str] = []
    down(home, postgres_only, lines.append)
    assert _of_the_stack(home) == []
    assert find_postgres(home) is None
    assert lines == ["stack: ended what an earlier supervisor had left running", "stack: stopped"]


def test_down_asks_the_running_supervisor_and_waits_for_it(
    home: Home, postgres_only: Settings
) -> None:
    with _start(home) as supervisor:
        _wait_for(supervisor, "stack: ready")
        lines: list[str] = []
        down(home, postgres_only, lines.append)
        assert supervisor.wait(1) == 0
    assert lines == ["stack: stopping", "stack: stopped"]
    down(home, postgres_only, lines.append)
    assert lines[-1] == "stack: nothing was running"


def test_a_second_up_says_already_running_and_starts_nothing(home: Home) -> None:
    with _start(home) as supervisor:
        _wait_for(supervisor, "stack: ready")
        before = _of_the_stack(home)
        second = subprocess.run(
            [sys.executable, "-m", "knowledge.cli.main", "up"],
            env=os.environ
            | {"KNOWLEDGE_HOME": str(home.root), "KNOWLEDGE_WEAVIATE_URL": "http://127.0.0.1:1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert second.stdout.startswith(f"stack: already running (running) in {home.root}")
        assert "api: healthy http://127.0.0.1:" in second.stdout
        assert second.returncode == 1  # the parts that this small stack lacks are not healthy
        assert _of_the_stack(home) == before
        supervisor.terminate()
        assert supervisor.wait(60) == 0


def test_status_shows_what_really_answers(home: Home, postgres_only: Settings) -> None:
    assert [part.healthy for part in status(home, postgres_only).parts] == [False] * len(
        parts_of(postgres_only)
    )
    with _start(home) as supervisor:
        _wait_for(supervisor, "stack: ready")
        found = {part.name: part for part in status(home, postgres_only).parts}
        record = read_record(home)
        assert record is not None
        assert found["api"].healthy
        assert found["api"].pid == record.parts["api"].pid
        assert found["api"].url == f"http://127.0.0.1:{record.api_port}"
        assert found["postgres"].healthy
        assert (found["postgres"].version or "").startswith("18.")
        assert not found["weaviate"].healthy
        assert not found["dagster-daemon"].healthy
        value = status(home, postgres_only).to_json()
        assert set(value) == {"parts", "collections"}
        assert set(value["parts"][0]) == {"name", "url", "healthy", "version", "pid"}
        json.dumps(value)
        supervisor.terminate()
        assert supervisor.wait(60) == 0


def test_a_part_that_keeps_crashing_backs_off_and_is_given_up_with_a_word() -> None:
    now = 0.0
    crashes = Crashes(clock=lambda: now)
    lines: list[str] = []
    for attempt in range(CRASHES_ALLOWED):
        assert not crashes.may_restart("api", "its last words", lines.append)
        now += 2.0**attempt
        assert crashes.may_restart("api", "its last words", lines.append)
    assert not crashes.may_restart("api", "its last words", lines.append)
    now += 10_000
    assert not crashes.may_restart("api", "its last words", lines.append)
    assert lines[-1] == "api: crashed again, not restarted any more: its last words"
    assert len(lines) == CRASHES_ALLOWED + 1


def test_crashes_far_apart_do_not_add_up() -> None:
    now = 0.0
    crashes = Crashes(clock=lambda: now)
    lines: list[str] = []
    for _ in range(3 * CRASHES_ALLOWED):
        now += 1000
        assert not crashes.may_restart("api", "", lines.append)
        now += 1
        assert crashes.may_restart("api", "", lines.append)
    assert all("restart in 1 s" in line for line in lines)


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz").is_success
    except httpx.HTTPError:
        return False
