"""Personal API keys: rows of ``clients`` of kind ``key``, each bound to one project."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from knowledge.errors import InvalidInput, NotFound
from knowledge.model.scope import OAUTH_SCOPES, parse_acl
from knowledge.security.keys import PREFIX, ApiKey, draw_key, shown_prefix
from knowledge.storage.postgres.catalogue import ensure_project, secret_hash
from knowledge.storage.postgres.database import AsyncDatabase, Database, Row

MAX_NAME_CHARS = 120
MAX_DAYS = 3650


def create_key(
    owner: Database,
    tenant_id: str,
    project_id: str,
    *,
    name: str,
    scopes: Sequence[str],
    groups: Sequence[str] = (),
    days: int | None = None,
) -> tuple[ApiKey, datetime | None]:
    """Create a key; returns it, and when it expires (None: never). Only its hash is kept.

    Raises `InvalidInput` for a name of no or more than 120 characters, an unknown scope, no scope,
    a wrong group, or ``days`` outside 1 to 3,650.
    """
    if not 1 <= len(name.strip()) <= MAX_NAME_CHARS or not name.isprintable():
        raise InvalidInput(f"a key's name has 1 to {MAX_NAME_CHARS} printable characters")
    if unknown := sorted(set(scopes) - set(OAUTH_SCOPES)):
        raise InvalidInput(f"unknown scope {unknown[0]}: use {', '.join(OAUTH_SCOPES)}")
    if not scopes:
        raise InvalidInput("a key needs at least one scope: --scopes read,write")
    if days is not None and not 1 <= days <= MAX_DAYS:
        raise InvalidInput(f"a key is valid for 1 to {MAX_DAYS} days")
    parse_acl([f"group:{group}" for group in groups])
    ensure_project(owner, tenant_id, project_id)
    key = draw_key()
    expires_at = None if days is None else datetime.now(UTC) + timedelta(days=days)
    with owner.transaction() as connection:
        connection.execute(
            "insert into clients (client_id, tenant_id, secret_hash, projects, groups, scopes,"
            " kind, name, expires_at) values (%s, %s, %s, %s, %s, %s, 'key', %s, %s)",
            [
                key.client_id,
                tenant_id,
                secret_hash(key.secret),
                [project_id],
                list(groups),
                list(scopes),
                name.strip(),
                expires_at,
            ],
        )
    return key, expires_at


def list_keys(owner: Database, tenant_id: str) -> list[Row]:
    """Rows of client_id, tenant_id, name, projects (one), groups, scopes, created_at, expires_at,
    revoked_at and is_expired, oldest first."""
    with owner.transaction() as connection:
        return connection.execute(
            "select client_id, tenant_id, name, projects, groups, scopes, created_at, expires_at,"
            " revoked_at, coalesce(expires_at <= now(), false) as is_expired"
            " from clients where tenant_id = %s and kind = 'key' order by created_at, client_id",
            [tenant_id],
        ).fetchall()


def revoke_key(owner: Database, named: str) -> tuple[str, bool]:
    """Revoke the key of this prefix (or client id); acts on its next request. Returns the prefix,
    and whether it was revoked before.

    Raises `NotFound`.
    """
    client_id = named.removeprefix(PREFIX)
    with owner.transaction() as connection:
        row = connection.execute(
            "select revoked_at from clients where client_id = %s and kind = 'key' for update",
            [client_id],
        ).fetchone()
        if row is None:
            raise NotFound(f"there is no key {named}: knowledge keys list shows their prefixes")
        connection.execute(
            "update clients set revoked_at = coalesce(revoked_at, now()) where client_id = %s",
            [client_id],
        )
    return shown_prefix(client_id), row["revoked_at"] is not None


async def key_for_request(database: AsyncDatabase, client_id: str) -> Row | None:
    """client_id, tenant_id, secret_hash, scopes and expires_at of a key that is not revoked."""
    rows = await database.global_rows("select * from key_for_request(%s)", [client_id])
    return rows[0] if rows else None
