"""``knowledge sources list|acl|delete``."""

from __future__ import annotations

from typing import Any

import click

from knowledge.cli import options
from knowledge.cli.output import acl_words, print_json, short_version, table
from knowledge.cli.session import opened, progress
from knowledge.cli.waiting import has_daemon, wait_until_served
from knowledge.errors import NotFound
from knowledge.model.collection import Collection, Source
from knowledge.publishing.announcing import delete_source
from knowledge.runtime import Runtime
from knowledge.storage.postgres import catalogue, clock


@click.group("sources")
def sources_command() -> None:
    """List sources, say who reads them, delete them."""


@sources_command.command("list", short_help="List the sources of a collection.")
@options.tenant
@options.collection
@options.as_json
def list_(tenant: str, collection: str, as_json: bool) -> None:
    """List the sources of a collection: version, who reads them, where they came from."""
    with opened() as runtime:
        found = runtime.collection(tenant, collection)
        sources = catalogue.list_sources(runtime.app, found)
        with runtime.app.tenant(tenant) as connection:
            versions = clock.current_source_versions(connection, found)
    if as_json:
        entries = [_wire(found, source, versions.get(source.source_id)) for source in sources]
        print_json({"sources": entries})
    elif sources:
        click.echo(_table(sources, versions))
    else:
        click.echo(f"Collection {collection} has no source yet.")


@sources_command.command("acl", short_help="Set who may read a source.")
@click.argument("source")
@options.tenant
@options.collection
@options.acl
@options.as_json
def acl_command(
    source: str, tenant: str, collection: str, acl: options.ReadBy, as_json: bool
) -> None:
    """Set who may read SOURCE. Acts on the next request, for pinned queries too."""
    with opened() as runtime:
        found = runtime.collection(tenant, collection)
        catalogue.set_source_acl(runtime.app, found, source, acl.entries)
        changed = _require_source(runtime, found, source)
    if as_json:
        print_json(_wire(found, changed, None))
    else:
        click.echo(
            f"Source {source} is read by {acl_words(acl.entries)}, from the next request on."
        )


@sources_command.command("delete", short_help="Hide a source from every query.")
@click.argument("source")
@options.tenant
@options.collection
@options.waiting
@options.as_json
def delete(
    source: str, tenant: str, collection: str, wait: bool, timeout_s: float, as_json: bool
) -> None:
    """Hide SOURCE from every query at once; `publish --revive` brings it back."""
    with opened() as runtime:
        found = runtime.collection(tenant, collection)
        sequence = delete_source(runtime.app, found, source)
        outcome = None
        if wait:
            outcome = wait_until_served(
                runtime, found, sequence, timeout_s=timeout_s, progress=progress()
            )
        if as_json:
            deleted = _require_source(runtime, found, source)
            print_json({**_wire(found, deleted, None), "sequence": sequence})
        else:
            done = outcome is not None and outcome.is_served
            click.echo(_deleted(source, done, has_daemon(runtime.home)))
    if outcome is not None:
        outcome.require_served()


def _require_source(runtime: Runtime, collection: Collection, source_id: str) -> Source:
    source = catalogue.find_source(runtime.app, collection, source_id)
    if source is None:
        raise NotFound(f"collection {collection.slug} has no source {source_id}")
    return source


def _deleted(source: str, is_done: bool, daemon: bool) -> str:
    hidden = f"Source {source} is hidden from every query."
    if is_done:
        return f"{hidden} Its chunks are closed with the revision that serves now."
    when = "the running stack now" if daemon else "the next run"
    return f"{hidden} Its chunks are closed by {when}."


def _table(sources: list[Source], versions: dict[str, str]) -> str:
    rows = [
        (
            source.source_id,
            source.project_id,
            short_version(versions.get(source.source_id)),
            acl_words(source.acl),
            source.trust_tier.value,
            "deleted" if source.deleted_at else "active",
            source.origin or "-",
        )
        for source in sources
    ]
    return table(("SOURCE", "PROJECT", "VERSION", "READ BY", "TIER", "STATE", "ORIGIN"), rows)


def _wire(collection: Collection, source: Source, version: str | None) -> dict[str, Any]:
    return {
        "tenantId": collection.tenant_id,
        "collection": collection.slug,
        "sourceId": source.source_id,
        "projectId": source.project_id,
        "sourceVersion": version,
        "acl": None if source.acl is None else list(source.acl),
        "trustTier": source.trust_tier.value,
        "origin": source.origin,
        "deletedAt": source.deleted_at.isoformat() if source.deleted_at else None,
    }
