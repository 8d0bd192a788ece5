"""YAML values that know where they stand, read strictly: what is not understood is an error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import yaml

from dbt_like_checks.errors import InvalidChecks

_TAG: Final = "tag:yaml.org,2002:"
PERIODS: Final = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
}
MAX_COUNT: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Node:
    """One YAML value and the file it stands in."""

    value: yaml.Node
    file: str

    @property
    def line(self) -> int:
        """1-based."""
        return int(self.value.start_mark.line) + 1

    @property
    def is_null(self) -> bool:
        return self.value.tag == f"{_TAG}null"

    def error(self, message: str) -> InvalidChecks:
        return InvalidChecks(message, file=self.file, line=self.line)

    def entries(self, what: str) -> dict[str, Node]:
        """The mapping's entries, any key; a key twice is an error."""
        if not isinstance(self.value, yaml.MappingNode):
            raise self.error(f"{what} must be a mapping of keys to values")
        entries: dict[str, Node] = {}
        for key_node, value in self.value.value:
            key = Node(key_node, self.file)
            name = key.string(f"a key of {what}")
            if name in entries:
                raise key.error(f"key {name!r} of {what} is given twice")
            entries[name] = Node(value, self.file)
        return entries

    def mapping(
        self, what: str, *, required: Iterable[str] = (), optional: Iterable[str] = ()
    ) -> dict[str, Node]:
        """The mapping's entries, only these keys."""
        required = tuple(required)
        valid = (*required, *optional)
        entries = self.entries(what)
        for key_node in (pair[0] for pair in self.value.value):
            if key_node.value not in valid:
                raise Node(key_node, self.file).error(
                    f"unknown key {key_node.value!r} of {what}; valid: {', '.join(sorted(valid))}"
                )
        if missing := [name for name in required if name not in entries]:
            raise self.error(f"{what} lacks {', '.join(missing)}")
        return entries

    def sequence(self, what: str) -> list[Node]:
        if not isinstance(self.value, yaml.SequenceNode):
            raise self.error(f"{what} must be a list")
        return [Node(value, self.file) for value in self.value.value]

    def string(self, what: str) -> str:
        """A string that is not empty."""
        value = self._scalar("str")
        if not isinstance(value, str) or not value.strip():
            raise self.error(f"{what} must be a string that is not empty{self._found()}")
        return value

    def count(self, what: str) -> int:
        """An integer of at least 0."""
        value = self._scalar("int")
        if not isinstance(value, int) or not 0 <= value <= MAX_COUNT:
            raise self.error(f"{what} must be an integer of at least 0{self._found()}")
        return value

    def strings(self, what: str) -> tuple[str, ...]:
        """A list of different strings, at least one."""
        nodes = self.sequence(what)
        names = tuple(node.string(f"an entry of {what}") for node in nodes)
        if not names or len(set(names)) < len(names):
            raise self.error(f"{what} must list at least one name, each once")
        return names

    def values(self, what: str) -> tuple[str | int | float | bool, ...]:
        """A list of scalars of one type (YAML reads an unquoted ``yes`` or ``no`` as a boolean)."""
        values: list[str | int | float | bool] = []
        for node in self.sequence(what):
            value = node._scalar("str", "int", "float", "bool")
            if value is None:
                raise node.error(
                    f"an entry of {what} must be a string, number or boolean{node._found()}"
                )
            if values and type(value) is not type(values[0]):
                raise node.error(
                    f"the entries of {what} must be of one type; quote the strings among them"
                )
            values.append(value)
        if not values:
            raise self.error(f"{what} must list at least one value")
        return tuple(values)

    def age(self, what: str) -> timedelta:
        """``{count: 12, period: hour}``, more than nothing and at most 36,500 days."""
        entries = self.mapping(what, required=("count", "period"))
        count, period = entries["count"].count("count"), entries["period"].string("period")
        if period not in PERIODS:
            raise entries["period"].error(f"unknown period {period!r}; valid: {', '.join(PERIODS)}")
        longest = timedelta(days=36_500)
        if not 0 < count <= longest // PERIODS[period]:
            raise entries["count"].error(f"{what} must be more than 0 and at most 36,500 days")
        return count * PERIODS[period]

    def _scalar(self, *types: str) -> str | int | float | bool | None:
        """The value when it is a scalar of one of these YAML types, else ``None``."""
        if self.value.tag not in {f"{_TAG}{name}" for name in types}:
            return None
        if not isinstance(self.value, yaml.ScalarNode):
            return None
        try:
            value = yaml.constructor.SafeConstructor().construct_object(self.value)
        except (ValueError, yaml.YAMLError):  # e.g. an explicit tag: !!int twelve
            return None
        return value if isinstance(value, str | int | float) else None

    def _found(self) -> str:
        """What stands there instead, for the end of a message."""
        tag = str(self.value.tag).removeprefix(_TAG)
        if isinstance(self.value, yaml.ScalarNode):
            return f"; found {tag} {str(self.value.value)[:60]!r}"
        return f"; found {tag}"


def compose(text: str, file: str) -> Node | None:
    """The one YAML document of ``text``, ``None`` when there is none.

    Raises `InvalidChecks` for what is not YAML.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        message = f"not valid YAML: {error.problem or error.context}"
        raise InvalidChecks(message, file=file, line=line) from error
    except yaml.YAMLError as error:
        message = f"not valid YAML: {str(error).splitlines()[0]}"
        raise InvalidChecks(message, file=file, line=1) from error
    return None if root is None else Node(root, file)
