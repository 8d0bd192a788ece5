"""Rebuilds: generations asked for beside the serving one, and how far each has come."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Literal

from psycopg import Connection

from knowledge.errors import Conflict, NotFound, RebuildCancelled
from knowledge.model.collection import Collection
from knowledge.storage.postgres.database import Database, Row

Reason = Literal["requested", "profile", "dead_rows"]
MAX_BACKOFF_S: Final = 300
_COLUMNS: Final = (
    "r.rebuild_id, r.tenant_id, r.collection_id, r.reason, r.embedding_profile, r.state,"
    " r.requested_by, r.requested_at, r.started_at, r.finished_at, r.attempts, r.items_written,"
    " r.revision, r.error"
)


class RebuildState(StrEnum):
    REQUESTED = "requested"
    BUILDING = "building"
    SWITCHED = "switched"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_active(self) -> bool:
        return self in (RebuildState.REQUESTED, RebuildState.BUILDING)


@dataclass(frozen=True, slots=True)
class Rebuild:
    """One request to build a generation with ``embedding_profile`` (None: no model).

    ``revision`` is the one that serves from it, once ``state`` is switched; ``error`` is why the
    last attempt failed.
    """

    rebuild_id: uuid.UUID
    tenant_id: str
    collection_id: uuid.UUID
    reason: Reason
    embedding_profile: str | None
    state: RebuildState
    requested_by: str
    requested_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    attempts: int
    items_written: int
    revision: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class DueRebuild:
    """A rebuild to start: its partition, and how often it was tried."""

    rebuild_id: uuid.UUID
    partition: str
    attempts: int


def request(
    connection: Connection[Row],
    collection: Collection,
    *,
    rebuild_id: uuid.UUID,
    reason: Reason,
    profile: str | None,
    requested_by: str,
) -> Rebuild:
    """Ask for a rebuild. The same id again, or one that is active already, changes nothing.

    Raises `Conflict` while one with another profile is active.
    """
    known = connection.execute(
        f"select {_COLUMNS} from rebuilds r where rebuild_id = %s", [rebuild_id]
    ).fetchone()
    if known is not None:
        return _rebuild(known)
    connection.execute(
        "insert into rebuilds (rebuild_id, tenant_id, collection_id, reason, embedding_profile,"
        " requested_by) values (%s, %s, %s, %s, %s, %s)"
        " on conflict (collection_id) where state in ('requested', 'building') do nothing",
        [
            rebuild_id,
            collection.tenant_id,
            collection.collection_id,
            reason,
            profile,
            requested_by,
        ],
    )
    found = active(connection, collection)
    if found is None or found.embedding_profile != profile:
        what = f"rebuild {found.rebuild_id} to {found.embedding_profile}" if found else "another"
        raise Conflict(
            f"{what} of collection {collection.slug} is at work: wait for it, or cancel it"
        )
    return found


def active(connection: Connection[Row], collection: Collection) -> Rebuild | None:
    """The collection's rebuild that is requested or at work; there is at most one."""
    row = connection.execute(
        f"select {_COLUMNS} from rebuilds r"
        " where collection_id = %s and state in ('requested', 'building')",
        [collection.collection_id],
    ).fetchone()
    return _rebuild(row) if row else None


def find(app: Database, tenant_id: str, rebuild_id: uuid.UUID) -> Rebuild:
    """Raises `NotFound`, also for one of another tenant."""
    with app.tenant(tenant_id) as connection:
        row = connection.execute(
            f"select {_COLUMNS} from rebuilds r where rebuild_id = %s and tenant_id = %s",
            [rebuild_id, tenant_id],
        ).fetchone()
    if row is None:
        raise NotFound(f"there is no rebuild {rebuild_id}")
    return _rebuild(row)


def latest(app: Database, collection: Collection) -> Rebuild | None:
    """The collection's rebuild asked for last."""
    with app.tenant(collection.tenant_id) as connection:
        row = connection.execute(
            f"select {_COLUMNS} from rebuilds r where collection_id = %s"
            " order by requested_at desc limit 1",
            [collection.collection_id],
        ).fetchone()
    return _rebuild(row) if row else None


def claim(connection: Connection[Row], rebuild: Rebuild) -> None:
    """Count an attempt and set when the next may be. Raises `RebuildCancelled`."""
    row = connection.execute(
        "update rebuilds set state = 'building', attempts = attempts + 1, error = null,"
        " started_at = coalesce(started_at, now()),"
        " next_attempt_at = now() + least(%s, 2 ^ attempts) * interval '1 second'"
        " where rebuild_id = %s and state in ('requested', 'building') returning 1",
        [MAX_BACKOFF_S, rebuild.rebuild_id],
    ).fetchone()
    if row is None:
        raise RebuildCancelled(rebuild_id=str(rebuild.rebuild_id))


def note_written(app: Database, rebuild: Rebuild, items: int) -> None:
    """Note progress. Raises `RebuildCancelled` when the rebuild was cancelled meanwhile."""
    with app.tenant(rebuild.tenant_id) as connection:
        row = connection.execute(
            "update rebuilds set items_written = items_written + %s"
            " where rebuild_id = %s and state = 'building' returning 1",
            [items, rebuild.rebuild_id],
        ).fetchone()
    if row is None:
        raise RebuildCancelled(rebuild_id=str(rebuild.rebuild_id))


def note_switched(connection: Connection[Row], rebuild: Rebuild, revision: int) -> None:
    """In the transaction of the switch. Raises `RebuildCancelled`: then nothing is switched."""
    row = connection.execute(
        "update rebuilds set state = 'switched', revision = %s, finished_at = now(), error = null"
        " where rebuild_id = %s and state = 'building' returning 1",
        [revision, rebuild.rebuild_id],
    ).fetchone()
    if row is None:
        raise RebuildCancelled(rebuild_id=str(rebuild.rebuild_id))


def note_failure(
    connection: Connection[Row], rebuild: Rebuild, error: str, *, max_attempts: int
) -> RebuildState:
    """Keep why the attempt failed; it is tried again until its attempts are used up."""
    row = connection.execute(
        "update rebuilds set error = %s,"
        " state = case when attempts >= %s then 'failed' else 'requested' end,"
        " finished_at = case when attempts >= %s then now() end"
        " where rebuild_id = %s and state in ('requested', 'building') returning state",
        [error[:2000], max_attempts, max_attempts, rebuild.rebuild_id],
    ).fetchone()
    return RebuildState(row["state"]) if row else RebuildState.CANCELLED


def cancel(connection: Connection[Row], rebuild_id: uuid.UUID) -> bool:
    """End an active rebuild; False for one that has ended already.

    Whoever builds it notices at its next batch, and at the latest in the switch.
    """
    row = connection.execute(
        "update rebuilds set state = 'cancelled', finished_at = now()"
        " where rebuild_id = %s and state in ('requested', 'building') returning 1",
        [rebuild_id],
    ).fetchone()
    return row is not None


def due(owner: Database, *, max_attempts: int) -> list[DueRebuild]:
    """Active rebuilds of every tenant whose back-off is over, oldest first."""
    with owner.transaction() as connection:
        rows = connection.execute(
            "select r.rebuild_id, c.tenant_id || '.' || c.slug as partition, r.attempts"
            " from rebuilds r join collections c using (collection_id)"
            " where r.state in ('requested', 'building') and r.next_attempt_at <= now()"
            " and r.attempts < %s order by r.requested_at",
            [max_attempts],
        ).fetchall()
    return [DueRebuild(**row) for row in rows]


def _rebuild(row: Row) -> Rebuild:
    values: dict[str, Any] = {**row, "state": RebuildState(row["state"])}
    return Rebuild(**values)
