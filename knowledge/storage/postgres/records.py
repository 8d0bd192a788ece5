"""Records of searches: written in batches, read by the one who asked."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from knowledge.storage.postgres.database import AsyncDatabase, Row

_RECORD: Final = """
    with record as materialized (
        select * from jsonb_to_recordset(%s::jsonb) as r(
            query_id uuid, tenant_id text, project_id text, principal text, groups text[],
            run_id uuid, query_hash text, filters jsonb, indexes_used uuid[], legs jsonb,
            result_count integer, citations_ref text, citations jsonb, latency_ms integer,
            executed_at timestamptz, event_id uuid, topic text, event_type text, event jsonb)
    ), query as (
        insert into retrieval_queries (query_id, tenant_id, project_id, principal, groups, run_id,
            query_hash, filters, indexes_used, legs, result_count, citations_ref, latency_ms,
            executed_at)
        select query_id, tenant_id, project_id, principal, groups, run_id, decode(query_hash, 'hex'),
               filters, indexes_used, legs, result_count, citations_ref, latency_ms, executed_at
        from record on conflict do nothing
    ), citation as (
        insert into citations (tenant_id, citations_ref, principal, project_id, citations)
        select distinct on (citations_ref) tenant_id, citations_ref, principal, project_id, citations
        from record on conflict do nothing
    )
    insert into outbox (tenant_id, event_id, topic, event_type, subject, payload, occurred_at)
    select tenant_id, event_id, topic, event_type, query_id::text, event, executed_at
    from record on conflict do nothing
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


async def record(
    database: AsyncDatabase, tenant_id: str, records: Sequence[Mapping[str, Any]]
) -> None:
    """Write queries, their citations by content hash, and their events: one statement for all.

    The same query id again changes nothing.
    """
    await database.execute(tenant_id, (_RECORD, [json.dumps(records, ensure_ascii=False)]))


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
