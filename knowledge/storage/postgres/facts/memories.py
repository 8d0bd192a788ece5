"""Facts of memories: what they name, how much they hold, and what of it is taken out."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, LiteralString

from psycopg.types.json import Jsonb

from knowledge.storage.postgres.database import AsyncDatabase, Row, Transaction
from knowledge.storage.postgres.facts.writing import scope_key

_NAMES: Final = """
    f.subject, f.subject_key, f.subject_type, f.object, f.object_key, f.object_type, f.acl,
    f.source_id, f.lineage_sources, f.session_scope, f.chunk_id is not null as of_chunk
"""
_OF_MEMORY: Final = (
    "f.scope_key = %(scope_key)s and f.namespace = %(namespace)s and f.namespace like '%%|%%'"
    " and f.suggestion is distinct from 'suggested'"
)
_CHANGES: Final[LiteralString] = f"""
    select true as is_open, {_NAMES} from graph_facts f
    where {_OF_MEMORY} and f.recorded_at > %(since)s and f.recorded_at <= %(upto)s
      and (f.closed_at is null or f.closed_at > %(upto)s)
    union all
    select false, {_NAMES} from graph_facts f
    where {_OF_MEMORY} and f.closed_at > %(since)s and f.closed_at <= %(upto)s
      and f.recorded_at <= %(since)s
"""
_MERGES: Final = (
    "select name, name_key, into_name, into_key from graph_merges"
    " where namespace = %(namespace)s and undone_at is null"
)
_VECTORS: Final = (
    "select name_key, vector, embedded_at from memory_vectors where project_id = %(project)s"
    " and namespace = %(namespace)s and fingerprint = %(fingerprint)s and embedded_at > %(after)s"
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


async def vectors_of(
    database: AsyncDatabase,
    tenant_id: str,
    project_id: str,
    namespace: str,
    fingerprint: str,
    after: datetime,
) -> list[Row]:
    """Rows of name_key, vector (float32 bytes) and embedded_at of one model, stored after a time."""
    [rows] = await database.rows(
        tenant_id,
        (
            _VECTORS,
            {
                "project": project_id,
                "namespace": namespace,
                "fingerprint": fingerprint,
                "after": after,
            },
        ),
    )
    return rows


async def memories_to_embed(database: AsyncDatabase, fingerprint: str) -> list[Row]:
    """Of every tenant: tenant_id, project_id, namespace and written_at of memories that may hold
    names without a vector of this model, longest waiting first."""
    return await database.global_rows("select * from memories_to_embed(%s)", [fingerprint])


async def names_without_vector(
    database: AsyncDatabase,
    tenant_id: str,
    project_id: str,
    namespace: str,
    fingerprint: str,
    limit: int,
) -> list[Row]:
    """Rows of name_key and name of believed facts, by key, that have no vector of this model."""
    [rows] = await database.rows(
        tenant_id,
        (
            "select n.name_key, min(n.name) as name from graph_facts f,"
            " lateral (values (f.subject_key, f.subject), (f.object_key, f.object)) as n(name_key, name)"
            f" where {_OF_MEMORY} and f.closed_at is null and not exists ("
            " select from memory_vectors v where v.tenant_id = %(tenant)s and v.project_id = %(project)s"
            " and v.namespace = %(namespace)s and v.fingerprint = %(fingerprint)s"
            " and v.name_key = n.name_key) group by n.name_key order by n.name_key limit %(limit)s",
            {
                "scope_key": scope_key(tenant_id, project_id),
                "tenant": tenant_id,
                "project": project_id,
                "namespace": namespace,
                "fingerprint": fingerprint,
                "limit": limit,
            },
        ),
    )
    return rows


async def store_vectors(
    database: AsyncDatabase,
    tenant_id: str,
    project_id: str,
    namespace: str,
    fingerprint: str,
    vectors: Mapping[str, bytes],
) -> None:
    """Keep vectors by name key, of names that a fact still has; one that is there stays."""
    ends = " or ".join(
        f"exists (select from graph_facts f where f.{side}_key = k.key and f.scope_key = %(scope_key)s"
        " and f.namespace = %(namespace)s)"
        for side in ("subject", "object")
    )
    await database.execute(
        tenant_id,
        # Who forgets holds this row: a name that is forgotten meanwhile gets no vector.
        ("select from graph_heads where project_id = %s for share", [project_id]),
        (
            "insert into memory_vectors (tenant_id, project_id, namespace, fingerprint, name_key,"
            " dimension, vector) select %(tenant)s, %(project)s, %(namespace)s, %(fingerprint)s, k.key,"
            " octet_length(k.vector) / 4, k.vector"
            " from unnest(%(keys)s::text[], %(vectors)s::bytea[]) as k(key, vector)"
            f" where {ends} on conflict do nothing",
            {
                "tenant": tenant_id,
                "project": project_id,
                "scope_key": scope_key(tenant_id, project_id),
                "namespace": namespace,
                "fingerprint": fingerprint,
                "keys": list(vectors),
                "vectors": list(vectors.values()),
            },
        ),
    )


async def note_embedded(
    database: AsyncDatabase,
    tenant_id: str,
    project_id: str,
    namespace: str,
    fingerprint: str,
    upto: datetime,
) -> None:
    """Every name that was written until then has its vector."""
    await database.execute(
        tenant_id,
        (
            "update memory_namespaces set embedded_at = %s, embedded_with = %s"
            " where project_id = %s and namespace = %s",
            [upto, fingerprint, project_id, namespace],
        ),
    )


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


def believed_ids(connection: Transaction, fact_ids: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Those of the facts that are believed."""
    rows = connection.execute(
        "select f.fact_id from unnest(%s::uuid[]) as k(id) cross join lateral ("
        "select fact_id from graph_facts where fact_id = k.id and closed_at is null offset 0) f",
        [list(fact_ids)],
    ).fetchall()
    return {row["fact_id"] for row in rows}


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
    """Facts of a memory that were told in this session only, and how many others told too."""
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


def promoted_into(connection: Transaction, fact_ids: Sequence[uuid.UUID]) -> list[uuid.UUID]:
    """Facts of one session that ended because these say the same to every session."""
    rows = connection.execute(
        "select distinct fact_id from graph_facts where closing = 'promoted'"
        " and closed_by = any(%s::text[])",
        [[str(fact) for fact in fact_ids]],
    ).fetchall()
    return [row["fact_id"] for row in rows]


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
    connection.execute(
        "create temp table if not exists told_facts (like graph_facts) on commit drop"
    )
    connection.execute("truncate told_facts")
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
