"""``knowledge graph query``."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import click

from knowledge.cli import options
from knowledge.cli.graph import asking
from knowledge.cli.graph.text import facts_text, more_line, scope_line
from knowledge.cli.output import plural, print_json
from knowledge.graph.ontology.model import Ontology
from knowledge.graph.querying import FactAnswer, FactReader
from knowledge.graph.questions import EVER, MAX_LIMIT, FactQuestion, Sieve
from knowledge.graph.wire import answer_to_wire
from knowledge.model.scope import Caller


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
    answer, hint = asking.ask(
        tenant, client, lambda reader, caller: _asked(reader, caller, question)
    )
    if as_json:
        print_json(answer_to_wire(answer))
    else:
        click.echo(_text(answer, hint, with_ids=with_ids))


async def _asked(
    reader: FactReader, caller: Caller, question: FactQuestion
) -> tuple[FactAnswer, str | None]:
    """The answer; where it is empty, what may be wrong with the question."""
    answer = await reader.query(caller, question)
    if answer.facts or question.predicate is None:
        return answer, None
    ontology = (await reader.plan(caller, question.project_id)).ontology
    if ontology.find(question.predicate) is not None:
        return answer, None
    ever = Sieve(between=EVER, suggestions=True)
    known = FactQuestion(question.project_id, predicate=question.predicate, sieve=ever, limit=1)
    if (await reader.query(caller, known)).facts:
        return answer, None
    return answer, _unknown(question.predicate, ontology)


def _unknown(predicate: str, ontology: Ontology) -> str:
    close = get_close_matches(predicate, ontology.predicates, n=1)
    meant = f" Did you mean {close[0]}?" if close else ""
    return f"Ontology {ontology.identity} has no predicate {predicate}, nor has any fact.{meant}"


def _text(answer: FactAnswer, hint: str | None, *, with_ids: bool) -> str:
    parts = [scope_line(answer.scope, plural(len(answer.facts), "fact"), answer.as_of)]
    if answer.facts:
        parts.append(facts_text(answer.facts, with_ids=with_ids))
        if answer.are_contradictions_cut:
            parts.append("There are more contradictions than are listed: narrow the question.")
    else:
        parts.append("No fact found in what this client may read.")
    if hint is not None:
        parts.append(hint)
    if answer.next_cursor is not None:
        parts.append(more_line(answer.next_cursor))
    return "\n\n".join(parts)
