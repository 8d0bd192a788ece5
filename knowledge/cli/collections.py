"""``knowledge collections create|list|set|collect``."""

from __future__ import annotations

import uuid
from typing import Any

import click

from knowledge.cli import options
from knowledge.cli.output import plural, print_json, table
from knowledge.cli.session import opened, progress
from knowledge.cli.waiting import has_daemon, wait_until_rebuilt
from knowledge.errors import KnowledgeError
from knowledge.indexing.collecting import collect
from knowledge.indexing.rebuild_requests import request_rebuild
from knowledge.indexing.wire import rebuild_to_wire
from knowledge.model.collection import Collection, CollectionKind
from knowledge.model.revision import IndexRevision
from knowledge.storage.postgres import catalogue, rebuilds, revisions
from knowledge.storage.postgres.rebuilds import Rebuild, RebuildState

_profile = click.option(
    "--profile", metavar="NAME@V|none", help="Embedding profile; none: words alone."
)
_allow_remote = click.option(
    "--allow-remote/--no-allow-remote",
    default=None,
    help="Whether a remote model may be sent the texts.",
)


@click.group("collections")
def collections_command() -> None:
    """Create, list and change collections."""


@collections_command.command("create", short_help="Create a collection.")
@options.tenant
@options.project
@options.collection
@_profile
@_allow_remote
@options.kind
@options.as_json
def create(
    tenant: str,
    project: str,
    collection: str,
    kind: CollectionKind | None,
    profile: str | None,
    allow_remote: bool | None,
    as_json: bool,
) -> None:
    """Create a collection; tenant and project are created where they are new."""
    with opened(create=True) as runtime:
        named = (
            runtime.settings.default_profile if profile is None else options.named_profile(profile)
        )
        if named is not None:
            runtime.permitted_embedder(named, allow_remote=bool(allow_remote))
        catalogue.ensure_project(runtime.owner, tenant, project)
        made = catalogue.create_collection(
            runtime.app,
            tenant,
            project,
            collection,
            embedding_profile=named,
            allow_remote=bool(allow_remote),
            kind=kind or "documents",
        )
        if as_json:
            print_json(_wire(made, []))
        else:
            about = ", ".join([*_but_documents(made), named or "no model"])
            click.echo(f"Created collection {tenant}/{made.slug} ({about}).")


@collections_command.command("list", short_help="List collections and what they serve.")
@click.option("--tenant", metavar="T", help="Only this tenant's.")
@click.option("--project", metavar="P", help="Only this project's.")
@options.as_json
def list_(tenant: str | None, project: str | None, as_json: bool) -> None:
    """List the collections with the revisions they serve."""
    with opened() as runtime:
        found = [
            (collection, revisions.serving_revisions(runtime.app, collection))
            for collection in catalogue.list_collections(runtime.owner, tenant)
            if project is None or collection.project_id == project
        ]
    if as_json:
        print_json({"collections": [_wire(*entry) for entry in found]})
    elif found:
        click.echo(_table(found))
    else:
        click.echo("No collections yet: knowledge publish PATH --tenant T --project P …")


@collections_command.command("set", short_help="Change the profile or allow remote models.")
@options.tenant
@options.collection
@_profile
@_allow_remote
@options.waiting
@options.as_json
def set_(
    tenant: str,
    collection: str,
    profile: str | None,
    allow_remote: bool | None,
    wait: bool,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Change the profile (asks for a rebuild with it) or whether remote models are allowed."""
    if profile is None and allow_remote is None:
        raise click.UsageError("say what to set: --profile NAME@V|none or --allow-remote")
    with opened() as runtime:
        found = runtime.collection(tenant, collection)
        allowed = found.allow_remote if allow_remote is None else allow_remote
        named = found.embedding_profile if profile is None else options.named_profile(profile)
        if named is not None:  # loaded once: what is unknown, changed or forbidden is refused
            runtime.permitted_embedder(named, allow_remote=allowed)
        if allow_remote is not None:
            catalogue.set_allow_remote(runtime.app, found, allowed)
        asked = None
        if named != found.embedding_profile:
            asked = request_rebuild(
                runtime.app, found, profile=named, reason="profile", requested_by="operator"
            )
        failure = None
        changed = runtime.collection(tenant, collection)
        if wait and asked is not None:
            failure = wait_until_rebuilt(
                runtime, changed, asked, timeout_s=timeout_s, progress=progress()
            )
            asked = rebuilds.find(runtime.app, tenant, asked.rebuild_id)
            changed = runtime.collection(tenant, collection)
        if as_json:
            served = revisions.serving_revisions(runtime.app, changed)
            rebuild = asked and rebuild_to_wire(asked, changed)
            print_json({**_wire(changed, served), "rebuild": rebuild})
        else:
            click.echo(_changed(changed, asked, has_daemon(runtime.home)))
    if wait and asked is not None and asked.state is not RebuildState.SWITCHED:
        raise KnowledgeError(asked.error or failure or f"the rebuild is {asked.state}")


@collections_command.command("collect", short_help="Remove revisions that are kept no longer.")
@options.tenant
@options.collection
@options.as_json
def collect_(tenant: str, collection: str, as_json: bool) -> None:
    """Garbage collection now, instead of at the hour: revisions beyond the last five and older
    than seven days (``[indexing] keep_revisions``, ``keep_days``) and what only they could see."""
    with opened() as runtime:
        found = runtime.collection(tenant, collection)
        done = collect(runtime, found, owner=f"collect-{uuid.uuid4()}")
    if as_json:
        print_json(
            {
                "oldestRevisionKept": done.floor,
                "revisionsCollected": done.revisions,
                "generationsDropped": done.generations,
                "chunkVersionsDeleted": done.chunk_versions,
                "indexItems": done.dead_rows.items,
                "deadRows": done.dead_rows.dead,
                "rebuild": done.rebuild and rebuild_to_wire(done.rebuild, found),
            }
        )
        return
    click.echo(
        f"Collection {found.partition.replace('.', '/')}: removed"
        f" {plural(done.revisions, 'index revision')}, {plural(done.generations, 'generation')}"
        f" and {plural(done.chunk_versions, 'chunk version')}; revision {done.floor} is the oldest"
        f" that can be pinned."
    )
    if done.rebuild is not None:
        click.echo(
            f"{done.dead_rows.dead:,} of {done.dead_rows.items:,} items of the index are history:"
            f" rebuild {done.rebuild.rebuild_id} is asked for."
        )


def _changed(collection: Collection, asked: Rebuild | None, daemon: bool) -> str:
    profile = collection.embedding_profile or "no model"
    remote = "allowed" if collection.allow_remote else "not allowed"
    line = f"Collection {collection.partition.replace('.', '/')}: {profile}, remote {remote}."
    if asked is None:
        return f"{line} Nothing to rebuild."
    if asked.state is RebuildState.SWITCHED:
        return f"{line} Serving as revision {asked.revision}."
    if asked.state.is_active:
        when = "now" if daemon else "when the stack runs (`knowledge up`), or now with --wait"
        return f"{line} It is rebuilt {when}; until then the old index serves."
    return f"{line} The rebuild is {asked.state}: the old index serves."


def _but_documents(collection: Collection) -> list[str]:
    """The kind where it is worth saying."""
    return [] if collection.kind == "documents" else [collection.kind]


def _table(found: list[tuple[Collection, list[IndexRevision]]]) -> str:
    rows = [
        (
            collection.tenant_id,
            collection.slug,
            collection.project_id,
            collection.kind,
            collection.embedding_profile or "none",
            str(collection.head_rev),
            _serving(served, collection.head_rev),
        )
        for collection, served in found
    ]
    return table(("TENANT", "COLLECTION", "PROJECT", "KIND", "PROFILE", "HEAD", "SERVES"), rows)


def _serving(served: list[IndexRevision], head: int) -> str:
    """``3 (full_text, metadata, vector), 1,200 chunks``, one part a revision."""
    if not served:
        return "nothing yet"
    by_number: dict[int, list[str]] = {}
    for revision in served:
        by_number.setdefault(revision.revision, []).append(revision.kind.value)
    parts = [f"{number} ({', '.join(kinds)})" for number, kinds in sorted(by_number.items())]
    items = max(revision.item_count for revision in served)
    behind = "" if min(by_number) == head else ", behind"
    return f"{'; '.join(parts)}, {plural(items, 'chunk')}{behind}"


def _wire(collection: Collection, served: list[IndexRevision]) -> dict[str, Any]:
    return {
        "collectionId": str(collection.collection_id),
        "tenantId": collection.tenant_id,
        "collection": collection.slug,
        "projectId": collection.project_id,
        "kind": collection.kind,
        "embeddingProfile": collection.embedding_profile,
        "allowRemote": collection.allow_remote,
        "headRevision": collection.head_rev,
        "indexes": [
            {
                "indexRevisionId": str(revision.index_revision_id),
                "kind": revision.kind.value,
                "revision": revision.revision,
                "state": revision.state.value,
                "itemCount": revision.item_count,
                "embeddingProfileVersion": revision.embedding_profile_version,
            }
            for revision in served
        ],
    }
