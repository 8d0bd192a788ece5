"""``knowledge graph sources list|acl``: who may read what a source says as facts."""

from __future__ import annotations

from typing import Any

import click

from knowledge.cli import options
from knowledge.cli.graph.text import instant
from knowledge.cli.output import acl_words, one_line, print_json, table
from knowledge.cli.session import opened
from knowledge.model.identity import require_slug
from knowledge.retrieval.wire import time_to_wire
from knowledge.storage.postgres.facts import sources
from knowledge.storage.postgres.facts.sources import FactSource


@click.group("sources")
def sources_command() -> None:
    """List the sources of facts, say who reads them."""


@sources_command.command("list", short_help="Every source that said a fact.")
@options.tenant
@options.project
@options.as_json
def list_(tenant: str, project: str, as_json: bool) -> None:
    """Every source that said a fact of the project, and who may read it."""
    with opened() as runtime:
        found = sources.list_sources(runtime.app, require_slug(tenant, "tenant"), project)
    if as_json:
        print_json({"sources": [_wire(source) for source in found]})
    elif found:
        header = ("SOURCE", "READ BY", "SINCE", "STATE", "DOCUMENTS IN")
        click.echo(table(header, map(_row, found)))
    else:
        click.echo(f"No source said a fact in {tenant}/{project} yet.")


@sources_command.command("acl", short_help="Set who may read a source's facts.")
@click.argument("source")
@options.tenant
@options.project
@options.acl
@options.as_json
def acl_command(source: str, tenant: str, project: str, acl: options.ReadBy, as_json: bool) -> None:
    """Set who may read the facts of SOURCE. Acts on the next request.

    What it published as documents has an ACL of its own (`knowledge sources acl`): who may not
    read those does not read its facts either.
    """
    with opened() as runtime:
        changed = sources.set_acl(
            runtime.app, require_slug(tenant, "tenant"), project, source, acl.entries
        )
    if as_json:
        print_json(_wire(changed))
    else:
        who = acl_words(acl.entries)
        click.echo(f"Facts of source {source} are read by {who}, from the next request on.")


def _row(source: FactSource) -> tuple[str, ...]:
    return (
        one_line(source.source_id, 80),
        acl_words(source.acl),
        instant(source.created_at),
        "deleted" if source.deleted_at else "active",
        ", ".join(source.collections) or "-",
    )


def _wire(source: FactSource) -> dict[str, Any]:
    return {
        "sourceId": source.source_id,
        "acl": None if source.acl is None else list(source.acl),
        "createdAt": time_to_wire(source.created_at),
        "deletedAt": source.deleted_at and time_to_wire(source.deleted_at),
        "collections": list(source.collections),
    }
