"""Vectors of the names of memories: which are stored, and which names lack one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from knowledge.storage.postgres.database import AsyncDatabase, Row
from knowledge.storage.postgres.facts.memories import OF_MEMORY
from knowledge.storage.postgres.facts.writing import scope_key

_VECTORS: Final = (
    "select name_key, vector, embedded_at from memory_vectors where project_id = %(project)s"
    " and namespace = %(namespace)s and fingerprint = %(fingerprint)s and embedded_at > %(after)s"
)


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
            f" where {OF_MEMORY} and f.closed_at is null and not exists ("
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
