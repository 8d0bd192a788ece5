"""``knowledge memory promote|verify|forget``."""

from __future__ import annotations

import uuid
from typing import Any

import click

from knowledge.cli import options
from knowledge.cli.memory.place import of_memory, opened_memory
from knowledge.cli.output import block, plural, print_json
from knowledge.memory import care
from knowledge.memory.care import Chosen

facts = click.option(
    "--fact", "fact_ids", type=click.UUID, multiple=True, metavar="ID", help="Repeatable."
)
session = click.option("--session", metavar="S", help="The facts of this session only.")


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
    with opened_memory(tenant, project, graph) as memory:
        chosen = Chosen(fact_ids, session=session)
        done = care.promote(memory.runtime.app, memory.sender, memory.namespace, chosen)
    _show(done, f"{plural(len(done['promoted']), 'fact')} of {memory.namespace} promoted", as_json)


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
    _show(done, f"{plural(done['verified'], 'fact')} of {memory.namespace} verified", as_json)


@click.command("forget", short_help="Take facts out of every store; prints a receipt.")
@of_memory
@facts
@session
@click.option("--entity", metavar="NAME", help="Every fact with this name at either end.")
@click.option("--everything", is_flag=True, help="The whole memory.")
@options.as_json
def forget_command(
    tenant: str,
    project: str,
    graph: str,
    fact_ids: tuple[uuid.UUID, ...],
    session: str | None,
    entity: str | None,
    everything: bool,
    as_json: bool,
) -> None:
    """Take facts, with all that was ever told of them, out of every store for good."""
    with opened_memory(tenant, project, graph) as memory:
        chosen = Chosen(fact_ids, entity, session, everything)
        receipt = care.forget(memory.runtime.app, memory.sender, memory.namespace, chosen)
    if as_json:
        print_json({**receipt.to_wire(), "namespace": memory.namespace})
        return
    rows = [(name, f"{count:,}") for name, count in receipt.counts.items()]
    shown = block([("receipt", str(receipt.receipt_id)), *rows])
    click.echo(f"Forgotten in {memory.namespace}\n{shown}")


def _show(done: dict[str, Any], line: str, as_json: bool) -> None:
    if as_json:
        print_json(done)
    else:
        click.echo(line)
