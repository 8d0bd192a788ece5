"""Checks run on an engine, one after the other, each to an outcome."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

from dbt_like_checks.check import Check, Parameter
from dbt_like_checks.compiling import quoted
from dbt_like_checks.errors import QueryFailed
from dbt_like_checks.outcome import CheckOutcome, IdRow, Status, status_for

SAMPLE_ROWS: Final = 10
ID_CHARS: Final = 200


class Relations(Protocol):
    """The named relations of one engine."""

    def rows(self, sql: str, parameters: Sequence[Parameter]) -> list[tuple[Any, ...]]:
        """The rows of one SELECT, ``parameters`` bound to its ``$1``, ``$2``, ….

        Nothing can be changed through it. Raises `QueryFailed` for SQL that cannot run and for
        what is not one SELECT; it can be used again afterwards.
        """


def run_checks(checks: Iterable[Check], relations: Relations) -> list[CheckOutcome]:
    """Run every check, in order, whatever comes of the ones before; one outcome each."""
    return [run_check(check, relations) for check in checks]


def run_check(check: Check, relations: Relations) -> CheckOutcome:
    """Run one check. SQL that fails is an outcome with status ``error``, not an exception."""
    started = time.perf_counter()
    try:
        rows = relations.rows(_failing_rows(check), check.parameters)
    except QueryFailed as error:
        seconds = time.perf_counter() - started
        return CheckOutcome(check, Status.ERROR, 0, (), seconds, str(error))
    seconds = time.perf_counter() - started
    failures = int(rows[0][0]) if rows else 0
    return CheckOutcome(check, status_for(check, failures), failures, _sample(check, rows), seconds)


def _failing_rows(check: Check) -> str:
    """At most `SAMPLE_ROWS` rows: the number of all failing rows, then the ids of this one."""
    ids = [f"failing.{quoted(column)}" for column in check.id_columns]
    columns = ["count(*) OVER ()"] + [f"left(CAST({id_} AS VARCHAR), {ID_CHARS})" for id_ in ids]
    order = f"ORDER BY {', '.join(ids)}\n" if ids else ""
    # The line break ends a comment that the SELECT may finish with.
    return (
        f"SELECT {', '.join(columns)}\nFROM (\n{check.sql}\n) AS failing\n"
        f"{order}LIMIT {SAMPLE_ROWS}"
    )


def _sample(check: Check, rows: list[tuple[Any, ...]]) -> tuple[IdRow, ...]:
    if not check.id_columns:
        return ()
    return tuple(dict(zip(check.id_columns, row[1:], strict=True)) for row in rows)
