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
    select distinct v.chunk_id as id
    from collections c
    join sources s using (collection_id)
    join chunk_versions v using (collection_id, source_id)
    where c.slug = any(%(collections)s) and v.chunk_id = any(%(chunks)s)
      and s.project_id = %(project)s and s.deleted_at is null
      and (s.acl is null or s.acl && %(acl)s) and (v.acl is null or v.acl && %(acl)s)
"""

_READABLE_FACTS: Final = """
    select distinct f.fact_id as id from graph_facts f
    cross join (select denied_sources(%(project)s, %(acl)s) as denied) scope
    where f.fact_id = any(%(facts)s) and f.project_id = %(project)s
      and (f.source_id is null or f.source_id <> all(scope.denied))
      and (f.lineage_sources is null or not f.lineage_sources && scope.denied)
      and (f.acl is null or f.acl && %(acl)s)
      and (f.chunk_id is null
           or chunk_is_readable(f.project_id, %(acl)s, f.collection_id, f.chunk_id))
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


async def readable_citations(
    database: AsyncDatabase,
    tenant_id: str,
    project_id: str,
    acl: Sequence[str],
    citations: Sequence[Mapping[str, Any]],
) -> list[Mapping[str, Any]]:
    """The citations that the ACL entries may still read: source and chunk, or fact, allowing."""
    facts = [uuid.UUID(cited["factId"]) for cited in citations if "factId" in cited]
    chunks = [cited for cited in citations if "factId" not in cited]
    values = {
        "collections": sorted({cited["collection"] for cited in chunks}),
        "chunks": [uuid.UUID(cited["chunkId"]) for cited in chunks],
        "facts": facts,
        "project": project_id,
        "acl": list(acl),
    }
    rows = await database.rows(tenant_id, (_READABLE, values), (_READABLE_FACTS, values))
    readable = {str(row["id"]) for found in rows for row in found}
    return [cited for cited in citations if cited.get("factId", cited["chunkId"]) in readable]
