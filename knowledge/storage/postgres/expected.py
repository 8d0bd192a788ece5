"""What an index must hold, as PostgreSQL says: the one side of every comparison with a store."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from psycopg import Connection

from knowledge.model.collection import Collection
from knowledge.model.revision import OPEN, Generation
from knowledge.storage.postgres.database import Database, Row
from knowledge.storage.postgres.relations import read_only

_PAGE: Final = 10_000
_FLOOR: Final = """
    select case when bool_or(collected_at is not null)
           then min(revision) filter (where built_at is not null and collected_at is null)
           end as floor
    from knowledge.index_revisions where collection_id = %(c)s
"""
_OWED: Final = """
    select object_id, chunk_id, from_rev, acl,
           case when to_rev <= %(applied)s then to_rev else %(open)s end as to_rev,
           from_rev <= %(applied)s and acl_rev <= %(applied)s
           and (to_rev <= %(applied)s or to_rev = %(open)s) as is_settled,
           from_rev <= %(applied)s and %(applied)s < to_rev as is_visible
    from knowledge.chunk_versions
    where collection_id = %(c)s and to_rev > %(oldest)s and object_id > %(last)s
    order by object_id limit %(n)s
"""


@dataclass(frozen=True, slots=True)
class Owed:
    """The versions that a generation must hold, in id order, as of the clock value it reached.

    ``rows`` are ``{"object_id", "chunk_id", "from_rev", "to_rev", "acl", "is_settled",
    "is_visible"}``, ``to_rev`` open for a later close. What a later revision touches is not
    settled: the index may have it already, or not yet. What was closed up to ``floor`` no revision
    reads any more; it is being collected and is not among the rows.
    """

    floor: int
    rows: Iterator[Row]


@contextmanager
def owed_items(
    app: Database,
    generation: Generation,
    *,
    after: uuid.UUID | None = None,
    limit: int | None = None,
) -> Iterator[Owed]:
    """What the generation must hold from ``after`` (exclusive) on, seen at one point in time."""
    with read_only(app, generation.tenant_id) as connection:
        row = connection.execute(_FLOOR, {"c": generation.collection_id}).fetchone()
        floor = int(row["floor"] or 0) if row else 0
        values = {
            "c": generation.collection_id,
            "applied": generation.applied_rev,
            "oldest": max(generation.created_rev, floor),
            "open": OPEN,
        }
        yield Owed(floor, _pages(connection, values, after or uuid.UUID(int=0), limit))


def _pages(
    connection: Connection[Row], values: Row, last: uuid.UUID, limit: int | None
) -> Iterator[Row]:
    left = limit
    while left is None or left > 0:
        page = _PAGE if left is None else min(left, _PAGE)
        rows = connection.execute(_OWED, {**values, "last": last, "n": page}).fetchall()
        yield from rows
        if len(rows) < page:
            return
        last = rows[-1]["object_id"]
        left = None if left is None else left - len(rows)


def needed_texts(app: Database, collection: Collection, *, after: int) -> list[Row]:
    """Texts of the versions visible at the head and opened after ``after``, each once.

    ``{"text_hash": bytes, "chunk_id"}``, with one of the chunks that have the text.
    """
    with app.tenant(collection.tenant_id) as connection:
        return connection.execute(
            "select distinct on (text_hash) text_hash, chunk_id from chunk_versions"
            " where collection_id = %s and from_rev > %s and to_rev = %s order by text_hash",
            [collection.collection_id, after, OPEN],
        ).fetchall()


def profile_dimension(app: Database, tenant_id: str, profile: str | None) -> int | None:
    """The dimension of a stored profile; None without one."""
    with app.tenant(tenant_id) as connection:
        row: dict[str, Any] | None = connection.execute(
            "select dimension from embedding_profiles where profile = %s", [profile]
        ).fetchone()
    return int(row["dimension"]) if row else None
