"""Tellings of memories: read, verified, and taken out of the store."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, LiteralString

from psycopg.types.json import Jsonb

from knowledge.storage.postgres.database import Row, Transaction
from knowledge.storage.postgres.facts.writing import scope_key, stage

_TELLING: Final = """
    f.fact_id, f.telling_id, f.domain, f.subject, f.subject_key, f.subject_type, f.predicate, f.object,
    f.object_key, f.object_type, f.valid_from, f.valid_from_precision, f.valid_to,
    f.valid_to_precision, f.observed_at, f.confidence, f.trust_tier, f.verified, f.verified_by,
    f.principal, f.source_id, f.source_version, f.client, f.model, f.session_id, f.acl,
    f.session_scope, f.recorded_at, f.closed_at, f.closing, f.timeline
"""


def tellings_of(
    connection: Transaction,
    tenant_id: str,
    project_id: str,
    namespace: str,
    *,
    fact_ids: Sequence[uuid.UUID] | None = None,
    session: str | None = None,
    key: str | None = None,
    believed: bool = True,
) -> list[Row]:
    """Tellings of a memory, in the order they were observed: of these facts, of one session only, or
    with this name at an end; all of them without any. Inferred facts are not told: none."""
    clauses: list[LiteralString] = ["f.rule is null"]
    if fact_ids is not None:
        clauses.append("f.fact_id = any(%(facts)s)")
    if session is not None:
        clauses.append("f.session_scope = %(session)s")
    if key is not None:
        clauses.append("(f.subject_key = %(key)s or f.object_key = %(key)s)")
    if believed:
        clauses.append("f.closed_at is null")
    values: dict[str, Any] = {
        "scope_key": scope_key(tenant_id, project_id),
        "namespace": namespace,
        "facts": None if fact_ids is None else list(fact_ids),
        "session": session,
        "key": key,
    }
    return connection.execute(
        f"select {_TELLING} from graph_facts f where f.scope_key = %(scope_key)s"
        " and f.namespace = %(namespace)s and f.namespace like '%%|%%' and "
        + " and ".join(clauses)
        + " order by f.observed_at, f.subject_key, f.predicate, f.object_key, f.telling_id",
        values,
    ).fetchall()


def told_in_session(
    connection: Transaction, tenant_id: str, project_id: str, namespace: str, session: str
) -> tuple[list[uuid.UUID], int]:
    """Facts of a memory that were told in one session only, and how many others told too."""
    rows = connection.execute(
        "select f.fact_id, bool_and(f.session_id is not distinct from %(session)s) as is_only"
        " from graph_facts f where f.scope_key = %(scope_key)s and f.namespace = %(namespace)s"
        " and f.namespace like '%%|%%' and f.rule is null group by f.fact_id"
        " having bool_or(f.session_id is not distinct from %(session)s)",
        {
            "scope_key": scope_key(tenant_id, project_id),
            "namespace": namespace,
            "session": session,
        },
    ).fetchall()
    only = [row["fact_id"] for row in rows if row["is_only"]]
    return only, len(rows) - len(only)


def promoted_into(
    connection: Transaction,
    tenant_id: str,
    project_id: str,
    namespace: str,
    fact_ids: Sequence[uuid.UUID],
) -> list[uuid.UUID]:
    """Facts of one session that ended because these, of the same memory, say the same to every one."""
    rows = connection.execute(
        "select distinct fact_id from graph_facts where scope_key = %s and namespace = %s"
        " and namespace like '%%|%%' and closed_at is not null and closing = 'promoted'"
        " and closed_by = any(%s::text[])",
        [scope_key(tenant_id, project_id), namespace, [str(fact) for fact in fact_ids]],
    ).fetchall()
    return [row["fact_id"] for row in rows]


def verify(
    connection: Transaction, telling_ids: Sequence[uuid.UUID], *, at: datetime, by: str
) -> int:
    """Close believed tellings and open the same as verified by a person. Returns how many."""
    values = {
        "old": list(telling_ids),
        "new": [uuid.uuid4() for _ in telling_ids],
        "at": at,
        "by": by,
    }
    stage(connection)
    connection.execute(
        "insert into told_facts select * from graph_facts"
        " where telling_id = any(%(old)s) and closed_at is null and not verified",
        values,
    )
    connection.execute(
        "update graph_facts f set closed_at = %(at)s, closing = 'restated', closed_by = k.new::text"
        " from told_facts t, unnest(%(old)s::uuid[], %(new)s::uuid[]) as k(old, new)"
        " where f.telling_id = t.telling_id and k.old = t.telling_id",
        values,
    )
    connection.execute(
        "update told_facts t set telling_id = k.new, verified = true, verified_by = %(by)s,"
        " recorded_at = %(at)s from unnest(%(old)s::uuid[], %(new)s::uuid[]) as k(old, new)"
        " where t.telling_id = k.old",
        values,
    )
    return connection.execute("insert into graph_facts select * from told_facts").rowcount


def erase(
    connection: Transaction, project_id: str, namespace: str, fact_ids: Sequence[uuid.UUID]
) -> dict[str, int]:
    """Take facts out of the store with all that was told of them and rests on them; counts by store."""
    row = connection.execute(
        "select erase_memory(%s, %s, %s) as counts", [project_id, namespace, list(fact_ids)]
    ).fetchone()
    assert row is not None
    counts: dict[str, int] = row["counts"]
    return counts


def note_erased(
    connection: Transaction,
    tenant_id: str,
    project_id: str,
    namespace: str,
    *,
    receipt_id: uuid.UUID,
    asked: str,
    counts: Mapping[str, int],
    by: str,
) -> datetime:
    """Keep the receipt, and let those who keep names warm know."""
    row = connection.execute(
        "insert into memory_receipts (receipt_id, tenant_id, project_id, namespace, asked, counts,"
        " forgotten_by) values (%s, %s, %s, %s, %s, %s, %s) returning forgotten_at",
        [receipt_id, tenant_id, project_id, namespace, asked, Jsonb(dict(counts)), by],
    ).fetchone()
    assert row is not None
    connection.execute(
        "insert into memory_namespaces (tenant_id, project_id, namespace, written_at, erased_at)"
        " values (%s, %s, %s, clock_timestamp(), clock_timestamp())"
        " on conflict (tenant_id, project_id, namespace) do update set erased_at = excluded.erased_at",
        [tenant_id, project_id, namespace],
    )
    at: datetime = row["forgotten_at"]
    return at
