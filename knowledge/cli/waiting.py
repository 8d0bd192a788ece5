"""``--wait``: until what was asked for serves."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from knowledge.errors import KnowledgeError
from knowledge.home import Home
from knowledge.model.collection import Collection
from knowledge.runtime import Runtime
from knowledge.stack.record import read_record, running_supervisor
from knowledge.storage.postgres import inbox, rebuilds
from knowledge.storage.postgres.rebuilds import Rebuild

POLL_S: Final = 0.25
OWN_RUNS: Final = 2
"""Runs that one command starts itself: a second one when the first failed on another's event."""
PATIENCE_S: Final = 30.0
"""How long a run may take to start and, when its time is over, to let go of its collection."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where an event stands: ``pending``, ``committed``, ``served`` or ``rejected``.

    ``revision`` is the clock's, from ``committed`` on; ``error`` says why it does not serve.
    """

    state: str
    revision: int | None = None
    error: str | None = None
    seconds: float = 0.0

    @property
    def is_served(self) -> bool:
        return self.state == "served"

    def require_served(self) -> None:
        """Raise `KnowledgeError` with the reason unless the event serves."""
        if not self.is_served:
            raise KnowledgeError(self.error or f"the event is {self.state}")


def has_daemon(home: Home) -> bool:
    """Whether the stack's daemon runs, which indexes what is announced."""
    record = read_record(home) if running_supervisor(home) else None
    daemon = record.parts.get("dagster-daemon") if record else None
    return daemon is not None and daemon.is_alive()


def wait_until_served(
    runtime: Runtime,
    collection: Collection,
    sequence: int,
    *,
    timeout_s: float,
    progress: Callable[[str], None],
) -> Outcome:
    """Wait for the event ``sequence``; where no daemon runs, run the assets from here.

    Never raises for an event that fails: the outcome says why.
    """
    started = time.monotonic()
    own_runs, failure = 0, None
    while True:
        outcome = _look(runtime, collection, sequence, time.monotonic() - started)
        left = timeout_s - outcome.seconds
        if outcome.state in ("served", "rejected"):
            return outcome
        if left <= 0:
            return _late(outcome, timeout_s)
        if has_daemon(runtime.home):
            if _has_given_up(runtime, collection, sequence):
                return outcome
            time.sleep(POLL_S)
        elif own_runs < OWN_RUNS:
            own_runs += 1
            progress(f"indexing {collection.partition} (no stack runs, so it happens here)")
            failure = _run(runtime.home, collection, left)
        else:
            reason = failure or outcome.error or "the run ended without serving it"
            return Outcome(outcome.state, outcome.revision, reason, outcome.seconds)


def wait_until_rebuilt(
    runtime: Runtime,
    collection: Collection,
    wanted: Rebuild,
    *,
    timeout_s: float,
    progress: Callable[[str], None],
) -> str | None:
    """Wait for the end of a rebuild; where no daemon runs, build it from here.

    Returns why it did not end, where that is known; one that takes longer goes on.
    """
    started = time.monotonic()
    has_run, failure = False, None
    while True:
        found = rebuilds.find(runtime.app, collection.tenant_id, wanted.rebuild_id)
        left = timeout_s - (time.monotonic() - started)
        if not found.state.is_active:
            return None
        if left <= 0:
            return f"not built after {timeout_s:g} s: it goes on, see `knowledge rebuild --status`"
        if has_daemon(runtime.home):
            time.sleep(POLL_S)
        elif has_run:
            return failure
        else:
            has_run = True
            progress(f"rebuilding {collection.partition} (no stack runs, so it happens here)")
            failure = _run(
                runtime.home,
                collection,
                left,
                "--job",
                "rebuild",
                "--rebuild",
                str(wanted.rebuild_id),
            )


def _look(runtime: Runtime, collection: Collection, sequence: int, seconds: float) -> Outcome:
    row = inbox.event_state(runtime.app, collection.tenant_id, sequence)
    return Outcome(row["state"], row["revision"], row["error"], seconds)


def _has_given_up(runtime: Runtime, collection: Collection, sequence: int) -> bool:
    row = inbox.event_state(runtime.app, collection.tenant_id, sequence)
    return bool(row["error"]) and row["attempts"] >= runtime.settings.indexing.max_attempts


def _late(outcome: Outcome, timeout_s: float) -> Outcome:
    reason = f"not serving after {timeout_s:g} s; it stays announced and will be tried again"
    if outcome.error:
        reason += f" (last failure: {outcome.error})"
    return Outcome(outcome.state, outcome.revision, reason, outcome.seconds)


def _run(home: Home, collection: Collection, timeout_s: float, *options: str) -> str | None:
    """Run a job on the collection in a process of its own; the failure's last line."""
    argv = [
        *(sys.executable, "-m", "orchestration.run"),
        *("--home", str(home.root), "--partition", collection.partition),
        *("--timeout", f"{timeout_s:.3f}"),
        *options,
    ]
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=timeout_s + PATIENCE_S
        )
    except subprocess.TimeoutExpired:
        return f"the run did not stop after {timeout_s:.0f} s and was killed"
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return (
        lines[-1].removeprefix("knowledge: ")
        if lines
        else f"the run ended with exit code {done.returncode}"
    )
