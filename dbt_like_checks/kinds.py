"""What each kind of generic test may be declared on, and which arguments it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from dbt_like_checks.nodes import Node

Level = Literal["model", "column"]
ReadArgument = Callable[[Node, str], Any]
"""Reads one argument from its node; the string names it in an error."""


@dataclass(frozen=True, slots=True)
class TestKind:
    __test__ = False  # pytest would otherwise take the name for a test class

    levels: frozenset[Level]
    required: Mapping[str, ReadArgument] = field(default_factory=dict)
    optional: Mapping[str, ReadArgument] = field(default_factory=dict)


_COLUMN: Final[frozenset[Level]] = frozenset({"column"})
_MODEL: Final[frozenset[Level]] = frozenset({"model"})

KINDS: Final[dict[str, TestKind]] = {
    "not_null": TestKind(_COLUMN),
    "unique": TestKind(_COLUMN),
    "accepted_values": TestKind(_COLUMN, {"values": Node.values}),
    "relationships": TestKind(_COLUMN, {"to": Node.string, "field": Node.string}),
    "row_count": TestKind(_MODEL, optional={"min": Node.count, "max": Node.count}),
    "expression": TestKind(_COLUMN | _MODEL, {"expression": Node.string}),
    "freshness": TestKind(_COLUMN, {"max_age": Node.age}),
}
"""The same keys as `compiling.BUILDERS`, which take these arguments by keyword."""
