"""``knowledge publish``."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from knowledge.cli import options
from knowledge.cli.output import block, plural, print_json
from knowledge.cli.session import opened, progress
from knowledge.cli.waiting import Outcome, has_daemon, wait_until_served
from knowledge.errors import Conflict, InvalidInput, ModelUnavailable, NotFound
from knowledge.model.collection import Collection, CollectionKind
from knowledge.model.identity import require_slug
from knowledge.publishing.publish import Published, PublishRequest, publish
from knowledge.runtime import Runtime
from knowledge.storage.postgres import catalogue
from knowledge.storage.postgres.publishing import Acl
from knowledge.storage.snapshots import Mode

PENDING = Outcome("pending")


@dataclass(slots=True)
class _Target:
    """The collection to publish into; created, when new, only once the snapshot is good."""

    runtime: Runtime
    tenant_id: str
    project_id: str
    name: str
    profile: str | None
    kind: CollectionKind | None = None
    is_new: bool = False
    notices: list[str] = field(default_factory=list)

    def find(self) -> Collection:
        """The collection, or for a new one a draft that nothing is stored of."""
        require_slug(self.project_id, "project")
        try:
            return self._known()
        except NotFound:
            self.is_new = True
        slug = require_slug(self.name, "collection")
        kind = self.kind or "documents"
        return Collection(uuid.uuid4(), self.tenant_id, slug, self.project_id, None, False, 0, kind)

    def _known(self) -> Collection:
        found = self.runtime.collection(self.tenant_id, self.name)
        if self.kind not in (None, found.kind):
            raise Conflict(
                f"collection {self.tenant_id}/{found.slug} is of kind {found.kind}, which stays:"
                f" publish a {self.kind} into another collection"
            )
        return found

    def establish(self) -> Collection:
        catalogue.ensure_project(self.runtime.owner, self.tenant_id, self.project_id)
        if not self.is_new:
            return self._known()
        try:
            return catalogue.create_collection(
                self.runtime.app,
                self.tenant_id,
                self.project_id,
                self.name,
                embedding_profile=self._usable_profile(),
                kind=self.kind or "documents",
            )
        except Conflict:  # somebody else created it meanwhile
            return self._known()

    def _usable_profile(self) -> str | None:
        profile = self.profile or self.runtime.settings.default_profile
        try:
            self.runtime.permitted_embedder(profile, allow_remote=False)
        except ModelUnavailable as error:
            if self.profile:
                raise
            self.notices.append(
                f"no model: the collection is searched by words alone ({error.message});"
                " later: knowledge collections set --profile"
            )
            return None
        return profile


@click.command("publish")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH…")
@options.tenant
@options.project
@options.collection
@click.option("--source", metavar="NAME", help="Name of the source (the folder's or file's).")
@click.option(
    "--acl",
    type=options.AclType(),
    metavar="ACL",
    help="group:x,user:y | everyone | nobody. Absent: what the source has; new: everyone.",
)
@click.option(
    "--as", "published_as", type=click.Choice(["documents", "code"]), help="How to publish it."
)
@click.option(
    "--mode",
    type=click.Choice(["full", "delta"]),
    default="full",
    show_default=True,
    help="full replaces the source, delta sends only what changed.",
)
@click.option(
    "--delete", "deleted", multiple=True, metavar="PATH", help="A path or id that a delta removes."
)
@click.option(
    "--root",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Cited paths are relative to it (the folder published).",
)
@click.option("--chunk", is_flag=True, help="Cut the documents of a .jsonl into chunks.")
@click.option("--revive", is_flag=True, help="Publish a deleted source again.")
@click.option("--profile", metavar="NAME@V", help="Embedding profile of a new collection.")
@options.kind
@options.waiting
@options.as_json
def publish_command(
    paths: tuple[Path, ...],
    tenant: str,
    project: str,
    collection: str,
    source: str | None,
    acl: options.ReadBy | None,
    published_as: str | None,
    mode: Mode,
    deleted: tuple[str, ...],
    root: Path | None,
    chunk: bool,
    revive: bool,
    profile: str | None,
    kind: CollectionKind | None,
    wait: bool,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Publish folders, files, git working trees or a .jsonl of documents as a snapshot.

    Tenant, project and collection are created where they are new.
    """
    _require_possible(published_as, mode, deleted)
    request = PublishRequest(
        paths=paths,
        project_id=project,
        source_id=source,
        mode=mode,
        acl=Acl.UNCHANGED if acl is None else acl.entries,
        root=root,
        rechunk=chunk,
        deleted=deleted,
        revive=revive,
    )
    with opened(create=True) as runtime:
        if profile is not None:
            runtime.profiles.definition(profile)
        target = _Target(runtime, tenant, project, collection, profile, kind)
        wanted = target.find()
        if published_as and wanted.kind == "conversation":
            raise InvalidInput("a conversation is published as turns: leave --as out")
        published = publish(runtime, wanted, request, establish=target.establish)
        found = runtime.collection(tenant, collection)
        if profile is not None and found.embedding_profile != profile:
            target.notices.append(
                f"--profile is for a new collection; this one has {found.embedding_profile}:"
                " knowledge collections set --profile"
            )
        if not as_json:
            click.echo(_summary(found, published, target, published_as))
        outcome = PENDING
        if wait:
            outcome = wait_until_served(
                runtime, found, published.sequence, timeout_s=timeout_s, progress=progress()
            )
        if as_json:
            print_json(_wire(found, published, target, outcome))
        elif outcome.is_served:
            click.echo(f"Serving as revision {outcome.revision} after {outcome.seconds:.1f} s.")
        elif not wait:
            click.echo(_what_next(has_daemon(runtime.home)))
        if wait:
            outcome.require_served()


def _require_possible(published_as: str | None, mode: Mode, deleted: tuple[str, ...]) -> None:
    if published_as == "code":
        raise click.UsageError(
            "--as code is not yet possible, there is no code graph: use --as documents"
        )
    if deleted and mode == "full":
        raise click.UsageError("--delete needs --mode delta: a full publish replaces everything")


def _summary(
    collection: Collection, published: Published, target: _Target, published_as: str | None
) -> str:
    is_talk = collection.kind == "conversation"
    unit = "turn" if is_talk else "document"
    chosen = "" if published_as or is_talk else " (chosen here: no --as was given)"
    made = "new collection, " if target.is_new else ""
    model = collection.embedding_profile or "no model"
    lines = block(
        [
            ("collection", f"{collection.tenant_id}/{collection.slug} ({made}{model})"),
            ("source", published.source_id),
            ("version", published.source_version),
            (
                "sent",
                f"{plural(published.documents, unit)}, {plural(published.chunks, 'chunk')}",
            ),
            ("unchanged", plural(published.unchanged, unit) if published.unchanged else ""),
            ("deleted", plural(published.deleted, unit) if published.deleted else ""),
            ("skipped", published.skipped_note),
            ("snapshot", f"{published.snapshot_id} ({published.mode})"),
        ]
    )
    return "\n".join(
        [f"Published as {_published_as(collection)}{chosen}", lines, *map(_notice, target.notices)]
    )


def _published_as(collection: Collection) -> str:
    return "turns" if collection.kind == "conversation" else "documents"


def _notice(text: str) -> str:
    return f"  note: {text}"


def _what_next(daemon: bool) -> str:
    if daemon:
        return "Announced: the running stack indexes it now (--wait returns when it serves)."
    return "Announced: it will be indexed when the stack runs (`knowledge up`), or now with --wait."


def _wire(
    collection: Collection, published: Published, target: _Target, outcome: Outcome
) -> dict[str, Any]:
    return {
        "tenantId": collection.tenant_id,
        "projectId": target.project_id,
        "collection": collection.slug,
        "collectionId": str(collection.collection_id),
        "collectionCreated": target.is_new,
        "embeddingProfile": collection.embedding_profile,
        "publishedAs": _published_as(collection),
        "sourceId": published.source_id,
        "sourceVersion": published.source_version,
        "mode": published.mode,
        "snapshotId": published.snapshot_id,
        "sequence": published.sequence,
        "documents": published.documents,
        "chunks": published.chunks,
        "unchanged": published.unchanged,
        "deleted": published.deleted,
        "skipped": dict(published.skipped),
        "notices": target.notices,
        "state": outcome.state,
        "revision": outcome.revision,
        "error": outcome.error,
    }
