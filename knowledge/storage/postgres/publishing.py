"""What publishing writes: sources, snapshots, and what was sent last of each path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from psycopg import Connection
from psycopg.types.json import Jsonb

from knowledge.errors import Conflict, NotFound
from knowledge.model.collection import Collection
from knowledge.storage.postgres.database import Database, Row
from knowledge.storage.snapshots import Snapshot


class Acl(Enum):
    UNCHANGED = "unchanged"


def register_source(
    connection: Connection[Row],
    collection: Collection,
    source_id: str,
    *,
    project_id: str,
    acl: tuple[str, ...] | Acl | None,
    origin: str | None,
    revive: bool,
) -> None:
    """Create the source, or note its origin and (when given) its ACL.

    Raises `Conflict` when it belongs to another project or was deleted and is not to be revived.
    """
    known = connection.execute(
        "select 1 from projects where tenant_id = %s and project_id = %s",
        [collection.tenant_id, project_id],
    ).fetchone()
    if known is None:
        raise NotFound(f"there is no project {project_id}")
    given = None if isinstance(acl, Acl) or acl is None else list(acl)
    connection.execute(
        "insert into sources (tenant_id, collection_id, source_id, project_id, acl, origin)"
        " values (%s, %s, %s, %s, %s, %s) on conflict do nothing",
        [collection.tenant_id, collection.collection_id, source_id, project_id, given, origin],
    )
    row = connection.execute(
        "select project_id, deleted_at from sources"
        " where collection_id = %s and source_id = %s for update",
        [collection.collection_id, source_id],
    ).fetchone()
    assert row is not None
    if row["project_id"] != project_id:
        raise Conflict(
            f"source {source_id!r} of collection {collection.slug} belongs to another project:"
            " publish under another --source name"
        )
    if row["deleted_at"] is not None and not revive:
        raise Conflict(f"source {source_id!r} was deleted: publish with --revive to bring it back")
    connection.execute(
        "update sources set deleted_at = null, origin = coalesce(%s, origin),"
        " acl = case when %s then acl else %s::text[] end"
        " where collection_id = %s and source_id = %s",
        [origin, isinstance(acl, Acl), given, collection.collection_id, source_id],
    )


def register_snapshot(
    connection: Connection[Row], collection: Collection, snapshot: Snapshot
) -> None:
    """Note the snapshot. Raises `Conflict` when its id is known with another content."""
    manifest = snapshot.manifest
    connection.execute(
        "insert into snapshots (snapshot_id, tenant_id, collection_id, manifest, manifest_sha256,"
        " mode, chunk_count, source_versions) values (%s, %s, %s, %s, %s, %s, %s, %s)"
        " on conflict do nothing",
        [
            manifest.snapshot_id,
            collection.tenant_id,
            collection.collection_id,
            str(snapshot.manifest_path),
            snapshot.manifest_sha256,
            manifest.mode,
            manifest.chunk_count,
            Jsonb({source.source_id: source.source_version for source in manifest.sources}),
        ],
    )
    row = connection.execute(
        "select 1 from snapshots where snapshot_id = %s and manifest_sha256 = %s"
        " and collection_id = %s",
        [manifest.snapshot_id, snapshot.manifest_sha256, collection.collection_id],
    ).fetchone()
    if row is None:
        raise Conflict(f"snapshot {manifest.snapshot_id} is already known with another content")


def published_digests(app: Database, collection: Collection, source_id: str) -> dict[str, bytes]:
    """Path to digest, as the publisher last sent them; empty when it must send everything."""
    with app.tenant(collection.tenant_id) as connection:
        rows = connection.execute(
            "select path, digest from published_paths where collection_id = %s and source_id = %s",
            [collection.collection_id, source_id],
        ).fetchall()
    return {row["path"]: bytes(row["digest"]) for row in rows}


def forget_published(
    connection: Connection[Row],
    collection: Collection,
    source_id: str,
    paths: Sequence[str] | None,
) -> None:
    """Forget these paths, or (None) all of the source."""
    connection.execute(
        "delete from published_paths where collection_id = %s and source_id = %s"
        " and (%s::text[] is null or path = any(%s::text[]))",
        [collection.collection_id, source_id, *[None if paths is None else list(paths)] * 2],
    )


def remember_published(
    connection: Connection[Row],
    collection: Collection,
    source_id: str,
    digests: Mapping[str, bytes],
) -> None:
    connection.execute(
        "insert into published_paths (tenant_id, collection_id, source_id, path, digest)"
        " select %s, %s, %s, path, digest from unnest(%s::text[], %s::bytea[]) as t(path, digest)",
        [
            collection.tenant_id,
            collection.collection_id,
            source_id,
            list(digests.keys()),
            list(digests.values()),
        ],
    )
