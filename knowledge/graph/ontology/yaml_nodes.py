"""YAML values that know where they stand, read strictly: what is not understood is an error."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import yaml

from knowledge.errors import InvalidOntology

MAX_BYTES: Final = 256 * 1024
_MAX_DEPTH: Final = 16
_TAG: Final = "tag:yaml.org,2002:"
_POSITIVE: Final = re.compile(r"[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class Node:
    """One YAML value and the file it stands in."""

    value: yaml.Node
    file: str

    def error(self, message: str) -> InvalidOntology:
        return _error(self.file, int(self.value.start_mark.line) + 1, message)

    def entries(self, what: str) -> list[tuple[Node, Node]]:
        """The (key, value) pairs of a mapping whose keys are different strings."""
        if not isinstance(self.value, yaml.MappingNode) or self.value.tag != f"{_TAG}map":
            hint = "; write {} for none" if self._scalar("null") is not None else self._found()
            raise self.error(f"{what} must be a mapping of keys to values{hint}")
        seen: set[str] = set()
        pairs = [(Node(key, self.file), Node(value, self.file)) for key, value in self.value.value]
        for key, _ in pairs:
            name = key.string(f"a key of {what}")
            if name in seen:
                raise key.error(f"{name[:80]!r} is given twice in {what}: remove one of the two")
            seen.add(name)
        return pairs

    def mapping(
        self, what: str, *, required: Iterable[str], optional: Iterable[str]
    ) -> dict[str, Node]:
        """The mapping's values by key, these keys only."""
        required = tuple(required)
        valid = (*required, *optional)
        values: dict[str, Node] = {}
        for key, value in self.entries(what):
            name = key.string(f"a key of {what}")
            if name not in valid:
                message = f"unknown key {name[:80]!r} of {what}; valid: {', '.join(valid)}"
                raise key.error(message)
            values[name] = value
        if missing := [name for name in required if name not in values]:
            raise self.error(f"{what} lacks {', '.join(missing)}")
        return values

    def sequence(self, what: str) -> list[Node]:
        """The values of a list that is not empty."""
        if not isinstance(self.value, yaml.SequenceNode) or self.value.tag != f"{_TAG}seq":
            raise self.error(f"{what} must be a list{self._found()}")
        if not self.value.value:
            raise self.error(f"{what} is empty: leave the key out")
        return [Node(value, self.file) for value in self.value.value]

    def string(self, what: str) -> str:
        """A string that is not empty."""
        value = self._scalar("str")
        if value is None or not value.strip():
            found = self._found()
            hint = "" if self._scalar("str", "null") is not None else ": put it in quotes"
            raise self.error(f"{what} must be a string that is not empty{found}{hint}")
        return value

    def boolean(self, what: str) -> bool:
        value = self._scalar("bool")
        if value not in ("true", "false"):  # YAML 1.1 also takes yes, no, on and off
            raise self.error(f"{what} must be true or false{self._found()}")
        return value == "true"

    def positive(self, what: str) -> int:
        """A decimal integer from 1 to 999,999,999."""
        value = self._scalar("int")
        if value is None or not _POSITIVE.fullmatch(value):
            raise self.error(f"{what} must be an integer from 1 to 999999999{self._found()}")
        return int(value)

    def _scalar(self, *types: str) -> str | None:
        """The text of a scalar of one of these YAML types, else None."""
        if not isinstance(self.value, yaml.ScalarNode):
            return None
        return str(self.value.value) if self.value.tag in {_TAG + name for name in types} else None

    def _found(self) -> str:
        """What stands there instead, for the end of a message."""
        kind = str(self.value.tag).removeprefix(_TAG)[:40]
        if not isinstance(self.value, yaml.ScalarNode):
            return f"; found {kind!r}"
        return f"; found {str(self.value.value)[:60]!r} ({kind!r})"


def compose(text: str, file: str) -> Node:
    """The one YAML document of ``text``, without anchors and aliases, at most `MAX_BYTES`.

    Raises `InvalidOntology` for everything else.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise _error(file, 1, f"the ontology has {size:,} bytes; at most {MAX_BYTES:,} are allowed")
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(str(error.problem or error.context).split())
        message = problem if isinstance(error, _Refused) else f"not valid YAML: {problem}"
        raise _error(file, mark.line + 1 if mark else 1, message) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = f"not valid YAML: character U+{int(error.character):04X} is not allowed"
        raise _error(file, line, message) from error
    if root is None:
        raise _error(file, 1, "the ontology is empty: give at least name, version and predicates")
    return Node(root, file)


class _Refused(yaml.MarkedYAMLError):
    """Valid YAML that is not allowed here."""


class _Loader(yaml.SafeLoader):
    """Refuses what can grow out of proportion: aliases, and nesting without end."""

    _depth = 0

    def get_single_node(self) -> yaml.Node | None:
        try:
            return super().get_single_node()
        except (ValueError, OverflowError) as error:  # from int() and chr() in the scanner
            message = "a number or escape is out of range"
            mark = self.get_mark()
            raise yaml.MarkedYAMLError(problem=message, problem_mark=mark) from error

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            message = "anchors and aliases are not allowed: write the value out"
            raise _Refused(problem=message, problem_mark=event.start_mark)
        if self._depth == _MAX_DEPTH:
            message = f"nested deeper than {_MAX_DEPTH} levels"
            raise _Refused(problem=message, problem_mark=event.start_mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def _error(file: str, line: int, message: str) -> InvalidOntology:
    return InvalidOntology(f"{file}:{line}: {message}", file=file, line=line)
