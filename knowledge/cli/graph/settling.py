"""``knowledge graph infer``, ``suggestions list|confirm|reject`` and ``retract``."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Final

import click

from knowledge.cli import options
from knowledge.cli.graph import asking
from knowledge.cli.graph.text import facts_text, more_line, scope_line
from knowledge.cli.output import plural, print_json
from knowledge.cli.session import opened
from knowledge.graph import suggestions
from knowledge.graph.asserting import Batch, Retraction, assert_facts
from knowledge.graph.ontologies import tenant_ontology
from knowledge.graph.questions import EVER, MAX_LIMIT, FactQuestion, Sieve
from knowledge.graph.session import Writer
from knowledge.graph.wire import answer_to_wire, written_to_wire
from knowledge.model.identity import require_slug
from knowledge.storage.postgres.database import Database
from knowledge.storage.postgres.facts.sources import require_project

OPERATOR: Final = Writer("operator")
Settle = Callable[[Database, str, str, uuid.UUID, Writer], None]


@click.command("infer", short_help="Apply the ontology's rules to every fact.")
@options.tenant
@options.project
@options.as_json
def infer_command(tenant: str, project: str, as_json: bool) -> None:
    """Apply the rules in force to every fact of the project: after a new ontology, or where an
    assert said that more could be inferred."""
    with opened() as runtime:
        require_project(runtime.app, require_slug(tenant, "tenant"), project)
        done = suggestions.infer_anew(runtime.app, tenant, project)
    if as_json:
        print_json({"lookedAt": done.looked_at, "suggested": done.suggested})
        return
    click.echo(
        f"Looked at {plural(done.looked_at, 'fact')} that a rule applies to:"
        f" {plural(done.suggested, 'new suggestion')}."
    )
    if done.suggested:
        click.echo(
            f"See them: knowledge graph suggestions list --tenant {tenant} --project {project}"
            " --as CLIENT"
        )


@click.group("suggestions", short_help="List, confirm and reject inferred facts.")
def suggestions_command() -> None:
    """List inferred facts that nobody confirmed, confirm or reject them."""


@suggestions_command.command("list", short_help="Inferred facts that wait for somebody.")
@options.tenant
@options.project
@asking.as_client
@click.option("--subject", metavar="S", help="Only of this entity.")
@click.option("--predicate", metavar="P", help="Only this predicate.")
@click.option("--limit", type=click.IntRange(1, MAX_LIMIT), default=100, show_default=True)
@asking.cursor
@options.as_json
def list_(
    tenant: str,
    project: str,
    client: str | None,
    subject: str | None,
    predicate: str | None,
    limit: int,
    cursor: str | None,
    as_json: bool,
) -> None:
    """Inferred facts that nobody confirmed or rejected, as a client may read them."""
    question = FactQuestion(
        project_id=project,
        subject=subject,
        predicate=predicate,
        sieve=Sieve(between=EVER),
        suggestions_only=True,
        limit=limit,
        cursor=cursor,
    )
    found = asking.ask(tenant, client, lambda reader, caller: reader.query(caller, question))
    if as_json:
        print_json(answer_to_wire(found))
        return
    click.echo(scope_line(found.scope, plural(len(found.facts), "suggestion"), None))
    if found.facts:
        click.echo(f"\n{facts_text(found.facts, with_ids=True)}")
    if found.next_cursor is not None:
        click.echo(f"\n{more_line(found.next_cursor)}")


def _settling(verb: str, settle: Settle, done: str, help_: str) -> click.Command:
    @suggestions_command.command(verb, help=help_)
    @click.argument("suggestion", type=click.UUID, metavar="ID")
    @options.tenant
    @options.project
    @options.as_json
    def command(suggestion: uuid.UUID, tenant: str, project: str, as_json: bool) -> None:
        with opened() as runtime:
            require_slug(tenant, "tenant")
            settle(runtime.app, tenant, project, suggestion, OPERATOR)
        if as_json:
            print_json({"factId": str(suggestion), "suggestion": f"{verb}ed"})
        else:
            click.echo(f"Suggestion {suggestion} {done}")

    return command


_settling(
    "confirm",
    suggestions.confirm,
    "is confirmed: it is served like any fact, and stays labelled as inferred.",
    "Serve suggestion ID like any fact.",
)
_settling(
    "reject",
    suggestions.reject,
    "is rejected: it is never suggested again, and what rested on it is withdrawn.",
    "Never suggest ID again.",
)


@click.command("retract", short_help="Believe a fact no longer.")
@click.argument("fact", type=click.UUID, metavar="FACT_ID")
@options.tenant
@options.project
@options.as_json
def retract_command(fact: uuid.UUID, tenant: str, project: str, as_json: bool) -> None:
    """Believe FACT_ID no longer. It stays in the history; what rested on it is withdrawn."""
    with opened() as runtime:
        require_slug(tenant, "tenant")
        written = assert_facts(
            runtime.app,
            tenant,
            project,
            Batch(retractions=[Retraction(fact)]),
            writer=OPERATOR,
            ontology=tenant_ontology(runtime.app, tenant),
        )
    if as_json:
        print_json(written_to_wire(written))
    elif any(closed == fact for closed, _ in written.closed):
        resting = len(written.closed) - 1
        withdrawn = ""
        if resting:
            withdrawn = f" {plural(resting, 'fact')} that rested on it is withdrawn."
        click.echo(f"Fact {fact} is retracted, and stays in the history.{withdrawn}")
    else:
        click.echo(f"Fact {fact} was believed no longer already.")
