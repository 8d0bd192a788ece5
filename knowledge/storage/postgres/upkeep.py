"""What makes freshly written rows as fast to find as old ones, before a revision serves.

Autovacuum would do it too, a minute later: until then every search reads the new entries of the
GIN indexes one by one, and plans by the statistics of a smaller table.
"""

from __future__ import annotations

from typing import Final

from psycopg import sql

from knowledge.storage.postgres.database import Database

_GIN_INDEXES: Final = ("chunk_versions_terms", "metadata_items_terms")
_TABLES: Final = ("chunk_versions", "metadata_items", "term_frequencies")
ANALYSED_FROM: Final = 1000
"""Rows written at once from which on statistics are taken anew (half a second)."""


def make_fast(owner: Database, written: int) -> None:
    """Move what was just written into the GIN indexes; after ``written`` many rows also analyse."""
    with owner.transaction() as connection:
        for index in _GIN_INDEXES:
            connection.execute("select gin_clean_pending_list(%s::regclass)", [index])
        if written >= ANALYSED_FROM:
            for table in _TABLES:
                connection.execute(sql.SQL("analyze {}").format(sql.Identifier(table)))
