"""``knowledge graph merge`` and ``merges list|undo``: names that stand for one entity."""

from __future__ import annotations

import uuid
from typing import Any

import click

from knowledge.cli import options
from knowledge.cli.graph.text import instant, name
from knowledge.cli.output import one_line, print_json, table
from knowledge.cli.session import opened
from knowledge.model.fact import (
    DEFAULT_NAMESPACE,
    EntityName,
    name_key,
    require_name,
    require_namespace,
    require_type,
)
from knowledge.model.identity import require_slug
from knowledge.retrieval.wire import time_to_wire
from knowledge.storage.postgres.database import Row
from knowledge.storage.postgres.facts import entities
from knowledge.storage.postgres.facts.places import is_mentioned
from knowledge.storage.postgres.facts.sources import require_tenant

OPERATOR = "operator"


@click.command("merge", short_help="Say that two names are one entity.")
@click.argument("alias", metavar="NAME")
@click.argument("into")
@options.tenant
@click.option("--namespace", default=DEFAULT_NAMESPACE, show_default=True, metavar="N")
@click.option("--type", "type_", metavar="T", help="Only NAME of this type.")
@click.option("--into-type", metavar="T", help="The type of INTO.")
@click.option("--reason", default="", metavar="R", help="Why, for who reads the list later.")
@options.as_json
def merge_command(
    alias: str,
    into: str,
    tenant: str,
    namespace: str,
    type_: str | None,
    into_type: str | None,
    reason: str,
    as_json: bool,
) -> None:
    """Say that NAME stands for the entity INTO. Facts stay as they were told."""
    named, target = require_name(alias, "NAME"), require_name(into, "INTO")
    with opened() as runtime:
        require_tenant(runtime.app, require_slug(tenant, "tenant"))
        merge_id = entities.merge(
            runtime.app,
            tenant,
            namespace=require_namespace(namespace),
            name=named,
            into=target,
            type_=type_ and require_type(type_, "--type"),
            into_type=into_type and require_type(into_type, "--into-type"),
            reason=reason and require_name(reason, "--reason"),
            by=OPERATOR,
        )
        unknown = [
            end
            for end, end_type in ((named, type_), (target, into_type))
            if not is_mentioned(runtime.app, tenant, EntityName(name_key(end), namespace, end_type))
        ]
    if as_json:
        print_json({"mergeId": str(merge_id)})
    else:
        click.echo(
            f"{name(named)} stands for {name(target)} in {namespace}, from the next request on"
            f" (undo: knowledge graph merges undo {merge_id} --tenant {tenant})."
        )
        for end in unknown:
            click.echo(
                f"No fact in {namespace} names {name(end)} yet: look whether it is spelt so."
            )


@click.group("merges")
def merges_command() -> None:
    """List merged names, take a merge back."""


@merges_command.command("list", short_help="Every merge, undone ones too.")
@options.tenant
@options.as_json
def list_(tenant: str, as_json: bool) -> None:
    """Every merge of the tenant, oldest first, undone ones too."""
    with opened() as runtime:
        merges = entities.list_merges(runtime.app, require_slug(tenant, "tenant"))
    if as_json:
        print_json({"merges": [_wire(merge) for merge in merges]})
    elif merges:
        header = ("MERGE", "NAMESPACE", "NAME", "STANDS FOR", "SINCE", "BY", "STATE", "REASON")
        click.echo(table(header, map(_row, merges)))
    else:
        click.echo(f"No names were merged in tenant {tenant}.")


@merges_command.command("undo", short_help="Take a merge back.")
@click.argument("merge_id", type=click.UUID, metavar="ID")
@options.tenant
@options.as_json
def undo(merge_id: uuid.UUID, tenant: str, as_json: bool) -> None:
    """Take the merge ID back: both names stand for themselves again."""
    with opened() as runtime:
        entities.undo_merge(runtime.app, require_slug(tenant, "tenant"), merge_id, by=OPERATOR)
    if as_json:
        print_json({"mergeId": str(merge_id), "undone": True})
    else:
        click.echo(f"Merge {merge_id} is undone, from the next request on.")


def _row(merge: Row) -> tuple[str, ...]:
    undone = merge["undone_at"]
    return (
        str(merge["merge_id"]),
        merge["namespace"],
        _typed(merge["name"], merge["type"]),
        _typed(merge["into_name"], merge["into_type"]),
        instant(merge["merged_at"]),
        one_line(merge["merged_by"], 40),
        f"undone {instant(undone)} by {one_line(merge['undone_by'], 40)}" if undone else "in force",
        one_line(merge["reason"], 100) or "-",
    )


def _typed(text: str, type_: str | None) -> str:
    return f"{name(text)} ({type_})" if type_ else name(text)


def _wire(merge: Row) -> dict[str, Any]:
    return {
        "mergeId": str(merge["merge_id"]),
        "namespace": merge["namespace"],
        "name": merge["name"],
        "type": merge["type"],
        "into": merge["into_name"],
        "intoType": merge["into_type"],
        "reason": merge["reason"],
        "mergedBy": merge["merged_by"],
        "mergedAt": time_to_wire(merge["merged_at"]),
        "undoneBy": merge["undone_by"],
        "undoneAt": merge["undone_at"] and time_to_wire(merge["undone_at"]),
    }
