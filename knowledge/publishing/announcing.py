"""Announcing: an event of the outside world put into the inbox, with all it changes at once."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from knowledge.errors import InvalidInput, InvalidSnapshot, NotFound
from knowledge.model.collection import Collection
from knowledge.model.event import (
    CHUNKS_PUBLISHED,
    SOURCE_ACCESS_CHANGED,
    SOURCE_DELETED,
)
from knowledge.model.scope import parse_acl
from knowledge.storage.postgres import catalogue, inbox
from knowledge.storage.postgres.database import Database, Transaction
from knowledge.storage.postgres.publishing import (
    Acl,
    forget_published,
    register_snapshot,
    register_source,
    remember_published,
)
from knowledge.storage.snapshots import Snapshot, locate_manifest, read_snapshot

PUBLISHER: Final = "urn:knowledge:publish"


@dataclass(frozen=True, slots=True)
class Announcement:
    """What goes with a snapshot. ``acl`` is `Acl.UNCHANGED` when the publisher said nothing:
    publishing content again never touches permissions. ``digests`` is what the publisher
    remembers of each path to make its next delta; None forgets it."""

    snapshot: Snapshot
    event_source: str = PUBLISHER
    event_id: str | None = None
    acl: tuple[str, ...] | Acl | None = Acl.UNCHANGED
    origin: str | None = None
    revive: bool = False
    digests: Mapping[str, Mapping[str, bytes]] | None = field(default=None)


def announce(app: Database, collection: Collection, announcement: Announcement) -> int:
    """Register source and snapshot and put `ChunksPublished` into the inbox: one transaction.

    The snapshot must have been verified. Returns the event's sequence; the same event again
    returns the first one's. Raises `Conflict` for a source of another project, or a deleted one.
    """
    snapshot, manifest = announcement.snapshot, announcement.snapshot.manifest
    if (manifest.tenant_id, manifest.collection) != (collection.tenant_id, collection.slug):
        raise InvalidSnapshot("the manifest names another tenant or collection than the event")
    with app.tenant(collection.tenant_id) as connection:
        for source in manifest.sources:
            register_source(
                connection,
                collection,
                source.source_id,
                project_id=manifest.project_id,
                acl=announcement.acl,
                origin=announcement.origin,
                revive=announcement.revive,
            )
            forget_published(
                connection,
                collection,
                source.source_id,
                None
                if manifest.mode == "full" or announcement.digests is None
                else [*source.paths, *source.deleted_paths],
            )
            if announcement.digests is not None:
                remember_published(
                    connection, collection, source.source_id, announcement.digests[source.source_id]
                )
        register_snapshot(connection, collection, snapshot)
        return inbox.receive(
            connection,
            collection,
            event_source=announcement.event_source,
            event_id=announcement.event_id or str(manifest.snapshot_id),
            event_type=CHUNKS_PUBLISHED,
            payload=chunks_published(collection, snapshot),
        )


def chunks_published(collection: Collection, snapshot: Snapshot) -> dict[str, Any]:
    manifest = snapshot.manifest
    return {
        "tenantId": manifest.tenant_id,
        "collectionId": str(collection.collection_id),
        "snapshotId": str(manifest.snapshot_id),
        "manifest": str(snapshot.manifest_path),
        "mode": manifest.mode,
        "chunkCount": manifest.chunk_count,
        "sourceVersions": {source.source_id: source.source_version for source in manifest.sources},
    }


def receive_event(
    app: Database,
    *,
    tenant_id: str,
    roots: Sequence[Path],
    event_source: str,
    event_id: str,
    event_type: str,
    data: Mapping[str, Any],
) -> int:
    """Take an event from outside, on behalf of ``tenant_id`` (the credential's).

    Deletions and changed access act at once, in the transaction that notes them. An event that
    was received before changes nothing, whatever came after it. Returns the event's (first)
    sequence. Raises `NotFound`, `InvalidSnapshot`, `InvalidInput`, `Conflict`.
    """
    if data.get("tenantId") != tenant_id:
        raise NotFound("there is no such tenant")
    collection = catalogue.find_collection(app, tenant_id, str(data.get("collectionId")))
    with app.tenant(tenant_id) as connection:
        known = inbox.sequence_of(
            connection, tenant_id, event_source=event_source, event_id=event_id
        )
    if known is not None:
        return known
    if event_type == CHUNKS_PUBLISHED:
        return _receive_snapshot(app, collection, roots, event_source, event_id, data)
    with app.tenant(tenant_id) as connection:
        _change_source(connection, collection, event_type, data)
        return inbox.receive(
            connection,
            collection,
            event_source=event_source,
            event_id=event_id,
            event_type=event_type,
            payload=data,
        )


def _change_source(
    connection: Transaction, collection: Collection, event_type: str, data: Mapping[str, Any]
) -> None:
    source_id = data.get("sourceId")
    if not isinstance(source_id, str):
        raise InvalidInput(f"{event_type} needs a sourceId")
    if event_type == SOURCE_DELETED:
        catalogue.tombstone_source(connection, collection, source_id)
    elif event_type == SOURCE_ACCESS_CHANGED:
        catalogue.change_source_acl(connection, collection, source_id, _given_acl(data))


def _given_acl(data: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The event's ACL. What cannot be read is never taken for everyone."""
    acl = data.get("acl", "")
    if acl is None or (isinstance(acl, list) and all(isinstance(entry, str) for entry in acl)):
        return parse_acl(acl)
    raise InvalidInput(
        "SourceAccessChanged needs an acl: a list of user:NAME or group:NAME, or null for everyone"
    )


def _receive_snapshot(
    app: Database,
    collection: Collection,
    roots: Sequence[Path],
    event_source: str,
    event_id: str,
    data: Mapping[str, Any],
) -> int:
    path = locate_manifest(str(data.get("manifest")), tenant_id=collection.tenant_id, roots=roots)
    snapshot = read_snapshot(path)
    manifest = snapshot.manifest
    declared = (data.get("snapshotId"), data.get("mode"), data.get("chunkCount"))
    if declared != (str(manifest.snapshot_id), manifest.mode, manifest.chunk_count):
        raise InvalidSnapshot(
            "snapshotId, mode or chunkCount of the event differ from the manifest"
        )
    snapshot.verify()
    return announce(
        app,
        collection,
        Announcement(snapshot, event_source=event_source, event_id=event_id),
    )


def delete_source(app: Database, collection: Collection, source_id: str) -> int:
    """Hide a source at once and close its chunks with the next revision."""
    data = {
        "tenantId": collection.tenant_id,
        "collectionId": str(collection.collection_id),
        "sourceId": source_id,
    }
    return receive_event(
        app,
        tenant_id=collection.tenant_id,
        roots=(),
        event_source=PUBLISHER,
        event_id=str(uuid.uuid4()),
        event_type=SOURCE_DELETED,
        data=data,
    )
