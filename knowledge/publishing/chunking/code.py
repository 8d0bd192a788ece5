"""Source code: a chunk for every definition, with the comments and decorators above it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from knowledge.model.chunk import Chunk
from knowledge.publishing.chunking.definitions import Definition, Outline, outline
from knowledge.publishing.chunking.grammars import LANGUAGES_WITH_GRAMMAR
from knowledge.publishing.chunking.prose import chunk_prose
from knowledge.publishing.chunking.sections import FileFacts, Section, chunk_sections
from knowledge.publishing.chunking.tokens import count_tokens

_GRAMMAR_OF_SUFFIX: Final = {".tsx": "tsx"}
_CLOSING: Final = re.compile(r"\s*(?:[^\w\s]*\s*|[)}\]].*|end\b.*|#\s*endif\b.*)")
_MAX_DEPTH: Final = 20
_SCRAP_TOKENS: Final = 12
_MINIFIED_CHARS: Final = 20_000
_MINIFIED_LINE_CHARS: Final = 400


def chunk_code(path: str, text: str, *, language: str, max_tokens: int) -> list[Chunk]:
    """Chunks of a source file, one a function, method, or head of a class.

    The title is the qualified name (``Class.method``), the anchor too; lines outside every
    definition form chunks of their own, named after what encloses them (the module: the
    file's name, an empty anchor). A function longer than the bound that holds functions is
    opened like a class. Comments, decorators and attributes directly above a definition are
    part of it. Every line that is not blank is in a chunk. A language without a grammar,
    minified code, and what is hardly code at all, is chunked by its paragraphs.
    """
    lines = text.split("\n")
    name = PurePosixPath(path)
    outlined = None
    if language in LANGUAGES_WITH_GRAMMAR and not _is_minified(text, lines):
        outlined = outline(text, _GRAMMAR_OF_SUFFIX.get(name.suffix.lower(), language))
    if outlined is None:
        return chunk_prose(path, text, max_tokens=max_tokens, kind="code", language=language)
    cover = _Cover(lines, outlined, module=name.name, max_tokens=max_tokens)
    cover.add(outlined.definitions, "", 0, len(lines) - 1)
    facts = FileFacts(path=path, kind="code", language=language)
    return chunk_sections(facts, lines, cover.sections, max_tokens=max_tokens)


class _Cover:
    """Sections that together hold every line of a file; rows count from 0."""

    def __init__(
        self, lines: Sequence[str], outlined: Outline, *, module: str, max_tokens: int
    ) -> None:
        self.sections: list[Section] = []
        self._lines = lines
        self._outline = outlined
        self._module = module
        self._max_tokens = max_tokens

    def add(
        self,
        definitions: Sequence[Definition],
        scope: str,
        first: int,
        last: int,
        *,
        depth: int = 0,
        in_function: bool = False,
    ) -> None:
        """Cover the rows ``first`` to ``last`` of ``scope``, which holds ``definitions``."""
        row = first
        for definition in definitions:
            if definition.last < row:
                continue  # on lines that are taken: several definitions on one line
            start = max(self._outline.start_with_prefixes(definition.first), row)
            self._add_rest(scope, row, start - 1)
            name = ".".join(filter(None, (scope, definition.name)))
            if self._is_opened(definition, start) and depth < _MAX_DEPTH:
                self.add(
                    definition.inner,
                    name,
                    start,
                    definition.last,
                    depth=depth + 1,
                    in_function=not definition.is_container,
                )
            else:
                self._add_section(name, start, definition.last)
            row = definition.last + 1
        self._add_rest(scope, row, last, is_tail=in_function and row > first)

    def _is_opened(self, definition: Definition, start: int) -> bool:
        if not definition.inner or definition.first == definition.last:
            return False
        text = "\n".join(self._lines[start : definition.last + 1])
        return definition.is_container or count_tokens(text) > self._max_tokens

    def _add_rest(self, scope: str, first: int, last: int, *, is_tail: bool = False) -> None:
        """What stands between definitions; closing brackets go with what they close.

        So does the short tail of an opened function (``return wrapper``): alone it says nothing.
        """
        rest = [line for line in self._lines[first : last + 1] if line.strip()]
        if not rest:
            return
        closes = all(_CLOSING.fullmatch(line) for line in rest)
        is_scrap = is_tail and count_tokens("\n".join(rest)) <= _SCRAP_TOKENS
        if self.sections and (closes or is_scrap):
            before = self.sections.pop()
            self.sections.append(Section(before.anchor, before.title, before.first, last + 1))
        else:
            self._add_section(scope, first, last)

    def _add_section(self, name: str, first: int, last: int) -> None:
        self.sections.append(Section(name, name or self._module, first + 1, last + 1))


def _is_minified(text: str, lines: Sequence[str]) -> bool:
    return len(text) > _MINIFIED_CHARS and len(text) > _MINIFIED_LINE_CHARS * len(lines)
