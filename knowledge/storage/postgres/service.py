"""What the query service reads and writes beside searches: credentials, listings, the relay."""

from __future__ import annotations

from typing import Any, Final

from knowledge.storage.postgres.database import AsyncDatabase, Row

_COLLECTIONS: Final = """
    select c.collection_id, c.slug, c.project_id, c.kind, c.embedding_profile, c.head_rev,
           c.created_at,
           coalesce((select jsonb_object_agg(r.kind, r.revision) from index_revisions r
                     where r.collection_id = c.collection_id
                       and r.state in ('Ready', 'Rebuilding', 'Degraded')), '{}') as served,
           coalesce((select array_agg(s.source_id order by s.source_id) from sources s
                     where s.collection_id = c.collection_id and s.project_id = any(%(projects)s)
                       and s.deleted_at is null and (s.acl is null or s.acl && %(acl)s)),
                    '{}') as sources
    from collections c
    where c.project_id = any(%(projects)s) or exists (
        select from sources s
        where s.collection_id = c.collection_id and s.project_id = any(%(projects)s))
    order by c.slug
"""
_INDEXES: Final = """
    select r.index_revision_id, r.tenant_id, r.collection_id, r.kind, r.revision,
           r.embedding_profile_version, r.vector_profile, r.state, r.item_count,
           r.built_from_snapshots, r.built_at, r.retired_at, r.collected_at, r.error
    from index_revisions r where r.collection_id = %s
    order by r.revision desc, r.kind limit 500
"""
_EVENTS: Final = """
    select sequence, event_id, topic, event_type, subject, payload, occurred_at from outbox
    where sequence > %s order by sequence limit %s
"""


async def client_for_token(database: AsyncDatabase, client_id: str) -> Row | None:
    """Tenant, secret hash and scopes of a client that is not revoked."""
    rows = await database.global_rows("select * from client_for_token(%s)", [client_id])
    return rows[0] if rows else None


async def grants(database: AsyncDatabase, tenant_id: str, client_id: str) -> Row | None:
    """Projects, groups and scopes of a client as they are now; None when it was revoked."""
    [rows] = await database.rows(
        tenant_id,
        (
            "select projects, groups, scopes from clients"
            " where client_id = %s and revoked_at is null",
            [client_id],
        ),
    )
    return rows[0] if rows else None


async def collections(
    database: AsyncDatabase, tenant_id: str, projects: list[str], acl: list[str]
) -> list[Row]:
    [rows] = await database.rows(tenant_id, (_COLLECTIONS, {"projects": projects, "acl": acl}))
    return rows


async def index_revisions(database: AsyncDatabase, tenant_id: str, collection_id: Any) -> list[Row]:
    [rows] = await database.rows(tenant_id, (_INDEXES, [collection_id]))
    return rows


async def events(database: AsyncDatabase, tenant_id: str, after: int, limit: int) -> list[Row]:
    [rows] = await database.rows(tenant_id, (_EVENTS, [after, limit]))
    return rows


async def relay(database: AsyncDatabase) -> int:
    """Give committed events their place in the sequence readers page by. Returns how many."""
    [row] = await database.global_rows("select relay_outbox(500) as relayed")
    return int(row["relayed"])


async def delete_expired_records(database: AsyncDatabase, retention_days: int) -> int:
    """Delete search records (of every tenant) older than the retention. Returns how many."""
    [row] = await database.global_rows(
        "select delete_expired_records(%s) as deleted", [retention_days]
    )
    return int(row["deleted"])


async def count_facts(database: AsyncDatabase) -> list[Row]:
    """Believed facts of every tenant: rows of tenant_id, domain, trust_tier and facts."""
    return await database.global_rows("select * from count_graph_facts()")


async def is_proven(database: AsyncDatabase, backend: str, version: str, schema: str) -> bool:
    """Whether this backend version and schema already proved its filters here."""
    rows = await database.global_rows(
        "select 1 from scope_contracts where backend = %s and version = %s and schema_hash = %s",
        [backend, version, schema],
    )
    return bool(rows)


async def note_proof(database: AsyncDatabase, backend: str, version: str, schema: str) -> None:
    await database.global_rows(
        "insert into scope_contracts (backend, version, schema_hash) values (%s, %s, %s)"
        " on conflict (backend, version, schema_hash) do update set proven_at = now()"
        " returning proven_at",
        [backend, version, schema],
    )
