"""A check: one SELECT of failing rows, and what their number means."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Final

Parameter = str | int | float | bool | timedelta
"""A value bound to a placeholder ``$1``, ``$2``, … of a check's SELECT."""

COMPARISONS: Final[dict[str, Callable[[int, int], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "!=": operator.ne,
}
_THRESHOLD = re.compile(r"(>=|<=|!=|>|<|=)\s*([0-9]{1,18})")


class Severity(StrEnum):
    ERROR = "error"
    WARN = "warn"


class Engine(StrEnum):
    """Where a check runs: DuckDB over Parquet files and tables, or PostgreSQL."""

    PARQUET = "parquet"
    POSTGRES = "postgres"


@dataclass(frozen=True, slots=True)
class Threshold:
    """A condition on the number of failing rows, e.g. ``>=10``."""

    comparison: str
    count: int

    def is_met(self, failures: int) -> bool:
        return COMPARISONS[self.comparison](failures, self.count)

    @classmethod
    def parse(cls, text: str) -> Threshold:
        """Read ``">=10"``. Raises `ValueError` for anything else and for what can never be met."""
        match = _THRESHOLD.fullmatch(text.strip())
        if not match:
            raise ValueError(
                f"threshold {text!r} is not a comparison and a count, like '>=10'; "
                f"valid comparisons: {' '.join(COMPARISONS)}"
            )
        threshold = cls(match[1], int(match[2]))
        if threshold == cls("<", 0):
            raise ValueError(f"threshold {text!r} can never be met: a count is not negative")
        return threshold

    def __str__(self) -> str:
        return f"{self.comparison}{self.count}"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When failing rows fail a check (``severity: error`` only) and when they warn."""

    error_if: Threshold = field(default=Threshold("!=", 0))
    warn_if: Threshold = field(default=Threshold("!=", 0))


@dataclass(frozen=True, slots=True)
class Check:
    """One data check.

    ``sql`` is a single SELECT whose every row is a failure; ``parameters`` are bound to its
    ``$1``, ``$2``, …. ``id_columns`` are the columns of that SELECT a sample may show, empty
    when its rows have no identity (a row count). ``model`` is ``None`` for a singular check that
    names none, ``column`` for a check on a whole model. ``file`` and 1-based ``line`` say where
    it is declared. ``name`` is unique within what was loaded together, ``[A-Za-z0-9_]+``.
    """

    name: str
    model: str | None
    column: str | None
    severity: Severity
    thresholds: Thresholds
    sql: str
    parameters: tuple[Parameter, ...]
    id_columns: tuple[str, ...]
    description: str
    file: str
    line: int
    engine: Engine = Engine.PARQUET
