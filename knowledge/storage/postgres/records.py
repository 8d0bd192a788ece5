"""Records of searches: written in batches, read by the one who asked."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final, LiteralString

from psycopg.types.json import Jsonb

from knowledge.model.event import OutboundEvent
from knowledge.storage.postgres.database import AsyncDatabase, Params, Row

_QUERY: Final = """
    insert into retrieval_queries (query_id, tenant_id, project_id, principal, groups, run_id,
        query_hash, filters, indexes_used, legs, result_count, citations_ref, latency_ms,
        executed_at)
    values (%(query_id)s, %(tenant_id)s, %(project_id)s, %(principal)s, %(groups)s, %(run_id)s,
        %(query_hash)s, %(filters)s, %(indexes_used)s, %(legs)s, %(result_count)s,
        %(citations_ref)s, %(latency_ms)s, %(executed_at)s)
    on conflict do nothing
"""
_CITATIONS: Final = """
    insert into citations (tenant_id, citations_ref, principal, project_id, citations)
    values (%(tenant_id)s, %(citations_ref)s, %(principal)s, %(project_id)s, %(citations)s)
    on conflict do nothing
"""
_EVENT: Final = """
    insert into outbox (tenant_id, event_id, topic, event_type, subject, payload, occurred_at)
    values (%s, %s, %s, %s, %s, %s, %s) on conflict do nothing
"""
_READABLE: Final = """
    select distinct v.chunk_id
    from collections c
    join sources s using (collection_id)
    join chunk_versions v using (collection_id, source_id)
    where c.slug = any(%(collections)s) and v.chunk_id = any(%(chunks)s)
      and s.project_id = %(project)s and s.deleted_at is null
      and (s.acl is null or s.acl && %(acl)s) and (v.acl is null or v.acl && %(acl)s)
"""


def record_statements(records: Sequence[Mapping[str, Any]]) -> list[tuple[LiteralString, Params]]:
    """One statement a row: the query, its citations by content hash, and the event."""
    statements: list[tuple[LiteralString, Params]] = []
    for record in records:
        values = {key: value for key, value in record.items() if key != "event"}
        for name in ("filters", "legs", "citations"):
            values[name] = Jsonb(record[name])
        statements += [(_QUERY, values), (_CITATIONS, values), (_EVENT, _event(record["event"]))]
    return statements


def _event(event: OutboundEvent) -> list[Any]:
    return [
        event.tenant_id,
        event.event_id,
        event.topic,
        event.event_type,
        event.subject,
        Jsonb(event.payload),
        event.occurred_at,
    ]


async def find_query(
    database: AsyncDatabase, tenant_id: str, query_id: uuid.UUID, principal: str | None
) -> Row | None:
    """The record of a search, of ``principal`` only unless that is None."""
    [rows] = await database.rows(
        tenant_id,
        (
            "select query_id, tenant_id, project_id, principal, groups, run_id, query_hash, filters,"
            " indexes_used, legs, result_count, citations_ref, latency_ms, executed_at"
            " from retrieval_queries where query_id = %s and (%s::text is null or principal = %s)",
            [query_id, principal, principal],
        ),
    )
    return rows[0] if rows else None


async def find_citations(
    database: AsyncDatabase, tenant_id: str, citations_ref: str, principal: str | None
) -> Row | None:
    [rows] = await database.rows(
        tenant_id,
        (
            "select principal, project_id, citations, stored_at from citations"
            " where citations_ref = %s and (%s::text is null or principal = %s)",
            [citations_ref, principal, principal],
        ),
    )
    return rows[0] if rows else None


async def readable_chunks(
    database: AsyncDatabase,
    tenant_id: str,
    project_id: str,
    acl: Sequence[str],
    citations: Sequence[Mapping[str, Any]],
) -> set[str]:
    """Ids of the cited chunks that the ACL entries may still read, source and chunk allowing."""
    values = {
        "collections": sorted({citation["collection"] for citation in citations}),
        "chunks": [uuid.UUID(citation["chunkId"]) for citation in citations],
        "project": project_id,
        "acl": list(acl),
    }
    [rows] = await database.rows(tenant_id, (_READABLE, values))
    return {str(row["chunk_id"]) for row in rows}
