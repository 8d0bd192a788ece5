"""The embedded PostgreSQL of a home: started here, stopped here, reached by a unix socket."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Final

import psutil  # type: ignore[import-untyped]

from knowledge.errors import StackError
from knowledge.home import Home
from knowledge.stack.process import ProcessId, end, last_lines, wait_until

START_TIMEOUT_S: Final = 90.0
ORPHANS_TIMEOUT_S: Final = 10.0
SOCKET_LINE: Final = 4  # of postmaster.pid
STATUS_LINE: Final = 7
REMEDIES: Final = {
    "No space left on device": "free disk space",
    "incompatible with server": "the data is of another PostgreSQL version: restore a backup",
    "could not locate a valid checkpoint": "the data folder is damaged: restore a backup",
    "invalid checkpoint": "the data folder is damaged: restore a backup",
    "could not open file": "the data folder is damaged: restore a backup",
    "could not read": "the data folder is damaged: restore a backup",
}


def start_postgres(home: Home) -> ProcessId:
    """Start PostgreSQL on ``home.postgres_dir``, creating the folder on first use.

    A server that already runs on the folder is adopted. Raises `StackError`.
    """
    _forget_dead_server(home)
    errors = _run_starter(home.postgres_dir)
    # The starter gives up early while a crashed server still recovers; the server goes on.
    ready = wait_until(lambda: _is_ready(home) or find_postgres(home) is None, START_TIMEOUT_S)
    server = find_postgres(home)
    if not ready or server is None or not _is_ready(home):
        if server is not None:
            stop_postgres(server)
        raise StackError(_explain(home, errors))
    _close_socket_dir(home)
    return server


def find_postgres(home: Home) -> ProcessId | None:
    """The running server of the data folder, whoever started it."""
    try:
        pid = int(_postmaster_lines(home)[0])
    except (IndexError, ValueError):
        return None
    return ProcessId.of(pid) if _serves(pid, home.postgres_dir) else None


def stop_postgres(server: ProcessId) -> bool:
    """Fast shutdown; an immediate one when it takes too long. Returns whether it ended."""
    return end(
        server,
        signals=((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 5.0)),
    )


def admin_url(home: Home) -> str:
    """URL of the superuser's database on the running server's socket."""
    return f"postgresql://postgres@/postgres?host={_postmaster_lines(home)[SOCKET_LINE]}"


def postgres_log(home: Home) -> Path:
    return home.postgres_dir / "log"


def is_postgres_ready(home: Home) -> bool:
    """Whether the home's server runs and has finished starting."""
    return find_postgres(home) is not None and _is_ready(home)


def _is_ready(home: Home) -> bool:
    lines = _postmaster_lines(home)
    return len(lines) > STATUS_LINE and lines[STATUS_LINE].strip() == "ready"


def _postmaster_lines(home: Home) -> list[str]:
    try:
        return (home.postgres_dir / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return []


def _serves(pid: int, data: Path) -> bool:
    """Whether ``pid`` is the PostgreSQL of this folder, not a process that reused the id."""
    try:
        arguments: list[str] = psutil.Process(pid).cmdline()
    except psutil.Error:
        return False
    return any(pair == ("-D", str(data.resolve())) for pair in pairwise(arguments))


def _run_starter(data: Path) -> str:
    """Run the program that creates and starts the server; returns what it wrote to stderr."""
    with tempfile.TemporaryDirectory(prefix="knowledge-start-") as private:
        # The package's lock file goes there: homes start side by side, users do not meet.
        (Path(private) / "python_PostgresServer").mkdir()
        done = subprocess.run(
            [sys.executable, "-m", "knowledge.stack.postgres_starter", str(data)],
            check=False,
            env=os.environ | {"XDG_RUNTIME_DIR": private},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C must not interrupt the creation of the data folder
        )
    return done.stderr


def _forget_dead_server(home: Home) -> None:
    """Remove the lock files of a killed server, whose id may be a zombie's or reused by now.

    PostgreSQL would refuse to start on them. Its own guard goes with them, so the dead
    server's sessions, which could still write, must have ended first.
    """
    lines = _postmaster_lines(home)
    if not lines or find_postgres(home) is not None:
        return
    _, writing = psutil.wait_procs(_sessions(home.postgres_dir), timeout=ORPHANS_TIMEOUT_S)
    for session in writing:
        session.send_signal(signal.SIGQUIT)
    if psutil.wait_procs(writing, timeout=ORPHANS_TIMEOUT_S)[1]:
        raise StackError(
            f"sessions of a killed PostgreSQL still use {home.postgres_dir}: end their processes"
        )
    if len(lines) > SOCKET_LINE:
        for lock in Path(lines[SOCKET_LINE]).glob(".s.PGSQL.*.lock"):
            lock.unlink()
    (home.postgres_dir / "postmaster.pid").unlink()


def _sessions(data: Path) -> list[psutil.Process]:
    """The processes that work in the data folder: PostgreSQL's sessions and workers do."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cwd() == str(data.resolve()) and process.name() == "postgres":
                found.append(process)
    return found


def _close_socket_dir(home: Home) -> None:
    """Local connections need no password, so only the server's user may reach the socket."""
    folder = Path(_postmaster_lines(home)[SOCKET_LINE])
    if folder != home.postgres_dir:
        owner = home.postgres_dir.stat()
        if folder.stat().st_uid != owner.st_uid:
            os.chown(folder, owner.st_uid, owner.st_gid)
        folder.chmod(0o700)
    link = home.logs_dir / "postgres.log"
    with suppress(FileExistsError):
        link.symlink_to(postgres_log(home))


def _explain(home: Home, starter_output: str) -> str:
    log = last_lines(postgres_log(home))
    if not log:
        lines = [line.strip() for line in starter_output.splitlines() if line.strip()]
        log = " | ".join(lines[-3:])
    known = [remedy for sign, remedy in REMEDIES.items() if sign in log + starter_output]
    remedy = known[0] if known else f"see {postgres_log(home)}"
    return f"PostgreSQL did not start in {home.postgres_dir}: {log} ({remedy})"
