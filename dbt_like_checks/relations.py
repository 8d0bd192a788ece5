"""The relations that checks on Parquet select from, on an in-memory DuckDB."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any, Final

import duckdb
import pyarrow as pa

from dbt_like_checks.check import Parameter
from dbt_like_checks.errors import QueryFailed, UnreadableRelation

_SETTINGS: Final[dict[str, str | bool | int | float | list[str]]] = {
    # A missing extension must be an error, not a download.
    "autoinstall_known_extensions": False,
}

TIMEOUT_S: Final = 60.0
"""How long one SELECT may take, as on PostgreSQL."""

# These say what is wrong with the SQL. The others quote the value that could not be processed.
_MESSAGE_IS_SAFE: Final = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ParserException,
    duckdb.PermissionException,
    duckdb.SyntaxException,
)


class ParquetRelations:
    """`Relations` on DuckDB."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection

    def rows(self, sql: str, parameters: Sequence[Parameter]) -> list[tuple[Any, ...]]:
        """As `Relations.rows`."""
        try:
            statements = self.connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise QueryFailed("a check must be one SELECT")
            with self._interrupted_when_late():
                return self.connection.execute(statements[0], list(parameters)).fetchall()
        except duckdb.InterruptException as error:
            raise QueryFailed(f"not done after {TIMEOUT_S:.0f} s") from error
        except duckdb.Error as error:
            raise QueryFailed(_reason(error)) from error

    @contextmanager
    def _interrupted_when_late(self) -> Iterator[None]:
        timer = Timer(TIMEOUT_S, self.connection.interrupt)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


@contextmanager
def open_parquet(
    files: Mapping[str, Sequence[Path | str]],
    *,
    tables: Mapping[str, pa.Table] | None = None,
    views: Mapping[str, str] | None = None,
    file_names: Collection[str] = (),
) -> Iterator[ParquetRelations]:
    """Open relations: each name over its Parquet files, its table, or its SELECT of the others.

    The files of one relation have the same columns; those in ``file_names`` have ``file_name``,
    the file's name without its folder, as a further one. The time zone is UTC; these files can
    be read and no others, and nothing can be installed or configured.

    Raises `UnreadableRelation` for a relation without files, a file that is missing or is not
    Parquet, and a name given twice.
    """
    tables, views = tables or {}, views or {}
    for given, others in ((files, tables), (files, views), (tables, views)):
        if both := sorted(given.keys() & others.keys()):
            raise UnreadableRelation(f"relation {both[0]!r} is given twice")
    with duckdb.connect(":memory:", config=_SETTINGS) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, table in tables.items():
            connection.register(name, table)
        for name, paths in files.items():
            _create_view(connection, name, [str(path) for path in paths], name in file_names)
        for name, select in views.items():
            connection.sql(select).create_view(name)
        _confine(connection, [str(path) for paths in files.values() for path in paths])
        yield ParquetRelations(connection)


def _create_view(
    connection: duckdb.DuckDBPyConnection, name: str, paths: list[str], with_file_name: bool
) -> None:
    if not paths:
        raise UnreadableRelation(
            f"relation {name!r} has no files; give an empty table with its columns instead"
        )
    patterns = [_literal(path) for path in paths]
    try:
        # Partition values in folder names are not columns of the data.
        relation = connection.read_parquet(
            patterns, hive_partitioning=False, filename=with_file_name
        )
        if with_file_name:
            relation = relation.project(
                "* EXCLUDE (filename), parse_filename(filename) AS file_name"
            )
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


def _reason(error: duckdb.Error) -> str:
    if not isinstance(error, _MESSAGE_IS_SAFE):
        return f"{type(error).__name__} (the message may quote data and is not shown)"
    return str(error).splitlines()[0]
