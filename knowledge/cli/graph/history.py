"""``knowledge graph history``."""

from __future__ import annotations

import click

from knowledge.cli import options
from knowledge.cli.graph import asking
from knowledge.cli.graph.history_text import history_text
from knowledge.cli.output import print_json
from knowledge.graph.questions import MAX_LIMIT, HistoryQuestion
from knowledge.graph.wire import history_to_wire
from knowledge.model.fact import Domain


@click.command("history", short_help="The timeline of an entity.")
@click.argument("entity")
@options.tenant
@options.project
@asking.as_client
@click.option("--predicate", metavar="P", help="Only this predicate.")
@asking.domains
@click.option("--limit", type=click.IntRange(1, MAX_LIMIT), default=MAX_LIMIT, show_default=True)
@asking.with_ids
@options.as_json
def history_command(
    entity: str,
    tenant: str,
    project: str,
    client: str | None,
    predicate: str | None,
    domains: tuple[str, ...],
    limit: int,
    with_ids: bool,
    as_json: bool,
) -> None:
    """Everything ever told of ENTITY: what holds, what ended, what is believed no longer and why."""
    question = HistoryQuestion(
        project_id=project,
        entity=entity,
        predicate=predicate,
        domains=tuple(Domain(domain) for domain in dict.fromkeys(domains)),
        limit=limit,
    )
    history = asking.ask(tenant, client, lambda reader, caller: reader.history(caller, question))
    if as_json:
        print_json(history_to_wire(history))
    else:
        click.echo(history_text(history, with_ids=with_ids))
