"""``knowledge memory status``: how the last recall and the last offload went, without any text."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import click

from knowledge.cli.memory.spool import Spool, SpoolSize
from knowledge.cli.memory.state import StateFolder, read_json, write_private

HOOKS: Final = ("recall", "offload")

OK: Final = "ok"
SKIPPED: Final = "skipped"
SPOOLED: Final = "spooled"
FAILED: Final = "failed"


@dataclass(frozen=True, slots=True)
class HookOutcome:
    """How one hook went. Counts and ids only: never text of turns, queries or facts.

    ``outcome`` is `OK`, `SKIPPED` (there was nothing to do), `SPOOLED` or `FAILED`.
    """

    outcome: str
    reason: str | None = None
    counts: dict[str, int] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)


def record(
    folder: StateFolder,
    hook: str,
    outcome: HookOutcome,
    *,
    seconds: float,
    caller: dict[str, str | None],
) -> None:
    """Replace the status of ``hook``. Raises `OSError` where it cannot be written."""
    folder.prepare()
    file = folder.status_file(hook)
    before = read_json(file) or {}
    now = datetime.now(UTC).isoformat(timespec="seconds")
    has_failed = outcome.outcome == FAILED
    streak = before.get("failuresInARow")
    write_private(
        file,
        {
            "at": now,
            "outcome": outcome.outcome,
            "reason": outcome.reason,
            "seconds": round(seconds, 3),
            **caller,
            "counts": outcome.counts,
            **outcome.details,
            "failuresInARow": (streak if isinstance(streak, int) else 0) + 1 if has_failed else 0,
            "lastOkAt": now if outcome.outcome == OK else before.get("lastOkAt"),
        },
    )


@click.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print the status as JSON.")
def status_command(as_json: bool) -> None:
    """Show how the last recall and the last offload of the hooks went.

    It is kept in KNOWLEDGE_STATE_DIR (default: knowledge in XDG_STATE_HOME or ~/.local/state) and
    holds times, counts and reasons, never text.
    """
    folder = StateFolder.locate(os.environ)
    found = {hook: read_json(folder.status_file(hook)) for hook in HOOKS}
    waiting = Spool(folder.spool_dir).size()
    if as_json:
        click.echo(json.dumps({"stateDir": str(folder.root), **found, "spool": waiting.wire()}))
        return
    for hook in HOOKS:
        click.echo(f"{hook:8} {_line(found[hook])}")
    click.echo(f"{'spool':8} {_spool_line(waiting)}")


def _line(status: dict[str, Any] | None) -> str:
    if status is None:
        return "never ran"
    counts = status.get("counts")
    parts = [
        f"{status.get('outcome'):7} {status.get('at')}  {status.get('seconds')} s",
        f"{status.get('client') or '-'} {status.get('event') or '-'}",
        ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        if isinstance(counts, dict)
        else "",
        str(status.get("reason") or ""),
    ]
    if failures := status.get("failuresInARow"):
        parts.append(f"{failures} in a row; last ok: {status.get('lastOkAt') or 'never'}")
    return "  ".join(part for part in parts if part)


def _spool_line(waiting: SpoolSize) -> str:
    if not waiting.files:
        return "empty"
    return f"{waiting.files} waiting, {waiting.size_bytes} bytes, since {waiting.oldest_at}"
