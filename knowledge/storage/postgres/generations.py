"""Generations: where the items of an index lie, and how far each has come."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from psycopg import Connection

from knowledge.model.collection import Collection
from knowledge.model.revision import Generation
from knowledge.storage.postgres.database import Row

_GENERATION = (
    "generation_id, tenant_id, collection_id, backend, class_name, backend_tenant,"
    " embedding_profile, created_rev, applied_rev, state, items, acl_rev, rebuild_id"
)
POSTGRES = "postgres"


def serving_generation(
    connection: Connection[Row], collection: Collection, *, in_postgres: bool = False
) -> Generation | None:
    """The generation of the hybrid index, or of the kinds in PostgreSQL, that serves."""
    row = connection.execute(
        f"select {_GENERATION} from generations where collection_id = %s and state = 'serving'"
        " and (backend = %s) = %s",
        [collection.collection_id, POSTGRES, in_postgres],
    ).fetchone()
    return Generation(**row) if row else None


def building_generation(
    connection: Connection[Row],
    collection: Collection,
    *,
    backend: str,
    class_name: str,
    rebuild_id: uuid.UUID | None = None,
) -> Generation | None:
    """The unfinished generation of a rebuild, or (None) of the publish path."""
    row = connection.execute(
        f"select {_GENERATION} from generations where collection_id = %s and backend = %s"
        " and class_name = %s and state = 'building' and rebuild_id is not distinct from %s"
        " order by created_at desc limit 1",
        [collection.collection_id, backend, class_name, rebuild_id],
    ).fetchone()
    return Generation(**row) if row else None


def generations_in(
    connection: Connection[Row], collection: Collection, *, backend: str, states: Sequence[str]
) -> list[Generation]:
    """The collection's generations of a backend in these states, oldest first."""
    rows = connection.execute(
        f"select {_GENERATION} from generations where collection_id = %s and backend = %s"
        " and state = any(%s) order by created_at",
        [collection.collection_id, backend, list(states)],
    ).fetchall()
    return [Generation(**row) for row in rows]


def add_generation(connection: Connection[Row], generation: Generation) -> None:
    connection.execute(
        f"insert into generations ({_GENERATION})"
        " values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        [
            generation.generation_id,
            generation.tenant_id,
            generation.collection_id,
            generation.backend,
            generation.class_name,
            generation.backend_tenant,
            generation.embedding_profile,
            generation.created_rev,
            generation.applied_rev,
            generation.state,
            generation.items,
            generation.acl_rev,
            generation.rebuild_id,
        ],
    )


def restart_generation(connection: Connection[Row], generation: Generation) -> None:
    """Move a generation that nothing was applied to, to another start."""
    connection.execute(
        "update generations set created_rev = %s where generation_id = %s and applied_rev = 0",
        [generation.created_rev, generation.generation_id],
    )


def set_applied(
    connection: Connection[Row], generation: Generation, revision: int, *, items: int
) -> None:
    """The generation has reached ``revision`` and then holds ``items`` versions."""
    connection.execute(
        "update generations set applied_rev = %s, items = %s where generation_id = %s"
        " and applied_rev <= %s",
        [revision, items, generation.generation_id, revision],
    )


def move_applied(connection: Connection[Row], generation: Generation, revision: int) -> None:
    """The generation stands for ``revision`` too, in which nothing differs."""
    connection.execute(
        "update generations set applied_rev = %s where generation_id = %s",
        [revision, generation.generation_id],
    )


def set_acl_applied(connection: Connection[Row], generation: Generation, revision: int) -> None:
    """ACL changes up to ``revision`` have reached a generation that is, or is about to be, retired."""
    connection.execute(
        "update generations set acl_rev = greatest(acl_rev, %s) where generation_id = %s",
        [revision, generation.generation_id],
    )


def set_collected(connection: Connection[Row], generation: Generation) -> None:
    """Its physical storage is gone."""
    connection.execute(
        "update generations set state = 'collected', items = 0 where generation_id = %s",
        [generation.generation_id],
    )
