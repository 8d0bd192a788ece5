"""``knowledge graph query``."""

from __future__ import annotations

from typing import Any

import click

from knowledge.cli import options
from knowledge.cli.graph import asking
from knowledge.cli.graph.text import facts_text, more_line, scope_line
from knowledge.cli.output import plural, print_json
from knowledge.graph.querying import FactAnswer
from knowledge.graph.questions import MAX_LIMIT, FactQuestion
from knowledge.graph.wire import answer_to_wire


@click.command("query", short_help="Facts by subject, predicate, object and time.")
@options.tenant
@options.project
@asking.as_client
@click.option("--subject", metavar="S", help="Entity that the fact is about.")
@click.option("--predicate", metavar="P", help="What is said of it, such as DEPENDS_ON.")
@click.option("--object", "object_", metavar="O", help="Entity at the other end.")
@click.option("--subject-type", metavar="T", help="Type of the subject, such as service.")
@click.option("--object-type", metavar="T", help="Type of the object.")
@asking.sieve_options
@click.option("--limit", type=click.IntRange(1, MAX_LIMIT), default=100, show_default=True)
@asking.cursor
@asking.with_ids
@options.as_json
def query_command(
    tenant: str,
    project: str,
    client: str | None,
    subject: str | None,
    predicate: str | None,
    object_: str | None,
    subject_type: str | None,
    object_type: str | None,
    limit: int,
    cursor: str | None,
    with_ids: bool,
    as_json: bool,
    **sieve: Any,
) -> None:
    """Facts that hold at a time, newest first, as a client may read them."""
    question = FactQuestion(
        project_id=project,
        subject=subject,
        predicate=predicate,
        object=object_,
        subject_type=subject_type,
        object_type=object_type,
        sieve=asking.read_sieve(**sieve),
        limit=limit,
        cursor=cursor,
    )
    answer = asking.ask(tenant, client, lambda reader, caller: reader.query(caller, question))
    if as_json:
        print_json(answer_to_wire(answer))
    else:
        click.echo(_text(answer, with_ids=with_ids))


def _text(answer: FactAnswer, *, with_ids: bool) -> str:
    parts = [scope_line(answer.scope, plural(len(answer.facts), "fact"), answer.as_of)]
    if answer.facts:
        parts.append(facts_text(answer.facts, with_ids=with_ids))
    else:
        parts.append("No fact found in what this client may read.")
    if answer.next_cursor is not None:
        parts.append(more_line(answer.next_cursor))
    return "\n\n".join(parts)
