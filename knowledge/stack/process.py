"""Processes that outlive the program that started them, told apart from reused ids."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil  # type: ignore[import-untyped]

POLL_S: Final = 0.05
MARK: Final = "KNOWLEDGE_STACK_ID"


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process id together with its start time, in the kernel's unit: never another process."""

    pid: int
    started_at: float

    @classmethod
    def of(cls, pid: int) -> ProcessId | None:
        """The identity of the running process ``pid``; None when there is none."""
        started_at = _started_at(pid)
        return None if started_at is None else cls(pid, started_at)

    @classmethod
    def of_self(cls) -> ProcessId:
        pid = os.getpid()
        return cls(pid, _started_at(pid) or -1.0)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ProcessId:
        return cls(int(value["pid"]), float(value["startedAt"]))

    def to_json(self) -> dict[str, Any]:
        return {"pid": self.pid, "startedAt": self.started_at}

    def is_alive(self) -> bool:
        """Whether this very process runs. A zombie does not; one of ours is reaped."""
        with suppress(ChildProcessError, OSError):
            os.waitpid(self.pid, os.WNOHANG)
        return _started_at(self.pid) == self.started_at


def spawn(argv: Sequence[str], *, environment: Mapping[str, str], log: Path) -> ProcessId:
    """Start ``argv`` in a session of its own, with no input and its output in ``log``.

    The child is not tied to this process: it goes on when this one ends.
    """
    _keep_short(log)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    pid = os.posix_spawn(
        argv[0],
        list(argv),
        dict(environment),
        setsid=True,
        # What a caller ignores or blocks (nohup, a test runner) must not keep it from ending.
        setsigmask=[],
        setsigdef=[signal.SIGTERM, signal.SIGINT],
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
    )
    return ProcessId.of(pid) or ProcessId(pid, -1.0)  # -1: it ended at once


def end(
    process: ProcessId,
    *,
    signals: Sequence[tuple[signal.Signals, float]],
    group: bool = False,
) -> bool:
    """Send each signal and wait up to its time (s) until the process has ended.

    With ``group`` the signals go to its whole process group. Returns whether it ended.
    """
    for number, patience_s in signals:
        if not process.is_alive():
            break
        with suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(process.pid, number)
        wait_until(lambda: not process.is_alive(), patience_s)
    return not process.is_alive()


def end_marked(mark: str, *, patience_s: float = 5.0) -> int:
    """End every process whose environment carries ``KNOWLEDGE_STACK_ID=mark``, but this one.

    Finds what a killed supervisor or part left behind. Returns how many were found.
    """
    return _end_all(_marked(mark), patience_s)


def end_descendants(*, patience_s: float = 5.0) -> int:
    """End every process below this one, orphans included where this one adopts them."""
    return _end_all(psutil.Process().children(recursive=True), patience_s)


def wait_until(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Poll until ``condition`` holds; False when it did not within ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True


def adopt_orphans() -> None:
    """Make orphaned descendants children of this process (Linux), so that none escapes."""
    import ctypes
    import sys

    if sys.platform == "linux":
        pr_set_child_subreaper = 36
        ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


def reap() -> None:
    """Collect ended children, adopted ones included."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass


def log_size(log: Path) -> int:
    """Bytes in ``log``; 0 when there is none."""
    return log.stat().st_size if log.exists() else 0


def last_lines(log: Path, count: int = 3, limit: int = 400, since: int = 0) -> str:
    """The last non-empty lines of ``log`` on one line; empty when there are none.

    Each is cut at ``limit`` characters; nothing before byte ``since`` is read.
    """
    size = log_size(log)
    if size == 0:
        return ""
    with log.open("rb") as file:
        file.seek(max(0, size - 32_768, since if since <= size else 0))
        text = file.read().decode(errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(line[:limit] for line in lines[-count:])


def _end_all(processes: Iterable[psutil.Process], patience_s: float) -> int:
    found = [process for process in processes if process.pid != os.getpid()]
    for process in found:
        with suppress(psutil.Error):
            process.terminate()
    _, stubborn = psutil.wait_procs(found, timeout=patience_s)
    for process in stubborn:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(stubborn, timeout=patience_s)
    return len(found)


def _marked(mark: str) -> Iterable[psutil.Process]:
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(MARK) == mark:
                yield process


def _started_at(pid: int) -> float | None:
    """Start time of a running process: clock ticks since boot on Linux, else seconds."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None if Path("/proc/self").is_dir() else _started_at_portable(pid)
    except OSError as error:
        if error.errno == errno.ESRCH:
            return None
        raise
    state, start_ticks = fields[0], fields[19]
    return None if state in "ZX" else float(start_ticks)


def _started_at_portable(pid: int) -> float | None:
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else float(process.create_time())
    except psutil.Error:
        return None


def _keep_short(log: Path, limit_bytes: int = 5_000_000) -> None:
    with suppress(FileNotFoundError):
        if log.stat().st_size > limit_bytes:
            log.replace(log.with_suffix(".1.log"))
