"""The definitions of a source file, nested as they are written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tree_sitter import Node, Parser, QueryCursor, Tree

from knowledge.publishing.chunking.grammars import grammar

_NAME_FIELDS: Final = ("name", "property", "key", "left", "declarator", "type")
_BARE_DECLARATORS: Final = frozenset({"reference_declarator", "parenthesized_declarator"})
_GENERICS: Final = re.compile(r"[<\[].*", re.DOTALL)
_RECEIVER: Final = re.compile(r"(\w+)\s*(?:\[[^\]]*\])?\s*,?\s*\)$")
_EXPORTS: Final = re.compile(r"^(?:module\.)?exports\.|\.prototype(?=\.)")
_NAME_CHARS: Final = 200
_MAX_RUN: Final = 4000
_RUN: Final = re.compile(r"\W{64,}")
_FREE_CALLS: Final = 500
_CALLS_PER_BYTE: Final = 0.02
_READ_BYTES: Final = 65_536


@dataclass(slots=True)
class Definition:
    """A function, method or class with the definitions inside it; rows count from 0.

    ``name`` is its own name, or what qualifies it (``Server.run`` for a Go method); empty
    when it has none. ``is_container`` says that its members are definitions of their own.
    """

    node: Node
    first: int
    last: int
    is_container: bool
    inner: list[Definition] = field(default_factory=list)

    @property
    def name(self) -> str:
        return _name(self.node)


@dataclass(frozen=True, slots=True)
class Outline:
    """Definitions at the top level in order, and where a comment, decorator or attribute that
    begins its line stands: last row to first row."""

    definitions: list[Definition]
    prefixes: Mapping[int, int]

    def start_with_prefixes(self, row: int) -> int:
        """The first of the rows of comments and decorators directly above ``row``, or it."""
        while (above := self.prefixes.get(row - 1)) is not None and above < row:
            row = above
        return row


def outline(text: str, grammar_name: str) -> Outline | None:
    """Parse ``text``, tolerating syntax errors, and return its definitions.

    None for a text so far from the language that parsing it would take time or memory out of
    proportion to its length.
    """
    rules = grammar(grammar_name)
    source = text.encode()
    tree = None if _has_punctuation_run(text) else _parse(rules.parser(), source)
    if tree is None or _has_wide_error(tree.root_node):
        return None
    captures = QueryCursor(rules.definitions).captures(tree.root_node)
    prefixes: dict[int, int] = {}
    for node in captures.pop("prefix", []):
        row, column = node.start_point
        if not source[node.start_byte - column : node.start_byte].strip():
            last = _last_row(node)
            prefixes[last] = min(row, prefixes.get(last, row))
    return Outline(_nest(captures), prefixes)


def _parse(parser: Parser, source: bytes) -> Tree | None:
    """The syntax tree; None when the parser keeps guessing.

    It calls back every hundred operations: 1 to 5 times a kilobyte in code, 60 times where
    ambiguity makes its memory grow with the square of the length.
    """
    calls = 0

    def is_out_of_proportion(offset: int, _has_error: bool) -> bool:
        nonlocal calls
        calls += 1
        return calls > _FREE_CALLS + _CALLS_PER_BYTE * offset

    def read(offset: int, _point: object) -> bytes:
        return source[offset : offset + _READ_BYTES]

    try:
        return parser.parse(read, progress_callback=is_out_of_proportion)
    except ValueError:  # what the binding raises when the callback stops it
        return None


def _has_punctuation_run(text: str) -> bool:
    """Whether a run of punctuation is so long that a query over it takes quadratic time."""
    return any(len(run[0]) > _MAX_RUN for run in _RUN.finditer(text))


def _has_wide_error(root: Node) -> bool:
    """The same for whatever the parser could make nothing of."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_error and node.child_count > _MAX_RUN:
            return True
        if node.has_error:
            waiting.extend(child for child in node.children if child.has_error)
    return False


def _nest(captures: Mapping[str, list[Node]]) -> list[Definition]:
    found = [(kind, node) for kind, nodes in captures.items() for node in nodes]
    # A wrapper comes before what it wraps, also when both cover the same bytes.
    found.sort(key=lambda item: (item[1].start_byte, -item[1].end_byte, item[0] != "wrap"))
    top: list[Definition] = []
    open_nodes: list[tuple[int, Node, Definition | None]] = []
    for kind, node in found:
        begin, end = node.start_byte, node.end_byte
        while open_nodes and open_nodes[-1][0] <= begin:
            open_nodes.pop()
        if kind == "wrap":
            open_nodes.append((end, node, None))
            continue
        first, last = node.start_point.row, _last_row(node)
        if node.type == "pair" and first == last:
            continue  # a callback on one line is a value, not a definition worth a chunk
        if open_nodes and open_nodes[-1][2] is None and open_nodes[-1][0] - end <= 1:
            first = open_nodes[-1][1].start_point.row
        definition = Definition(node, first, last, kind == "container")
        parents = (parent for _, _, parent in reversed(open_nodes) if parent is not None)
        parent = next(parents, None)
        (parent.inner if parent else top).append(definition)
        open_nodes.append((end, node, definition))
    return top


def _last_row(node: Node) -> int:
    """The last row with something of the node: some nodes end where the next line begins."""
    row, column = node.end_point
    return row - 1 if column == 0 and row > node.start_point.row else row


def _name(node: Node) -> str:
    if node.type == "type_declaration":  # Go: the name stands in the specification inside
        node = next((child for child in node.named_children if child.type != "comment"), node)
    named = _name_node(node)
    name = _text(named) if named else ""
    if "operator" in name:
        name = "".join(name.split())
    else:
        name = " ".join(_GENERICS.sub("", _EXPORTS.sub("", name)).split()).strip("\"'` ")
    receiver = node.child_by_field_name("receiver") if node.type == "method_declaration" else None
    if receiver and (match := _RECEIVER.search(_text(receiver))):
        name = f"{match[1]}.{name}"
    return name.replace("::", ".")[:_NAME_CHARS]


def _name_node(node: Node) -> Node | None:
    fields = (node.child_by_field_name(name) for name in _NAME_FIELDS)
    named = next((child for child in fields if child is not None), None)
    while named is not None:
        deeper = named.child_by_field_name("declarator")
        if deeper is None and named.type in _BARE_DECLARATORS and named.named_children:
            deeper = named.named_children[-1]
        if deeper is None:
            break
        named = deeper
    return named


def _text(node: Node) -> str:
    return (node.text or b"")[: 4 * _NAME_CHARS].decode(errors="replace")
