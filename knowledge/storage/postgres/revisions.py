"""Generations and index revisions: what is being built, what serves, and the switch."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final

from psycopg import Connection

from knowledge.model.collection import Collection
from knowledge.model.event import OutboundEvent
from knowledge.model.revision import Generation, IndexKind, IndexRevision, IndexState, next_state
from knowledge.storage.postgres.database import Database, Row
from knowledge.storage.postgres.outbox import emit

_IN_HYBRID_INDEX: Final = (IndexKind.VECTOR, IndexKind.FULL_TEXT)


def start_building(
    connection: Connection[Row],
    collection: Collection,
    generation: Generation,
    kinds: Sequence[IndexKind],
    revision: int,
) -> None:
    """Note the revisions being built; a failed build's row is taken up again."""
    for kind in kinds:
        vector = kind is IndexKind.VECTOR
        connection.execute(
            "insert into index_revisions (index_revision_id, tenant_id, collection_id, kind,"
            " revision, embedding_profile_version, vector_profile, state, generation_id)"
            " values (%s, %s, %s, %s, %s, %s, %s, 'Building', %s)"
            " on conflict (collection_id, kind, revision) do update"
            " set error = null, generation_id = excluded.generation_id"
            " where index_revisions.state = 'Building'",
            [
                uuid.uuid4(),
                collection.tenant_id,
                collection.collection_id,
                kind,
                revision,
                generation.embedding_profile if vector else None,
                generation.backend if vector else None,
                generation.generation_id,
            ],
        )


def record_build_error(app: Database, collection: Collection, revision: int, error: str) -> None:
    with app.tenant(collection.tenant_id) as connection:
        connection.execute(
            "update index_revisions set error = %s"
            " where collection_id = %s and revision = %s and state = 'Building'",
            [error[:2000], collection.collection_id, revision],
        )


def served_revision(connection: Connection[Row], collection: Collection, kind: IndexKind) -> int:
    """The revision of a kind that serves; 0 before the first switch."""
    row = connection.execute(
        "select revision from index_revisions where collection_id = %s and kind = %s"
        " and state in ('Ready', 'Rebuilding', 'Degraded')",
        [collection.collection_id, kind],
    ).fetchone()
    return int(row["revision"]) if row else 0


def serving_revisions(app: Database, collection: Collection) -> list[IndexRevision]:
    """The revision of each kind that serves now, by kind; empty before the first switch."""
    with app.tenant(collection.tenant_id) as connection:
        rows = connection.execute(
            "select index_revision_id, tenant_id, collection_id, kind, revision,"
            " embedding_profile_version, vector_profile, state, item_count,"
            " built_from_snapshots, built_at from index_revisions"
            " where collection_id = %s and state in ('Ready', 'Rebuilding', 'Degraded')"
            " order by kind",
            [collection.collection_id],
        ).fetchall()
    return [
        IndexRevision(
            **{
                **row,
                "kind": IndexKind(row["kind"]),
                "state": IndexState(row["state"]),
                "built_from_snapshots": tuple(row["built_from_snapshots"]),
            }
        )
        for row in rows
    ]


# --- the switch -------------------------------------------------------------------------


def switch(
    connection: Connection[Row],
    collection: Collection,
    revision: int,
    item_count: int,
    generations: Sequence[uuid.UUID],
) -> list[Row]:
    """Make what ``generations`` built at ``revision`` (the head) Ready and retire the ones before.

    A row of another generation is what a killed run left of a profile given up since: it never
    serves. While a rebuild is at work they go on to Rebuilding, which serves as well. Runs in the
    caller's transaction; returns the new Ready rows. A kind whose revision already serves is left
    alone, so a second call changes nothing.
    """
    built = connection.execute(
        "select index_revision_id, tenant_id, collection_id, kind, revision, generation_id"
        " from index_revisions"
        " where collection_id = %s and revision = %s and state = 'Building'"
        " and generation_id = any(%s) order by kind",
        [collection.collection_id, revision, list(generations)],
    ).fetchall()
    for row in built:
        _retire_serving(connection, collection, row["kind"])
        next_state(IndexState.BUILDING, "BuildCompleted")
        connection.execute(
            "update index_revisions set state = 'Ready', built_at = now(), error = null,"
            " item_count = %s, built_from_snapshots = coalesce((select array_agg(snapshot_id)"
            " from snapshots s where s.collection_id = %s and s.open_chunks > 0), '{}')"
            " where index_revision_id = %s",
            [item_count, collection.collection_id, row["index_revision_id"]],
        )
        _emit_revision(connection, "IndexRevisionReady", row)
    kinds = {row["kind"] for row in built}
    if IndexKind.FULL_TEXT in kinds and IndexKind.VECTOR not in kinds:
        # The collection gave up its profile: the old vectors must not answer beside newer words.
        _retire_serving(connection, collection, IndexKind.VECTOR)
    _switch_generations(connection, collection, [row["generation_id"] for row in built])
    connection.execute(
        "update index_revisions set error = coalesce(error, %s)"
        " where collection_id = %s and state = 'Building' and revision < %s",
        [f"superseded by revision {revision}", collection.collection_id, revision],
    )
    if _is_rebuilding(connection, collection):
        mark_rebuilding(connection, collection)
    return built


def _is_rebuilding(connection: Connection[Row], collection: Collection) -> bool:
    row = connection.execute(
        "select 1 from rebuilds where collection_id = %s and state = 'building'",
        [collection.collection_id],
    ).fetchone()
    return row is not None


def _retire_serving(connection: Connection[Row], collection: Collection, kind: str) -> None:
    """The old revision passes Rebuilding or Degraded → Ready → Retired in this transaction."""
    old = connection.execute(
        "select index_revision_id, tenant_id, collection_id, kind, revision, state"
        " from index_revisions"
        " where collection_id = %s and kind = %s and state in ('Ready', 'Rebuilding', 'Degraded')"
        " for update",
        [collection.collection_id, kind],
    ).fetchone()
    if old is None:
        return
    state = IndexState(old["state"])
    if state is not IndexState.READY:
        trigger = "BuildCompleted" if state is IndexState.REBUILDING else "BackendRecovered"
        state = next_state(state, trigger)
    connection.execute(
        "update index_revisions set state = %s, retired_at = now() where index_revision_id = %s",
        [next_state(state, "NextRevisionReady"), old["index_revision_id"]],
    )
    _emit_revision(connection, "IndexRevisionRetired", old)


def _switch_generations(
    connection: Connection[Row], collection: Collection, generations: Sequence[uuid.UUID]
) -> None:
    connection.execute(
        "update generations old set state = 'retired', acl_rev = old.applied_rev"
        " from generations new"
        " where new.generation_id = any(%s) and old.collection_id = %s and old.state = 'serving'"
        " and old.generation_id <> all(%s)"
        " and (old.backend = 'postgres') = (new.backend = 'postgres')",
        [list(generations), collection.collection_id, list(generations)],
    )
    connection.execute(
        "update generations set state = 'serving' where generation_id = any(%s)",
        [list(generations)],
    )


# --- rebuilds ----------------------------------------------------------------------------


def mark_rebuilding(connection: Connection[Row], collection: Collection) -> None:
    """What serves of the hybrid index goes on serving while its successor is built."""
    _move_own(connection, collection, IndexState.READY, "RebuildRequested")


def mark_rebuilt(connection: Connection[Row], collection: Collection) -> None:
    """The rebuild ended without a switch: what served is Ready as before."""
    _move_own(connection, collection, IndexState.REBUILDING, "BuildCompleted")


def _move_own(
    connection: Connection[Row], collection: Collection, state: IndexState, trigger: str
) -> None:
    connection.execute(
        "update index_revisions set state = %s"
        " where collection_id = %s and kind = any(%s) and state = %s",
        [
            next_state(state, trigger),
            collection.collection_id,
            list(_IN_HYBRID_INDEX),
            state,
        ],
    )


# --- health of the backend --------------------------------------------------------------


def mark_degraded(connection: Connection[Row]) -> list[Row]:
    """What reads the hybrid index becomes Degraded, in all tenants; returns those revisions.

    ``connection`` is the owner's. A second call changes nothing.
    """
    return _move(connection, IndexState.READY, "BackendUnhealthy", "IndexDegraded")


def mark_recovered(connection: Connection[Row]) -> list[Row]:
    """Degraded revisions become Ready again and are announced again; returns them."""
    return _move(connection, IndexState.DEGRADED, "BackendRecovered", "IndexRevisionReady")


def count_in_state(owner: Database, state: IndexState) -> int:
    """How many revisions of the hybrid index are in a state, in all tenants."""
    with owner.transaction() as connection:
        row = connection.execute(
            "select count(*) as n from index_revisions where kind = any(%s) and state = %s",
            [list(_IN_HYBRID_INDEX), state],
        ).fetchone()
        assert row is not None
        return int(row["n"])


def _move(
    connection: Connection[Row], state: IndexState, trigger: str, event_type: str
) -> list[Row]:
    rows = connection.execute(
        "update index_revisions set state = %s where kind = any(%s) and state = %s"
        " returning index_revision_id, tenant_id, collection_id, kind, revision",
        [next_state(state, trigger), list(_IN_HYBRID_INDEX), state],
    ).fetchall()
    for row in rows:
        _emit_revision(connection, event_type, row)
    return rows


# --- events -----------------------------------------------------------------------------

_PAYLOADS: Final = {
    "IndexRevisionReady": ("collectionId", "kind", "revision"),
    "IndexRevisionRetired": ("collectionId",),
    "IndexDegraded": ("kind",),
}


def _emit_revision(connection: Connection[Row], event_type: str, row: Row) -> None:
    facts = {
        "collectionId": str(row["collection_id"]),
        "kind": row["kind"],
        "revision": row["revision"],
    }
    payload: dict[str, Any] = {
        "indexRevisionId": str(row["index_revision_id"]),
        "tenantId": row["tenant_id"],
    } | {name: facts[name] for name in _PAYLOADS[event_type]}
    emit(
        connection,
        OutboundEvent(event_type, row["tenant_id"], str(row["index_revision_id"]), payload),
    )
