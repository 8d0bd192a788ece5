"""Generic tests compiled to SQL: each kind builds one SELECT of failing rows.

Identifiers are quoted and values bound; only ``expression``, which is SQL, is inserted as it
stands. The SQL is what DuckDB and PostgreSQL have in common.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from dbt_like_checks.check import Parameter


@dataclass(frozen=True, slots=True)
class Target:
    """What a generic test is declared on. ``column`` is empty for a test of the whole model."""

    model: str
    column: str
    id_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """A SELECT of failing rows, the values of its placeholders, and the id columns it returns."""

    sql: str
    parameters: tuple[Parameter, ...] = ()
    id_columns: tuple[str, ...] = ()


def quoted(identifier: str) -> str:
    """The identifier in double quotes, as standard SQL spells any name."""
    return '"' + identifier.replace('"', '""') + '"'


def not_null(target: Target) -> Statement:
    return _rows(target, f"{quoted(target.column)} IS NULL")


def unique(target: Target) -> Statement:
    """One failing row a repeated value (dbt counts values, not rows): its second row by id."""
    column = quoted(target.column)
    order = f" ORDER BY {_id_list(target)}" if target.id_columns else ""
    sql = (
        f"SELECT {_id_list(target)} FROM (\n"
        f"  SELECT {_id_list(target)}, "
        f"row_number() OVER (PARTITION BY {column}{order}) AS occurrence_number\n"
        f"  FROM {quoted(target.model)} WHERE {column} IS NOT NULL\n"
        ") AS occurrences WHERE occurrence_number = 2"
    )
    return Statement(sql, id_columns=target.id_columns)


def accepted_values(target: Target, *, values: tuple[Parameter, ...]) -> Statement:
    column = quoted(target.column)
    placeholders = ", ".join(f"${number}" for number in range(1, len(values) + 1))
    return _rows(target, f"{column} IS NOT NULL AND {column} NOT IN ({placeholders})", values)


def relationships(target: Target, *, to: str, field: str) -> Statement:
    column = f"child.{quoted(target.column)}"
    return _rows(
        target,
        f"{column} IS NOT NULL AND NOT EXISTS (\n"
        f"  SELECT 1 FROM {quoted(to)} AS parent WHERE parent.{quoted(field)} = {column}\n)",
        alias=" AS child",
    )


def freshness(target: Target, *, max_age: timedelta) -> Statement:
    """One failing row when the newest value is older than ``max_age`` or there is no value."""
    newest = f"max({quoted(target.column)})"
    sql = (
        f"SELECT {newest} AS newest FROM {quoted(target.model)}\n"
        f"HAVING {newest} IS NULL OR {newest} < current_timestamp - CAST($1 AS INTERVAL)"
    )
    return Statement(sql, (max_age,))


def row_count(
    target: Target,
    *,
    min: int | None = None,  # noqa: A002 (the YAML calls it so)
    max: int | None = None,  # noqa: A002
) -> Statement:
    """One failing row when the count is outside the bounds.

    Raises `ValueError` for bounds that hold for every count or for none.
    """
    if not min and max is None:
        raise ValueError("row_count can never fail: give a min above 0, a max, or both")
    if min is not None and max is not None and min > max:
        raise ValueError(f"row_count can never hold: min {min} is above max {max}")
    bounds = [
        (operator, bound) for operator, bound in (("<", min), (">", max)) if bound is not None
    ]
    condition = " OR ".join(
        f"count(*) {operator} ${number}" for number, (operator, _) in enumerate(bounds, start=1)
    )
    sql = f"SELECT count(*) AS row_count FROM {quoted(target.model)} HAVING {condition}"
    return Statement(sql, tuple(bound for _, bound in bounds))


def expression(target: Target, *, expression: str) -> Statement:
    """NULL fails: a rule that cannot be decided for a row does not hold for it."""
    # The line break ends a comment that the expression may finish with.
    return _rows(target, f"({expression}\n) IS NOT TRUE")


BUILDERS: Final[dict[str, Callable[..., Statement]]] = {
    "not_null": not_null,
    "unique": unique,
    "accepted_values": accepted_values,
    "relationships": relationships,
    "row_count": row_count,
    "expression": expression,
    "freshness": freshness,
}
"""Kind of test -> its SQL. A builder takes the target and the test's arguments by keyword."""


def _rows(
    target: Target, condition: str, parameters: tuple[Parameter, ...] = (), alias: str = ""
) -> Statement:
    sql = f"SELECT {_id_list(target)} FROM {quoted(target.model)}{alias} WHERE {condition}"
    return Statement(sql, parameters, target.id_columns)


def _id_list(target: Target) -> str:
    return ", ".join(map(quoted, target.id_columns)) or "1 AS failing"
