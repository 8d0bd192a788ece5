"""``knowledge rebuild``: a new index beside the serving one, on request."""

from __future__ import annotations

import click

from knowledge.cli import options
from knowledge.cli.output import block, plural, print_json
from knowledge.cli.session import opened, progress
from knowledge.cli.waiting import has_daemon, wait_until_rebuilt
from knowledge.errors import KnowledgeError, NotFound
from knowledge.indexing.rebuild_requests import cancel_rebuild, request_rebuild
from knowledge.indexing.rebuilding import clear_ended
from knowledge.indexing.wire import rebuild_to_wire
from knowledge.model.collection import Collection
from knowledge.runtime import Runtime
from knowledge.storage.postgres import rebuilds
from knowledge.storage.postgres.rebuilds import Rebuild, RebuildState


@click.command("rebuild", short_help="Build a collection's index anew while the old one serves.")
@options.tenant
@options.collection
@click.option(
    "--profile", metavar="NAME@V|none", help="Embedding profile; default: the pinned one."
)
@click.option("--cancel", is_flag=True, help="End the rebuild that is at work.")
@click.option("--status", "show", is_flag=True, help="Show the last rebuild; start none.")
@options.waiting
@options.as_json
def rebuild_command(
    tenant: str,
    collection: str,
    profile: str | None,
    cancel: bool,
    show: bool,
    wait: bool,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Build the vector and full-text index anew, with the pinned profile or another one.

    The old index serves, and publishes go on, until the new one has caught up; then queries
    switch. A rebuild that fails or is cancelled changes nothing.
    """
    if cancel + show + (profile is not None) > 1:
        raise click.UsageError("give one of --profile, --cancel and --status")
    with opened() as runtime:
        found = runtime.collection(tenant, collection)
        if show or cancel:
            asked = _last(runtime, found)
            if cancel:
                _cancel(runtime, found, asked)
        else:
            asked = _request(runtime, found, profile)
        failure = None
        if wait and asked.state.is_active:
            failure = wait_until_rebuilt(
                runtime, found, asked, timeout_s=timeout_s, progress=progress()
            )
        asked = rebuilds.find(runtime.app, tenant, asked.rebuild_id)
        daemon = has_daemon(runtime.home)
    if as_json:
        print_json(rebuild_to_wire(asked, found))
    else:
        click.echo(_text(asked, found, daemon=daemon))
    if wait and asked.state is not RebuildState.SWITCHED:
        raise KnowledgeError(asked.error or failure or f"the rebuild is {asked.state}")


def _request(runtime: Runtime, collection: Collection, profile: str | None) -> Rebuild:
    named = collection.embedding_profile
    if profile is not None:
        named = options.named_profile(profile)
    if named is not None:  # loaded once: what is unknown, changed or forbidden is refused
        runtime.permitted_embedder(named, allow_remote=collection.allow_remote)
    asked = request_rebuild(
        runtime.app, collection, profile=named, reason="requested", requested_by="operator"
    )
    if asked is None:
        raise KnowledgeError(
            f"collection {collection.slug} has no index yet: its first publish builds one with"
            f" {named or 'no model'}"
        )
    return asked


def _cancel(runtime: Runtime, collection: Collection, asked: Rebuild) -> None:
    if not cancel_rebuild(runtime.app, collection, asked):
        raise KnowledgeError(f"rebuild {asked.rebuild_id} has ended already")
    clear_ended(runtime, collection, asked.rebuild_id)


def _last(runtime: Runtime, collection: Collection) -> Rebuild:
    found = rebuilds.latest(runtime.app, collection)
    if found is None:
        raise NotFound(f"collection {collection.slug} was never rebuilt")
    return found


def _text(rebuild: Rebuild, collection: Collection, *, daemon: bool) -> str:
    rows = [
        ("rebuild", str(rebuild.rebuild_id)),
        ("collection", collection.partition.replace(".", "/")),
        ("profile", rebuild.embedding_profile or "no model"),
        ("state", _state(rebuild, daemon=daemon)),
    ]
    if rebuild.items_written:
        rows.append(("written", plural(rebuild.items_written, "item")))
    if rebuild.error:
        rows.append(("error", rebuild.error))
    return block(rows)


def _state(rebuild: Rebuild, *, daemon: bool) -> str:
    if rebuild.state is RebuildState.SWITCHED:
        return f"serving as revision {rebuild.revision}"
    if rebuild.state is RebuildState.REQUESTED:
        when = "soon" if daemon else "when the stack runs (`knowledge up`), or now with --wait"
        return f"requested; it starts {when}, and the old index serves until then"
    if rebuild.state is RebuildState.BUILDING:
        return "building; the old index serves"
    return f"{rebuild.state}; the index that served goes on serving"
