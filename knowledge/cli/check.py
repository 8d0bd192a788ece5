"""``knowledge check``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from knowledge.cli import options
from knowledge.cli.output import one_line, plural, print_json, table
from knowledge.errors import KnowledgeError, NotFound
from knowledge.home import Home

SHOWN_IDS: Final = 3
ID_CHARS: Final = 80
_STATUSES: Final = {"pass": "passed", "warn": "warned", "fail": "failed", "error": "could not run"}


@click.command("check")
@click.option("-t", "--tenant", metavar="T", help="Only this tenant's collections.")
@click.option("-c", "--collection", metavar="C", help="Only this collection of the tenant.")
@click.option(
    "--suite",
    "suites",
    multiple=True,
    metavar="NAME",
    help="Only this suite: snapshot_chunks, embeddings, hybrid_index or collection. Repeatable.",
)
@click.option(
    "--select",
    "paths",
    multiple=True,
    type=click.Path(exists=True),
    metavar="PATH",
    help="Run checks of your own: a .yml, a .sql or a folder of them. Repeatable.",
)
@options.as_json
def check_command(
    tenant: str | None,
    collection: str | None,
    suites: tuple[str, ...],
    paths: tuple[str, ...],
    as_json: bool,
) -> None:
    """Check whole collections: pending snapshots, vectors, index and PostgreSQL.

    Exit code 1 when a check fails or cannot run; warnings are allowed.
    """
    if collection is not None and tenant is None:
        raise click.UsageError("--collection needs --tenant")
    home = Home.locate()
    if not home.exists():
        raise NotFound(f"there is no installation in {home.root}: set KNOWLEDGE_HOME")
    arguments = {
        "--home": [str(home.root)],
        "--tenant": [tenant] if tenant else [],
        "--collection": [collection] if collection else [],
        "--suite": list(suites),
        "--select": list(paths),
    }
    found = _run([text for name, values in arguments.items() for v in values for text in (name, v)])
    checks = found["checks"]
    if as_json:
        print_json(found)
    else:
        click.echo(_shown(checks))
    if any(check["status"] in ("fail", "error") for check in checks):
        click.get_current_context().exit(1)


def _run(arguments: Sequence[str]) -> dict[str, Any]:
    """The checks in a process of their own: this package does not import the one they are in."""
    done = subprocess.run(
        [sys.executable, "-m", "orchestration.check", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.stdout.startswith("{"):
        found: dict[str, Any] = json.loads(done.stdout)
        return found
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    reason = lines[-1] if lines else f"the checks ended with exit code {done.returncode}"
    _, _, message = reason.rpartition("error: ") if done.returncode == 2 else ("", "", reason)
    message = message.removeprefix("knowledge: ")
    raise click.UsageError(message) if done.returncode == 2 else KnowledgeError(message)


def _shown(checks: Sequence[Mapping[str, Any]]) -> str:
    if not checks:
        return "Nothing to check yet."
    rows = [
        (
            check["status"],
            f"{check['tenantId']}/{check['collection']}",
            check["name"],
            f"{check['failingRows']:>7}",
            f"{check['seconds']:>7.2f}",
            check["reason"] or _ids(check["sample"]),
        )
        for check in checks
    ]
    header = ("STATUS", "COLLECTION", "CHECK", "FAILING", "SECONDS", "IDS")
    return f"{table(header, rows)}\n\n{_total(checks)}"


def _ids(sample: Sequence[Mapping[str, str | None]]) -> str:
    """Up to three rows, each by its id columns."""
    return ", ".join(
        " ".join(one_line(value or "-", ID_CHARS) for value in row.values())
        for row in sample[:SHOWN_IDS]
    )


def _total(checks: Sequence[Mapping[str, Any]]) -> str:
    counts = Counter(check["status"] for check in checks)
    parts = [f"{counts[status]} {word}" for status, word in _STATUSES.items() if counts[status]]
    seconds = sum(check["seconds"] for check in checks)
    return f"{plural(len(checks), 'check')}: {', '.join(parts)} in {seconds:.1f} s."
