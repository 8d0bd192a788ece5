"""Tenants, projects, clients, collections and sources."""

from __future__ import annotations

import hashlib
import re
import secrets
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from psycopg import Connection

from knowledge.errors import Conflict, InvalidInput, InvalidName, NotFound
from knowledge.model.collection import Collection, CollectionKind, Source
from knowledge.model.identity import require_slug
from knowledge.model.scope import OAUTH_SCOPES, READ, TrustTier, parse_acl
from knowledge.storage.postgres.database import Database, Row

_COLLECTION = (
    "select collection_id, tenant_id, slug, project_id, embedding_profile, allow_remote, head_rev,"
    " kind from collections"
)

_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def ensure_project(owner: Database, tenant_id: str, project_id: str) -> None:
    """Create the tenant and the project where they are new."""
    require_slug(tenant_id, "tenant")
    require_slug(project_id, "project")
    with owner.transaction() as connection:
        connection.execute(
            "insert into tenants (tenant_id) values (%s) on conflict do nothing", [tenant_id]
        )
        connection.execute(
            "insert into projects (tenant_id, project_id) values (%s, %s) on conflict do nothing",
            [tenant_id, project_id],
        )


# --- clients ----------------------------------------------------------------------------


def secret_hash(secret: str) -> bytes:
    """SHA-256: enough for secrets of 256 random bits, which no dictionary holds."""
    return hashlib.sha256(secret.encode()).digest()


def create_client(
    owner: Database,
    tenant_id: str,
    *,
    projects: Sequence[str],
    groups: Sequence[str],
    scopes: Sequence[str],
) -> tuple[str, str]:
    """Create a client; returns (client id, client secret). The secret is shown only here."""
    if not projects:
        raise InvalidInput("a client needs at least one project: --projects P1,P2")
    if unknown := sorted(set(scopes) - set(OAUTH_SCOPES)):
        raise InvalidInput(f"unknown scope {unknown[0]}: use {', '.join(OAUTH_SCOPES)}")
    parse_acl([f"group:{group}" for group in groups])
    for project_id in projects:
        ensure_project(owner, tenant_id, project_id)
    client_id = f"client-{secrets.token_hex(8)}"
    secret = secrets.token_urlsafe(32)
    with owner.transaction() as connection:
        connection.execute(
            "insert into clients (client_id, tenant_id, secret_hash, projects, groups, scopes)"
            " values (%s, %s, %s, %s, %s, %s)",
            [client_id, tenant_id, secret_hash(secret), *map(list, (projects, groups, scopes))],
        )
    return client_id, secret


@contextmanager
def temporary_client(owner: Database, tenant_id: str, project_id: str) -> Iterator[str]:
    """A client that reads the project and is in no group, for the length of the block.

    Nobody knows its secret. Raises `NotFound` for an unknown tenant or project.
    """
    client_id = f"operator-{secrets.token_hex(8)}"
    with owner.transaction() as connection:
        made = connection.execute(
            "insert into clients (client_id, tenant_id, secret_hash, projects, scopes)"
            " select %s, tenant_id, %s, array[project_id], %s from projects"
            " where tenant_id = %s and project_id = %s",
            [client_id, secrets.token_bytes(32), [READ], tenant_id, project_id],
        )
        if not made.rowcount:
            raise NotFound(f"there is no project {project_id}")
    try:
        yield client_id
    finally:
        with owner.transaction() as connection:
            connection.execute("delete from clients where client_id = %s", [client_id])


def list_clients(owner: Database, tenant_id: str) -> list[Row]:
    """Clients that ask for tokens, oldest first; personal API keys are not among them."""
    with owner.transaction() as connection:
        return connection.execute(
            "select client_id, tenant_id, projects, groups, scopes, created_at, revoked_at"
            " from clients where tenant_id = %s and kind = 'client' order by created_at, client_id",
            [tenant_id],
        ).fetchall()


def revoke_client(owner: Database, client_id: str) -> None:
    """Revoke; acts on the client's next request."""
    with owner.transaction() as connection:
        found = connection.execute(
            "update clients set revoked_at = coalesce(revoked_at, now())"
            " where client_id = %s and kind = 'client'",
            [client_id],
        )
        if not found.rowcount:
            raise NotFound(f"there is no client {client_id}")


def change_client(
    owner: Database,
    client_id: str,
    *,
    groups: Sequence[str] | None = None,
    projects: Sequence[str] | None = None,
) -> Row:
    """Replace what is given; acts on the client's next request. Returns the client as it is now.

    Raises `NotFound`, and `InvalidInput` for an empty list of projects.
    """
    if projects is not None and not projects:
        raise InvalidInput("a client needs at least one project: --projects P1,P2")
    parse_acl([f"group:{group}" for group in groups or ()])
    with owner.transaction() as connection:
        row = connection.execute(
            "update clients set groups = coalesce(%s::text[], groups),"
            " projects = coalesce(%s::text[], projects) where client_id = %s and kind = 'client'"
            " returning client_id, tenant_id, projects, groups, scopes, created_at, revoked_at",
            [
                None if groups is None else list(groups),
                None if projects is None else list(projects),
                client_id,
            ],
        ).fetchone()
    if row is None:
        raise NotFound(f"there is no client {client_id}")
    for project_id in projects or ():
        ensure_project(owner, row["tenant_id"], project_id)
    return row


# --- collections ------------------------------------------------------------------------


def create_collection(
    app: Database,
    tenant_id: str,
    project_id: str,
    slug: str,
    *,
    embedding_profile: str | None,
    allow_remote: bool = False,
    kind: CollectionKind = "documents",
) -> Collection:
    """Create a collection. Raises `Conflict` when the tenant has one of this name, and
    `InvalidName` for a name that reads like a collection's id: both address a collection."""
    require_slug(slug, "collection")
    if _ID.fullmatch(slug):
        raise InvalidName(f"there is no collection {slug}, and a name must not look like an id")
    with app.tenant(tenant_id) as connection:
        row = connection.execute(
            "insert into collections"
            " (collection_id, tenant_id, slug, project_id, embedding_profile, allow_remote, kind)"
            " values (%s, %s, %s, %s, %s, %s, %s) on conflict (tenant_id, slug) do nothing"
            " returning collection_id",
            [uuid.uuid4(), tenant_id, slug, project_id, embedding_profile, allow_remote, kind],
        ).fetchone()
        if row is None:
            raise Conflict(f"tenant {tenant_id} already has a collection {slug}")
        return _collection(connection, tenant_id, slug)


def find_collection(app: Database, tenant_id: str, slug_or_id: str) -> Collection:
    """Raises `NotFound`, with the same words whatever the reason."""
    with app.tenant(tenant_id) as connection:
        return _collection(connection, tenant_id, slug_or_id)


def _collection(connection: Connection[Row], tenant_id: str, slug_or_id: str) -> Collection:
    row = connection.execute(
        _COLLECTION + " where tenant_id = %s and (slug = %s or collection_id::text = %s)",
        [tenant_id, slug_or_id, slug_or_id],
    ).fetchone()
    if row is None:
        raise NotFound(f"there is no collection {slug_or_id}")
    return Collection(**row)


def list_collections(database: Database, tenant_id: str | None = None) -> list[Collection]:
    """All collections, or those of one tenant. ``database`` is the owner's."""
    with database.transaction() as connection:
        rows = connection.execute(
            _COLLECTION
            + " where %(t)s::text is null or tenant_id = %(t)s order by tenant_id, slug",
            {"t": tenant_id},
        ).fetchall()
        return [Collection(**row) for row in rows]


def set_embedding_profile(
    connection: Connection[Row], collection: Collection, profile: str | None
) -> None:
    """Pin another profile, which a rebuild builds with; what serves keeps its own till then."""
    connection.execute(
        "update collections set embedding_profile = %s where collection_id = %s",
        [profile, collection.collection_id],
    )


def set_allow_remote(app: Database, collection: Collection, allowed: bool) -> None:
    """Say whether a remote model may be sent the collection's texts."""
    with app.tenant(collection.tenant_id) as connection:
        connection.execute(
            "update collections set allow_remote = %s where collection_id = %s",
            [allowed, collection.collection_id],
        )


# --- sources ----------------------------------------------------------------------------


def list_sources(app: Database, collection: Collection) -> list[Source]:
    with app.tenant(collection.tenant_id) as connection:
        rows = connection.execute(
            "select source_id, project_id, acl, trust_tier, origin, deleted_at from sources"
            " where collection_id = %s order by source_id",
            [collection.collection_id],
        ).fetchall()
    return [_source(row) for row in rows]


def find_source(app: Database, collection: Collection, source_id: str) -> Source | None:
    with app.tenant(collection.tenant_id) as connection:
        row = connection.execute(
            "select source_id, project_id, acl, trust_tier, origin, deleted_at from sources"
            " where collection_id = %s and source_id = %s",
            [collection.collection_id, source_id],
        ).fetchone()
    return _source(row) if row else None


def _source(row: Row) -> Source:
    acl = row["acl"]
    return Source(
        source_id=row["source_id"],
        project_id=row["project_id"],
        acl=None if acl is None else tuple(acl),
        trust_tier=TrustTier(row["trust_tier"]),
        origin=row["origin"],
        deleted_at=row["deleted_at"],
    )


def set_source_acl(
    app: Database, collection: Collection, source_id: str, acl: tuple[str, ...] | None
) -> None:
    """Set who may read a source; acts on the next request, for pinned queries too."""
    with app.tenant(collection.tenant_id) as connection:
        change_source_acl(connection, collection, source_id, acl)


def change_source_acl(
    connection: Connection[Row],
    collection: Collection,
    source_id: str,
    acl: tuple[str, ...] | None,
) -> None:
    """`set_source_acl` as part of a transaction, also for a source of facts alone of the
    collection's project. Raises `NotFound`."""
    readers = None if acl is None else list(acl)
    found = connection.execute(
        "update sources set acl = %s where collection_id = %s and source_id = %s",
        [readers, collection.collection_id, source_id],
    )
    if not found.rowcount:
        found = connection.execute(
            "update graph_sources set acl = %s where project_id = %s and source_id = %s",
            [readers, collection.project_id, source_id],
        )
    _require_source(found.rowcount, collection, source_id)


def tombstone_source(connection: Connection[Row], collection: Collection, source_id: str) -> None:
    """Hide a source, or one of facts alone of the collection's project, from every query at once.
    Its rows stay until they are erased.

    Raises `NotFound`.
    """
    found = connection.execute(
        "update sources set deleted_at = coalesce(deleted_at, now())"
        " where collection_id = %s and source_id = %s",
        [collection.collection_id, source_id],
    )
    if not found.rowcount:
        found = connection.execute(
            "update graph_sources set deleted_at = coalesce(deleted_at, now())"
            " where project_id = %s and source_id = %s",
            [collection.project_id, source_id],
        )
    _require_source(found.rowcount, collection, source_id)
    connection.execute(
        "delete from published_paths where collection_id = %s and source_id = %s",
        [collection.collection_id, source_id],
    )


def _require_source(found: int, collection: Collection, source_id: str) -> None:
    if not found:
        raise NotFound(f"collection {collection.slug} has no source {source_id}")
