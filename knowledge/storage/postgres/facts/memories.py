"""Facts of memories: what they name, and how much they hold."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Final, LiteralString

from knowledge.storage.postgres.database import AsyncDatabase, Row, Transaction
from knowledge.storage.postgres.facts.writing import scope_key

_NAMES: Final = """
    f.subject, f.subject_key, f.subject_type, f.object, f.object_key, f.object_type, f.acl,
    f.source_id, f.lineage_sources, f.session_scope, f.chunk_id is not null as of_chunk
"""


OF_MEMORY: Final = (
    "f.scope_key = %(scope_key)s and f.namespace = %(namespace)s and f.namespace like '%%|%%'"
    " and f.suggestion is distinct from 'suggested'"
)


_CHANGES: Final[LiteralString] = f"""
    select true as is_open, {_NAMES} from graph_facts f
    where {OF_MEMORY} and f.recorded_at > %(since)s and f.recorded_at <= %(upto)s
      and (f.closed_at is null or f.closed_at > %(upto)s)
    union all
    select false, {_NAMES} from graph_facts f
    where {OF_MEMORY} and f.closed_at > %(since)s and f.closed_at <= %(upto)s
      and f.recorded_at <= %(since)s
"""


_MERGES: Final = (
    "select name, name_key, into_name, into_key from graph_merges"
    " where namespace = %(namespace)s and undone_at is null"
)


_PLAN: Final = "select plan_memory(%s, %s, %s) as plan"


async def plan_memory(
    database: AsyncDatabase, tenant_id: str, client_id: str, project_id: str | None, namespace: str
) -> Row | None:
    """What ``plan_graph`` finds, with ``project``, ``erasedAt``, ``embeddedAt`` and ``merges``; None
    for a client that is not known."""
    [[row]] = await database.rows(tenant_id, (_PLAN, [client_id, project_id, namespace]))
    found: Row | None = row["plan"]
    return found


async def changed_names(
    database: AsyncDatabase,
    tenant_id: str,
    project_id: str,
    namespace: str,
    *,
    since: datetime,
    upto: datetime,
) -> tuple[list[Row], list[Row]]:
    """Believed facts that opened (``is_open``) or closed in (since, upto], by what they name and who
    may read them; and the merges in force."""
    values = {
        "scope_key": scope_key(tenant_id, project_id),
        "namespace": namespace,
        "since": since,
        "upto": upto,
    }
    facts, merges = await database.rows(tenant_id, (_CHANGES, values), (_MERGES, values))
    return facts, merges


def note_written(
    connection: Transaction, tenant_id: str, project_id: str, namespace: str, at: datetime
) -> None:
    """There are facts in the memory that are new as of then."""
    connection.execute(
        "insert into memory_namespaces (tenant_id, project_id, namespace, written_at)"
        " values (%s, %s, %s, %s) on conflict (tenant_id, project_id, namespace)"
        " do update set written_at = excluded.written_at",
        [tenant_id, project_id, namespace, at],
    )


def count_open(
    connection: Transaction, tenant_id: str, project_id: str, namespace: str
) -> tuple[int, int]:
    """Believed facts of a memory, and the entities that they name."""
    row = connection.execute(
        "with held as materialized (select f.subject_key, f.object_key from graph_facts f"
        " where f.scope_key = %s and f.namespace = %s and f.namespace like '%%|%%'"
        " and f.closed_at is null and f.suggestion is distinct from 'suggested')"
        " select (select count(*) from held) as facts, (select count(*) from ("
        " select subject_key from held union select object_key from held) k) as entities",
        [scope_key(tenant_id, project_id), namespace],
    ).fetchone()
    assert row is not None
    return row["facts"], row["entities"]


def known_keys(
    connection: Transaction, tenant_id: str, project_id: str, namespace: str, keys: Sequence[str]
) -> set[str]:
    """Those of the name keys that a believed fact of the memory has at either end."""
    ends = " or ".join(
        f"exists (select from graph_facts f where f.{side}_key = k.key and f.scope_key = %(scope_key)s"
        " and f.namespace = %(namespace)s and f.closed_at is null)"
        for side in ("subject", "object")
    )
    rows = connection.execute(
        f"select k.key from unnest(%(keys)s::text[]) as k(key) where {ends}",
        {
            "keys": list(keys),
            "scope_key": scope_key(tenant_id, project_id),
            "namespace": namespace,
        },
    ).fetchall()
    return {row["key"] for row in rows}


def gone_back(connection: Transaction, telling_ids: Sequence[uuid.UUID]) -> set[uuid.UUID]:
    """Those of these believed tellings that are no longer in force: on their timeline another object
    came after them."""
    rows = connection.execute(
        "select t.telling_id from unnest(%s::uuid[]) as k(id) cross join lateral ("
        "select * from graph_facts where telling_id = k.id and closed_at is null offset 0) t"
        " cross join lateral (select g.object_key from graph_facts g"
        " where g.timeline = t.timeline and g.closed_at is null and g.trust = t.trust"
        " and g.acl is not distinct from t.acl"
        " order by g.starts desc, g.confidence desc, g.observed_at desc, g.fact_id desc limit 1) last"
        " where last.object_key <> t.object_key",
        [list(telling_ids)],
    ).fetchall()
    return {row["telling_id"] for row in rows}
