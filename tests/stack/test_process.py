from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from knowledge.stack.process import (
    MARK,
    ProcessId,
    end,
    end_marked,
    last_lines,
    spawn,
    wait_until,
)

SLEEP = [sys.executable, "-c", "import signal; print('up', flush=True); signal.pause()"]
IGNORE_SIGTERM = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
while True:
    signal.pause()
"""
STUBBORN = [sys.executable, "-c", IGNORE_SIGTERM]


def _spawn(argv: list[str], log: Path, mark: str = "") -> ProcessId:
    process = spawn(argv, environment=dict(os.environ) | {MARK: mark}, log=log)
    assert wait_until(lambda: last_lines(log) == "up", 10)
    return process


def test_a_process_is_alive_until_it_is_ended(tmp_path: Path) -> None:
    process = _spawn(SLEEP, tmp_path / "log")
    assert process.is_alive()
    assert end(process, signals=((signal.SIGTERM, 10.0),))
    assert not process.is_alive()


def test_a_process_ends_also_when_its_starter_ignores_and_blocks_the_signal(
    tmp_path: Path,
) -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    try:
        process = _spawn(SLEEP, tmp_path / "log")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGTERM, before)
    assert end(process, signals=((signal.SIGTERM, 10.0),))


def test_another_process_with_the_same_id_is_not_taken_for_it_and_not_ended(
    tmp_path: Path,
) -> None:
    process = _spawn(SLEEP, tmp_path / "log")
    earlier = ProcessId(process.pid, process.started_at - 1)
    assert not earlier.is_alive()
    assert end(earlier, signals=((signal.SIGKILL, 1.0),))
    assert process.is_alive()
    end(process, signals=((signal.SIGKILL, 10.0),))


def test_a_process_that_ignores_the_first_signal_gets_the_next(tmp_path: Path) -> None:
    process = _spawn(STUBBORN, tmp_path / "log")
    assert end(process, signals=((signal.SIGTERM, 0.2), (signal.SIGKILL, 10.0)))


def test_a_spawned_process_has_a_session_of_its_own(tmp_path: Path) -> None:
    process = _spawn(SLEEP, tmp_path / "log")
    assert os.getsid(process.pid) == process.pid != os.getsid(0)
    end(process, signals=((signal.SIGKILL, 10.0),))


def test_only_processes_with_the_mark_are_swept(tmp_path: Path) -> None:
    mine = _spawn(SLEEP, tmp_path / "mine", mark=f"{os.getpid()}-a")
    other = _spawn(SLEEP, tmp_path / "other", mark=f"{os.getpid()}-b")
    assert end_marked(f"{os.getpid()}-a") == 1
    assert not mine.is_alive()
    assert other.is_alive()
    end(other, signals=((signal.SIGKILL, 10.0),))


def test_the_last_lines_of_a_log_come_on_one_line_and_none_from_an_earlier_run(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    log.write_text("one\n\ntwo\nthree\n")
    assert last_lines(log, count=2) == "two | three"
    assert last_lines(log, since=len("one\n\ntwo\n")) == "three"
    assert last_lines(tmp_path / "absent") == ""
