"""Checks run on a connection, one after the other, each to an outcome."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Final

import duckdb

from dbt_like_checks.check import Check
from dbt_like_checks.compiling import quoted
from dbt_like_checks.outcome import CheckOutcome, IdRow, Status, status_for

SAMPLE_ROWS: Final = 10
ID_CHARS: Final = 200

# These say what is wrong with the SQL. The others quote the value that could not be processed.
_MESSAGE_IS_SAFE: Final = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ParserException,
    duckdb.PermissionException,
    duckdb.SyntaxException,
)


def run_checks(
    checks: Iterable[Check], connection: duckdb.DuckDBPyConnection
) -> list[CheckOutcome]:
    """Run every check, in order, whatever comes of the ones before; one outcome each."""
    return [run_check(check, connection) for check in checks]


def run_check(check: Check, connection: duckdb.DuckDBPyConnection) -> CheckOutcome:
    """Run one check. SQL that fails is an outcome with status ``error``, not an exception."""
    started = time.perf_counter()
    try:
        rows = _failing_rows(check, connection)
    except duckdb.Error as error:
        seconds = time.perf_counter() - started
        return CheckOutcome(check, Status.ERROR, 0, (), seconds, _reason(error))
    seconds = time.perf_counter() - started
    failures = int(rows[0][0]) if rows else 0
    return CheckOutcome(check, status_for(check, failures), failures, _sample(check, rows), seconds)


def _failing_rows(check: Check, connection: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    """At most `SAMPLE_ROWS` rows: the number of all failing rows, then the ids of this one."""
    ids = [f"failing.{quoted(column)}" for column in check.id_columns]
    columns = ["count(*) OVER ()"] + [f"left(CAST({id_} AS VARCHAR), {ID_CHARS})" for id_ in ids]
    order = f"ORDER BY {', '.join(ids)}\n" if ids else ""
    # The line break ends a comment that the SELECT may finish with.
    sql = (
        f"SELECT {', '.join(columns)}\nFROM (\n{check.sql}\n) AS failing\n"
        f"{order}LIMIT {SAMPLE_ROWS}"
    )
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise duckdb.ParserException("a check must be one SELECT")
    return connection.execute(statements[0], list(check.parameters)).fetchall()


def _sample(check: Check, rows: list[tuple[Any, ...]]) -> tuple[IdRow, ...]:
    if not check.id_columns:
        return ()
    return tuple(dict(zip(check.id_columns, row[1:], strict=True)) for row in rows)


def _reason(error: duckdb.Error) -> str:
    if not isinstance(error, _MESSAGE_IS_SAFE):
        return f"{type(error).__name__} (the message may quote data and is not shown)"
    return str(error).splitlines()[0]
