"""``knowledge memory promote|verify|forget``."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Mapping
from typing import Any

import click

from knowledge.cli import options
from knowledge.cli.memory.place import MemoryPlace, of_memory, opened_memory, place_to_wire
from knowledge.cli.output import block, plural, print_json
from knowledge.memory import care
from knowledge.memory.care import Chosen
from knowledge.storage.postgres.facts import memory_care

facts = click.option(
    "--fact", "fact_ids", type=click.UUID, multiple=True, metavar="ID", help="Repeatable."
)
session = click.option("--session", metavar="S", help="The facts of that session only.")


@click.command("promote", short_help="Share facts of one session with every session.")
@of_memory
@facts
@session
@options.as_json
def promote_command(
    tenant: str,
    project: str,
    graph: str,
    fact_ids: tuple[uuid.UUID, ...],
    session: str | None,
    as_json: bool,
) -> None:
    """Share facts of one session; they stay as trusted as they were told."""
    _require_one({"--fact ID": fact_ids, "--session S": session})
    with opened_memory(tenant, project, graph) as memory:
        chosen = Chosen(fact_ids, session=session)
        done = care.promote(memory.runtime.app, memory.sender, memory.namespace, chosen)
    _show(done, memory, f"{plural(len(done['promoted']), 'fact')} of {memory} promoted", as_json)


@click.command("verify", short_help="Say as a person that facts are right.")
@of_memory
@facts
@options.as_json
def verify_command(
    tenant: str, project: str, graph: str, fact_ids: tuple[uuid.UUID, ...], as_json: bool
) -> None:
    """Mark facts as verified; that raises no trust tier."""
    if not fact_ids:
        raise click.UsageError("say which facts: --fact ID")
    with opened_memory(tenant, project, graph) as memory:
        done = care.verify(memory.runtime.app, memory.sender, memory.namespace, fact_ids)
    _show(done, memory, f"{plural(done['verified'], 'fact')} of {memory} verified", as_json)


@click.command("forget", short_help="Take facts out of every store; prints a receipt.")
@of_memory
@facts
@click.option(
    "--session", metavar="S", help="What was told in that session, and in no other as well."
)
@click.option("--entity", metavar="NAME", help="Every fact with this name at either end.")
@click.option("--everything", is_flag=True, help="The whole memory; needs --yes.")
@click.option("--yes", is_flag=True, help="Do not ask before everything is forgotten.")
@options.as_json
def forget_command(
    tenant: str,
    project: str,
    graph: str,
    fact_ids: tuple[uuid.UUID, ...],
    session: str | None,
    entity: str | None,
    everything: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Take facts, with all that was ever told of them, out of every store for good."""
    _require_one(
        {
            "--fact ID": fact_ids,
            "--entity NAME": entity,
            "--session S": session,
            "--everything": everything,
        }
    )
    is_asked = everything and not yes
    if is_asked and not sys.stdin.isatty():
        raise click.UsageError("--everything empties the whole memory: say --yes if you mean it")
    with opened_memory(tenant, project, graph) as memory:
        if is_asked:
            _confirm(memory)
        chosen = Chosen(fact_ids, entity, session, everything)
        receipt = care.forget(memory.runtime.app, memory.sender, memory.namespace, chosen)
    if as_json:
        print_json({**receipt.to_wire(), **place_to_wire(memory)})
        return
    rows = [(name, f"{count:,}") for name, count in receipt.counts.items()]
    shown = block([("receipt", str(receipt.receipt_id)), *rows])
    click.echo(f"Forgotten in {memory}\n{shown}")


def _require_one(given: Mapping[str, Any]) -> None:
    """Raises `click.UsageError` unless exactly one of these options has a value."""
    if sum(map(bool, given.values())) != 1:
        *most, last = given
        raise click.UsageError(f"say what is meant, one of {', '.join(most)} or {last}")


def _confirm(memory: MemoryPlace) -> None:
    """Ask on the terminal. Raises `click.ClickException` where the answer is no."""
    sender = memory.sender
    with memory.runtime.app.tenant(sender.scope.tenant_id) as connection:
        rows = memory_care.tellings_of(
            connection, sender.scope.tenant_id, memory.project, memory.namespace, believed=False
        )
    count = plural(len({row["fact_id"] for row in rows}), "fact")
    if not click.confirm(f"Forget all of memory {memory}, {count}, for good?", err=True):
        raise click.ClickException("nothing was forgotten")


def _show(done: dict[str, Any], memory: MemoryPlace, line: str, as_json: bool) -> None:
    if as_json:
        print_json({**done, **place_to_wire(memory)})
    else:
        click.echo(line)
