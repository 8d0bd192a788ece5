"""The inbox: announced events of every collection, and how far each has come."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import Connection
from psycopg.types.json import Jsonb

from knowledge.model.collection import Collection
from knowledge.storage.postgres.database import Database, Row

MAX_BACKOFF_S = 300


@dataclass(frozen=True, slots=True)
class PendingEvent:
    sequence: int
    tenant_id: str
    collection_id: uuid.UUID
    event_type: str
    payload: Mapping[str, Any]
    attempts: int


@dataclass(frozen=True, slots=True)
class PendingWork:
    """A collection with something to do: the partition, its newest pending event and attempt."""

    partition: str
    tenant_id: str
    collection_id: uuid.UUID
    last_sequence: int
    attempt: int
    lag: int


def receive(
    connection: Connection[Row],
    collection: Collection,
    *,
    event_source: str,
    event_id: str,
    event_type: str,
    payload: Mapping[str, Any],
) -> int:
    """Store an event once; the same (source, id) again returns the first one's sequence."""
    row = connection.execute(
        "insert into inbox"
        " (tenant_id, collection_id, event_source, event_id, event_type, payload)"
        " values (%s, %s, %s, %s, %s, %s)"
        " on conflict (tenant_id, event_source, event_id) do nothing returning sequence",
        [
            collection.tenant_id,
            collection.collection_id,
            event_source,
            event_id,
            event_type,
            Jsonb(dict(payload)),
        ],
    ).fetchone()
    if row is None:
        known = sequence_of(
            connection, collection.tenant_id, event_source=event_source, event_id=event_id
        )
        assert known is not None
        return known
    return int(row["sequence"])


def sequence_of(
    connection: Connection[Row], tenant_id: str, *, event_source: str, event_id: str
) -> int | None:
    """The sequence of an event that was received before; None for a new one."""
    row = connection.execute(
        "select sequence from inbox where tenant_id = %s and event_source = %s and event_id = %s",
        [tenant_id, event_source, event_id],
    ).fetchone()
    return int(row["sequence"]) if row else None


def pending(app: Database, collection: Collection) -> list[PendingEvent]:
    """Events of the collection not yet committed, oldest first."""
    with app.tenant(collection.tenant_id) as connection:
        rows = connection.execute(
            "select sequence, tenant_id, collection_id, event_type, payload, attempts from inbox"
            " where collection_id = %s and state = 'pending' order by sequence",
            [collection.collection_id],
        ).fetchall()
    return [PendingEvent(**row) for row in rows]


def count_attempt(app: Database, collection: Collection) -> None:
    """Count an attempt before it is made, and set when the next may be: exponential back-off."""
    with app.tenant(collection.tenant_id) as connection:
        connection.execute(
            "update inbox set attempts = attempts + 1,"
            " next_attempt_at = now() + least(%s, 2 ^ attempts) * interval '1 second'"
            " where collection_id = %s and state in ('pending', 'committed')",
            [MAX_BACKOFF_S, collection.collection_id],
        )


def reject(app: Database, collection: Collection, sequence: int, error: str) -> None:
    """Settle an event that can never be committed; it stays, with the reason.

    What the publisher believes it has sent is forgotten, so that its next delta is complete.
    """
    with app.tenant(collection.tenant_id) as connection:
        connection.execute(
            "update inbox set state = 'rejected', error = %s, settled_at = now()"
            " where sequence = %s and state = 'pending'",
            [error, sequence],
        )
        connection.execute(
            "delete from published_paths where collection_id = %s", [collection.collection_id]
        )


def commit_events(connection: Connection[Row], sequences: Iterable[int], revision: int) -> None:
    connection.execute(
        "update inbox set state = 'committed', revision = %s, error = null"
        " where sequence = any(%s)",
        [revision, list(sequences)],
    )


def settle_served(connection: Connection[Row], collection_id: uuid.UUID, revision: int) -> None:
    connection.execute(
        "update inbox set state = 'served', settled_at = now()"
        " where collection_id = %s and state = 'committed' and revision <= %s",
        [collection_id, revision],
    )


def event_state(app: Database, tenant_id: str, sequence: int) -> Row:
    """``{"state", "error", "revision", "attempts"}`` of one event."""
    with app.tenant(tenant_id) as connection:
        row = connection.execute(
            "select state, error, revision, attempts from inbox where sequence = %s", [sequence]
        ).fetchone()
        assert row is not None
        return row


def age_s(app: Database, collection: Collection, revision: int) -> float | None:
    """Seconds from the oldest announcement in ``revision`` until it served, or until now."""
    with app.tenant(collection.tenant_id) as connection:
        row = connection.execute(
            "select extract(epoch from max(coalesce(settled_at, now()) - received_at)) as age"
            " from inbox where collection_id = %s and revision = %s",
            [collection.collection_id, revision],
        ).fetchone()
    return float(row["age"]) if row and row["age"] is not None else None


def record_failure(owner: Database, collection_id: uuid.UUID, error: str) -> None:
    """Keep why the last attempt at a collection's pending events failed."""
    with owner.transaction() as connection:
        connection.execute(
            "update inbox set error = %s where collection_id = %s"
            " and state in ('pending', 'committed')",
            [error[:2000], collection_id],
        )


def pending_work(owner: Database, *, max_attempts: int) -> list[PendingWork]:
    """Collections with events to commit, or committed revisions that do not serve yet.

    Only those whose back-off is over and which have attempts left.
    """
    with owner.transaction() as connection:
        rows = connection.execute(
            """
            select c.tenant_id || '.' || c.slug as partition, c.tenant_id, c.collection_id,
                   max(i.sequence) as last_sequence, max(i.attempts) as attempt,
                   c.head_rev - coalesce(min(r.revision), 0) as lag
            from collections c
            join inbox i on i.collection_id = c.collection_id and i.state in ('pending', 'committed')
            left join index_revisions r on r.collection_id = c.collection_id
                 and r.state in ('Ready', 'Rebuilding', 'Degraded')
            group by c.tenant_id, c.slug, c.collection_id, c.head_rev
            having max(i.next_attempt_at) <= now() and min(i.attempts) < %s
            order by max(i.sequence)
            """,
            [max_attempts],
        ).fetchall()
    return [PendingWork(**row) for row in rows]


def given_up(owner: Database, *, max_attempts: int) -> list[str]:
    """Partitions whose pending events have no attempt left."""
    with owner.transaction() as connection:
        rows = connection.execute(
            "select c.tenant_id || '.' || c.slug as partition from collections c"
            " join inbox i using (collection_id) where i.state in ('pending', 'committed')"
            " group by c.collection_id having min(i.attempts) >= %s order by 1",
            [max_attempts],
        ).fetchall()
    return [row["partition"] for row in rows]
