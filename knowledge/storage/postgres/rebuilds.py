"""Rebuilds: generations asked for beside the serving one, and how far each has come."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Literal

from psycopg import Connection

from knowledge.errors import Conflict, NotFound, RebuildCancelled, RebuildHeld
from knowledge.model.collection import Collection
from knowledge.storage.postgres.database import Database, Row

Reason = Literal["requested", "profile", "dead_rows"]
MAX_BACKOFF_S: Final = 300
_PAUSE: Final = f"least({MAX_BACKOFF_S}, 2 ^ least(claims, 20)) * interval '1 second'"
_COLUMNS: Final = (
    "r.rebuild_id, r.tenant_id, r.collection_id, r.reason, r.embedding_profile, r.state,"
    " r.requested_by, r.requested_at, r.started_at, r.finished_at, r.claims, r.attempts,"
    " r.items_written,"
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

    ``claims`` counts how often a builder took it up, and is the builder's fencing token;
    ``attempts`` counts those that failed or whose process ended. ``revision`` is the one that
    serves from it, once ``state`` is switched; ``error`` is why the last attempt failed.
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
    claims: int
    attempts: int
    items_written: int
    revision: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class DueRebuild:
    """A rebuild to start: its partition, and how often it was taken up."""

    rebuild_id: uuid.UUID
    tenant_id: str
    partition: str
    claims: int


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

    Raises `Conflict` while one with another profile is active, and when the id stands for one.
    """
    row = connection.execute(
        f"select {_COLUMNS} from rebuilds r where rebuild_id = %s", [rebuild_id]
    ).fetchone()
    if row is not None:
        known = _rebuild(row)
        if known.embedding_profile != profile:
            raise Conflict(
                f"this key was used for rebuild {rebuild_id}, to"
                f" {known.embedding_profile or 'no model'}: use another key"
            )
        return known
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
        named = (found.embedding_profile or "no model") if found else ""
        what = f"rebuild {found.rebuild_id} to {named}" if found else "another"
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


def claim(connection: Connection[Row], rebuild: Rebuild) -> Rebuild:
    """Take it up: whoever did before is fenced off. One that is building still has lost its
    process, which counts as an attempt. Raises `RebuildCancelled` when it has ended.
    """
    row = connection.execute(
        "update rebuilds r set state = 'building', claims = claims + 1,"
        " attempts = attempts + (state = 'building')::integer,"
        " started_at = coalesce(started_at, now()), next_attempt_at = now() + "
        + _PAUSE
        + f" where rebuild_id = %s and state in ('requested', 'building') returning {_COLUMNS}",
        [rebuild.rebuild_id],
    ).fetchone()
    if row is None:
        raise _ended(connection, rebuild)
    return _rebuild(row)


def note_written(app: Database, rebuild: Rebuild, items: int) -> None:
    """Note progress. Raises `RebuildCancelled` when it was cancelled meanwhile, `RebuildHeld`
    when another builder has taken it up."""
    with app.tenant(rebuild.tenant_id) as connection:
        _require_mine(
            connection,
            rebuild,
            "update rebuilds set items_written = items_written + %s"
            " where rebuild_id = %s and state = 'building' and claims = %s returning 1",
            items,
        )


def note_switched(connection: Connection[Row], rebuild: Rebuild, revision: int) -> None:
    """In the transaction of the switch. Raises as `note_written`: then nothing is switched."""
    _require_mine(
        connection,
        rebuild,
        "update rebuilds set state = 'switched', revision = %s, finished_at = now(), error = null"
        " where rebuild_id = %s and state = 'building' and claims = %s returning 1",
        revision,
    )


def note_failure(
    connection: Connection[Row], rebuild: Rebuild, error: str, *, counts: bool, max_attempts: int
) -> RebuildState:
    """Keep why the attempt failed; it is tried again until its attempts are used up.

    One that does not count (a server that is away, a collection that is busy) is tried again
    without end, with growing pauses. Changes nothing once somebody else has taken it up.
    """
    row = connection.execute(
        "update rebuilds set error = %(error)s, attempts = attempts + %(counts)s,"
        " state = case when attempts + %(counts)s >= %(max)s then 'failed' else 'requested' end,"
        " finished_at = case when attempts + %(counts)s >= %(max)s then now() end,"
        " next_attempt_at = now() + "
        + _PAUSE
        + " where rebuild_id = %(id)s and state = 'building' and claims = %(claims)s"
        " returning state",
        {
            "error": error[:2000],
            "counts": int(counts),
            "max": max_attempts,
            "id": rebuild.rebuild_id,
            "claims": rebuild.claims,
        },
    ).fetchone()
    return RebuildState(row["state"]) if row else RebuildState.CANCELLED


def _require_mine(connection: Connection[Row], rebuild: Rebuild, query: str, value: int) -> None:
    values = [value, rebuild.rebuild_id, rebuild.claims]
    if connection.execute(query, values).fetchone() is None:
        raise _ended(connection, rebuild)


def _ended(connection: Connection[Row], rebuild: Rebuild) -> RebuildCancelled | RebuildHeld:
    row = connection.execute(
        "select state from rebuilds where rebuild_id = %s", [rebuild.rebuild_id]
    ).fetchone()
    state = RebuildState(row["state"]) if row else RebuildState.CANCELLED
    if state.is_active:
        return RebuildHeld(f"another run has taken up rebuild {rebuild.rebuild_id}")
    return RebuildCancelled(f"rebuild {rebuild.rebuild_id} has ended: it is {state}")


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


def count_claim(app: Database, due: DueRebuild) -> None:
    """Count a run that ended before it took the rebuild up."""
    with app.tenant(due.tenant_id) as connection:
        connection.execute(
            "update rebuilds set claims = claims + 1, next_attempt_at = now() + "
            + _PAUSE
            + " where rebuild_id = %s and claims = %s",
            [due.rebuild_id, due.claims],
        )


def due(owner: Database) -> list[DueRebuild]:
    """Active rebuilds of every tenant whose pause is over, oldest first."""
    with owner.transaction() as connection:
        rows = connection.execute(
            "select r.rebuild_id, r.tenant_id, c.tenant_id || '.' || c.slug as partition, r.claims"
            " from rebuilds r join collections c using (collection_id)"
            " where r.state in ('requested', 'building') and r.next_attempt_at <= now()"
            " order by r.requested_at"
        ).fetchall()
    return [DueRebuild(**row) for row in rows]


def _rebuild(row: Row) -> Rebuild:
    values: dict[str, Any] = {**row, "state": RebuildState(row["state"])}
    return Rebuild(**values)
