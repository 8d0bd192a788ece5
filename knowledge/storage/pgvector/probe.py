"""Whether PostgreSQL answers, and with which pgvector."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from knowledge.errors import DatabaseUnavailable, IndexUnavailable
from knowledge.storage.postgres.database import Database

_VERSION: Final = """
    select format('PostgreSQL %s / pgvector %s', split_part(current_setting('server_version'), ' ', 1),
                  (select extversion from pg_extension where extname = 'vector')) as version
"""


def server_version(database: Database) -> str:
    """E.g. ``PostgreSQL 18.4 / pgvector 0.8.5``. Raises `IndexUnavailable`."""
    with translated(), database.transaction() as connection:
        [found] = connection.execute(_VERSION).fetchall()
    return str(found["version"])


@contextmanager
def translated() -> Iterator[None]:
    """A database that is away is, to whoever asks this backend, an index that is away."""
    try:
        yield
    except DatabaseUnavailable as error:
        raise IndexUnavailable(error.message) from error
