"""The relations that checks select from, on an in-memory DuckDB."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa

from dbt_like_checks.errors import UnreadableRelation

_SETTINGS: Final[dict[str, str | bool | int | float | list[str]]] = {
    # A missing extension must be an error, not a download.
    "autoinstall_known_extensions": False,
}


@contextmanager
def open_parquet(
    files: Mapping[str, Sequence[Path | str]], *, tables: Mapping[str, pa.Table] | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a connection where each name is a relation over its Parquet files or its table.

    The files of one relation have the same columns. The connection's time zone is UTC; it reads
    these files and no others, and nothing can be installed or configured through it.

    Raises `UnreadableRelation` for a relation without files, a file that is missing or is not
    Parquet, and a name given as files and as a table.
    """
    tables = tables or {}
    if both := sorted(files.keys() & tables.keys()):
        raise UnreadableRelation(f"relation {both[0]!r} is given as files and as a table")
    with duckdb.connect(":memory:", config=_SETTINGS) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, table in tables.items():
            connection.register(name, table)
        for name, paths in files.items():
            _create_view(connection, name, [str(path) for path in paths])
        _confine(connection, [str(path) for paths in files.values() for path in paths])
        yield connection


def _create_view(connection: duckdb.DuckDBPyConnection, name: str, paths: list[str]) -> None:
    if not paths:
        raise UnreadableRelation(
            f"relation {name!r} has no files; give an empty table with its columns instead"
        )
    patterns = [_literal(path) for path in paths]
    try:
        # Partition values in folder names are not columns of the data.
        relation = connection.read_parquet(patterns, hive_partitioning=False)
        relation.create_view(name)
    except duckdb.Error as error:
        first_line = str(error).splitlines()[0]
        raise UnreadableRelation(f"relation {name!r} cannot be read: {first_line}") from error


def _literal(path: str) -> str:
    """The path as a pattern that matches only itself."""
    return re.sub(r"([\[*?])", r"[\1]", path)


def _confine(connection: duckdb.DuckDBPyConnection, paths: list[str]) -> None:
    # A view is checked by its pattern, then by the path that the pattern finds.
    allowed = [*paths, *map(_literal, paths)]
    connection.execute("SET allowed_paths = $1", [allowed])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
