"""Garbage collection in PostgreSQL: which revisions are kept, and what none of them sees.

Everything here runs as the owner: the application role may delete no history.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from psycopg import Connection

from knowledge.model.collection import Collection
from knowledge.storage.postgres.database import Database, Row


@dataclass(frozen=True, slots=True)
class Retention:
    """A revision is kept when it serves, is among the last ``revisions`` or is younger than
    ``days``. A generation with a share of dead rows above ``dead_share`` (0 to 1), and at least
    ``dead_rows`` of them, is built anew."""

    revisions: int
    days: float
    dead_share: float
    dead_rows: int


@dataclass(frozen=True, slots=True)
class DeadRows:
    """Of the ``items`` of the generation that serves, ``dead`` are not visible at the head."""

    items: int
    dead: int

    def are_too_many(self, retention: Retention) -> bool:
        return self.dead >= retention.dead_rows and self.dead > retention.dead_share * self.items


_FLOOR: Final = """
    select coalesce(min(revision), 0) as floor from (
        select revision, max(built_at) as built_at,
               bool_or(state in ('Ready', 'Rebuilding', 'Degraded')) as serves,
               row_number() over (order by revision desc) as place
        from index_revisions
        where collection_id = %(collection)s and built_at is not null
        group by revision
    ) served
    where serves or place <= %(revisions)s or built_at > now() - %(days)s * interval '1 day'
"""
"""The oldest revision that is kept; 0 as long as nothing serves."""


def mark(
    connection: Connection[Row], collection: Collection, retention: Retention
) -> tuple[int, list[Row]]:
    """Mark the revisions that are kept no longer: a query that pins one is refused from now on.

    Returns the oldest revision kept, and those marked.
    """
    values = {
        "collection": collection.collection_id,
        "revisions": retention.revisions,
        "days": retention.days,
    }
    row = connection.execute(_FLOOR, values).fetchone()
    assert row is not None
    floor = int(row["floor"])
    marked = connection.execute(
        "update index_revisions set collected_at = now()"
        " where collection_id = %s and revision < %s and state = 'Retired'"
        " and collected_at is null returning kind, revision",
        [collection.collection_id, floor],
    ).fetchall()
    return floor, marked


def age_of_marks_s(owner: Database, collection: Collection) -> float | None:
    """Seconds since the last revision was marked; None when none ever was."""
    with owner.transaction() as connection:
        row = connection.execute(
            "select extract(epoch from now() - max(collected_at)) as age from index_revisions"
            " where collection_id = %s",
            [collection.collection_id],
        ).fetchone()
    return float(row["age"]) if row and row["age"] is not None else None


_LEFT_OVER: Final = """
    g.state = 'building' and (
        exists (select from rebuilds b where b.rebuild_id = g.rebuild_id
                and b.state not in ('requested', 'building'))
        or exists (select from generations younger where younger.collection_id = g.collection_id
                   and younger.backend <> 'postgres' and younger.created_at > g.created_at
                   and (younger.rebuild_id = g.rebuild_id and younger.state = 'building'
                        or g.rebuild_id is null and younger.state = 'serving'))
    ) and g.backend <> 'postgres'
"""
"""Generations g that are never finished: those of ended rebuilds, and those that a killed run, or
one of an older program, left for a younger one."""


def unread_generations(owner: Database, collection: Collection) -> list[uuid.UUID]:
    """Retired generations whose revisions are all collected, and those left over unfinished."""
    with owner.transaction() as connection:
        rows = connection.execute(
            "select g.generation_id from generations g where g.collection_id = %s and ("
            " g.state = 'retired' and not exists (select from index_revisions r"
            "  where r.generation_id = g.generation_id and r.built_at is not null"
            "  and r.collected_at is null)"
            f" or {_LEFT_OVER})"
            " order by g.created_at",
            [collection.collection_id],
        ).fetchall()
    return [row["generation_id"] for row in rows]


def unseen_ids(
    owner: Database, collection: Collection, floor: int, *, batch: int = 1000
) -> Iterator[list[uuid.UUID]]:
    """Batches of chunk versions that no revision from ``floor`` on sees, by id."""
    last = uuid.UUID(int=0)
    while True:
        with owner.transaction() as connection:
            rows = connection.execute(
                "select object_id from chunk_versions"
                " where collection_id = %s and to_rev <= %s and object_id > %s"
                " order by object_id limit %s",
                [collection.collection_id, floor, last, batch],
            ).fetchall()
        if not rows:
            return
        last = rows[-1]["object_id"]
        yield [row["object_id"] for row in rows]


def delete_unseen(connection: Connection[Row], collection: Collection, floor: int) -> int:
    """Delete what no revision from ``floor`` on reads. Returns how many chunk versions."""
    values = {"c": collection.collection_id, "floor": floor}
    connection.execute(
        "delete from metadata_items m using chunk_versions v where m.object_id = v.object_id"
        " and v.collection_id = %(c)s and v.to_rev <= %(floor)s",
        values,
    )
    deleted = connection.execute(
        "delete from chunk_versions where collection_id = %(c)s and to_rev <= %(floor)s", values
    ).rowcount
    older = (
        "from_rev < (select max(from_rev) from term_statistics"
        " where collection_id = %(c)s and from_rev <= %(floor)s)"
    )
    for table in ("term_frequencies", "term_statistics"):
        connection.execute(f"delete from {table} where collection_id = %(c)s and {older}", values)
    connection.execute(
        "delete from source_versions old where old.collection_id = %(c)s and exists ("
        " select from source_versions newer where newer.collection_id = old.collection_id"
        " and newer.source_id = old.source_id and newer.revision > old.revision"
        " and newer.revision <= %(floor)s)",
        values,
    )
    connection.execute(
        "update generations g set items = (select count(*) from chunk_versions v"
        " where v.collection_id = g.collection_id and v.from_rev <= g.applied_rev"
        " and v.to_rev > g.created_rev)"
        " where g.collection_id = %(c)s and g.state <> 'collected' and g.applied_rev > 0",
        values,
    )
    connection.execute(
        "update collections set collected_rev = greatest(collected_rev, %(floor)s)"
        " where collection_id = %(c)s",
        values,
    )
    return deleted


def dead_rows(connection: Connection[Row], collection: Collection) -> DeadRows:
    """How much of the serving hybrid generation is history."""
    row = connection.execute(
        "select coalesce(max(g.items), 0) as items,"
        " greatest(coalesce(max(g.items), 0) - max(c.open_chunks), 0) as dead"
        " from collections c left join generations g on g.collection_id = c.collection_id"
        " and g.state = 'serving' and g.backend <> 'postgres' where c.collection_id = %s",
        [collection.collection_id],
    ).fetchone()
    assert row is not None
    return DeadRows(int(row["items"]), int(row["dead"]))


def due(owner: Database, retention: Retention) -> list[str]:
    """Partitions with something to collect or to build anew."""
    with owner.transaction() as connection:
        rows = connection.execute(
            "select c.tenant_id || '.' || c.slug as partition from collections c"
            f" cross join lateral ({_FLOOR.replace('%(collection)s', 'c.collection_id')}) f"
            " left join generations g on g.collection_id = c.collection_id"
            " and g.state = 'serving' and g.backend <> 'postgres'"
            " where exists (select from index_revisions r"
            "  where r.collection_id = c.collection_id and r.built_at is not null"
            "  and r.revision >= c.collected_rev and r.revision < f.floor)"
            " or g.items - c.open_chunks >= %(dead_rows)s"
            "  and g.items - c.open_chunks > %(dead_share)s * g.items"
            "  and not exists (select from rebuilds b where b.collection_id = c.collection_id"
            "   and b.state in ('requested', 'building'))"
            " or exists (select from generations g where g.collection_id = c.collection_id"
            f"  and {_LEFT_OVER})"
            " order by 1",
            {
                "revisions": retention.revisions,
                "days": retention.days,
                "dead_rows": retention.dead_rows,
                "dead_share": retention.dead_share,
            },
        ).fetchall()
    return [row["partition"] for row in rows]
