"""Bring the stack up and down, in the foreground or detached."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from knowledge.errors import StackError
from knowledge.home import Home
from knowledge.settings import Settings
from knowledge.stack.process import ProcessId, end, log_size, spawn
from knowledge.stack.record import only_supervisor, read_record, running_supervisor
from knowledge.stack.servers import Progress, stop_unused_servers
from knowledge.stack.status import StackStatus, status
from knowledge.stack.supervisor import Supervisor, end_leftovers

ERROR_PREFIX = "knowledge: "
STOP_PATIENCE_S = 90.0
FOLLOW_INTERVAL_S = 0.2


def up(home: Home, settings: Settings, progress: Progress) -> bool:
    """Run the stack in this process until it is told to stop.

    When it already runs, say so and where; returns whether that one is healthy.
    Raises `StackError` when a part does not start.
    """
    home.prepare()
    with only_supervisor(home) as alone:
        if alone:
            Supervisor(home, settings, progress).run()
            return True
    return _say_already_running(home, settings, progress)


def up_detached(
    home: Home, settings: Settings, arguments: Sequence[str], progress: Progress
) -> bool:
    """Start a supervisor in a session of its own and wait until all parts are healthy.

    ``arguments`` are those of ``knowledge up``. Raises `StackError` with its last words.
    """
    home.prepare()
    if running_supervisor(home):
        return _say_already_running(home, settings, progress)
    log = home.logs_dir / "supervisor.log"
    start = log_size(log)
    supervisor = spawn(
        [sys.executable, "-m", "knowledge.cli.main", "up", *arguments],
        environment=dict(os.environ) | {"KNOWLEDGE_HOME": str(home.root), "PYTHONUNBUFFERED": "1"},
        log=log,
    )
    try:
        return _follow(home, supervisor, log, start, progress)
    except KeyboardInterrupt:
        end(supervisor, signals=((signal.SIGTERM, STOP_PATIENCE_S),))
        raise


def down(home: Home, settings: Settings, progress: Progress) -> None:
    """Stop the stack, or what a killed supervisor left of it. Nothing running is no error."""
    if not home.exists():
        progress(f"stack: nothing runs, {home.root} does not exist")
        return
    stopped = False
    if supervisor := running_supervisor(home):
        progress("stack: stopping")
        stopped = True
        if not end(supervisor, signals=((signal.SIGTERM, STOP_PATIENCE_S),)):
            progress("stack: the supervisor does not answer, ending it")
            end(supervisor, signals=((signal.SIGKILL, 5.0),))
    with only_supervisor(home) as alone:
        if not alone:
            raise StackError("another `knowledge up` has just started: run `knowledge down` again")
        if end_leftovers(home):
            stopped = True
            progress("stack: ended what an earlier supervisor had left running")
        if not stop_unused_servers(home):
            progress("stack: another command still uses the servers and stops them when it ends")
    progress("stack: stopped" if stopped else "stack: nothing was running")


def _follow(home: Home, supervisor: ProcessId, log: Path, start: int, progress: Progress) -> bool:
    """Show the supervisor's lines until it is ready; raise its error when it ends before."""
    with log.open() as lines:
        lines.seek(start)
        error = ""
        while True:
            alive = supervisor.is_alive()
            for line in iter(lines.readline, ""):
                if line.startswith(ERROR_PREFIX):
                    error = line.removeprefix(ERROR_PREFIX).strip()
                else:
                    progress(line.rstrip())
            other = None if alive else running_supervisor(home)
            if other and other != supervisor:  # somebody else was faster: theirs counts
                supervisor = other
                continue
            if not alive:
                raise StackError(error or f"the supervisor ended without a word: see {log}")
            record = read_record(home)
            if record and record.supervisor == supervisor and record.state == "running":
                return True
            time.sleep(FOLLOW_INTERVAL_S)


def _say_already_running(home: Home, settings: Settings, progress: Progress) -> bool:
    record = read_record(home)
    found: StackStatus = status(home, settings)
    state = record.state if record else "starting"
    progress(f"stack: already running ({state}) in {home.root}")
    for part in found.parts:
        progress(f"{part.name}: {'healthy' if part.healthy else 'not healthy'} {part.url or ''}")
    return found.healthy
