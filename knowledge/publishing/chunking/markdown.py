"""Markdown: a chunk for every section under a heading."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from knowledge.model.chunk import Chunk
from knowledge.publishing.chunking.front_matter import read_front_matter
from knowledge.publishing.chunking.prose import chunk_prose
from knowledge.publishing.chunking.sections import FileFacts, Section, chunk_sections

_SEPARATOR: Final = " > "
_HEADING_CHARS: Final = 200
_MARKUP: Final = re.compile(r"[^\w\s,.;:?/()'\"+%-]|__|_\b|\b_")

# Only the block structure is needed: inline markup is parsed for headings alone.
_BLOCKS: Final = MarkdownIt("commonmark").disable(["inline", "text_join"])
_INLINE: Final = MarkdownIt("commonmark")


@dataclass(frozen=True, slots=True)
class _Heading:
    level: int
    text: str
    line: int


def chunk_markdown(path: str, text: str, *, max_tokens: int) -> list[Chunk]:
    """Chunks of a Markdown file, one a section; a section is a heading and what follows it.

    The title is the heading path, after the document's title when the front matter names
    one; the anchor is the heading path, empty before the first heading. A heading directly
    followed by a deeper one belongs to that one's chunk. Fenced code stays in one piece
    where it fits. Front matter becomes tags, metadata and the time of the last change. A
    file of front matter only is chunked as plain text.
    """
    lines = text.split("\n")
    front = read_front_matter(lines)
    if not any(line.strip() for line in lines[front.line_count :]):
        return chunk_prose(path, text, max_tokens=max_tokens)
    # Blank lines in place of the front matter keep every later line number.
    tokens = _BLOCKS.parse("\n" * front.line_count + "\n".join(lines[front.line_count :]))
    facts = FileFacts(
        path=path, tags=front.tags, metadata=front.metadata, updated_at=front.updated_at
    )
    sections = _sections(
        lines,
        list(_headings(tokens)),
        fences=[(t.map[0] + 1, t.map[1]) for t in tokens if t.type == "fence" and t.map],
        first=front.line_count + 1,
        document_title=front.title,
        file_name=PurePosixPath(path).name,
    )
    return chunk_sections(facts, lines, sections, max_tokens=max_tokens)


def _headings(tokens: Sequence[Token]) -> Iterator[_Heading]:
    for index, token in enumerate(tokens):
        # A heading inside a quotation or a list item does not divide the document.
        if token.type == "heading_open" and token.level == 0 and token.map:
            text = _plain(tokens[index + 1].content)
            yield _Heading(int(token.tag[1:]), text, token.map[0] + 1)


def _plain(markup: str) -> str:
    """A heading without its markup, on one line."""
    if not _MARKUP.search(markup):
        return " ".join(markup.split())[:_HEADING_CHARS].rstrip()
    (inline,) = _INLINE.parseInline(markup[: 4 * _HEADING_CHARS])
    parts = (child.content if child.content else " " for child in _leaves(inline))
    return " ".join("".join(parts).split())[:_HEADING_CHARS].rstrip()


def _leaves(token: Token) -> Iterator[Token]:
    for child in token.children or ():
        if child.type in ("text", "code_inline", "image", "softbreak", "hardbreak"):
            yield child


def _sections(
    lines: Sequence[str],
    headings: Sequence[_Heading],
    *,
    fences: Sequence[tuple[int, int]],
    first: int,
    document_title: str,
    file_name: str,
) -> Iterator[Section]:
    last_line = len(lines)
    before = headings[0].line - 1 if headings else last_line
    yield Section("", document_title or file_name, first, before, _within(fences, first, before))
    trail: list[_Heading] = []
    start = before + 1
    for index, heading in enumerate(headings):
        trail = [*(above for above in trail if above.level < heading.level), heading]
        following = headings[index + 1] if index + 1 < len(headings) else None
        end = following.line - 1 if following else last_line
        if following and following.level > heading.level and _is_bare(lines, heading, end):
            continue
        names = [above.text for above in trail if above.text]
        anchor = _SEPARATOR.join(names)
        if document_title and document_title not in names[:1]:
            names.insert(0, document_title)
        title = _SEPARATOR.join(names) or file_name
        yield Section(anchor, title, start, end, _within(fences, start, end))
        start = end + 1


def _is_bare(lines: Sequence[str], heading: _Heading, end: int) -> bool:
    """Whether nothing but the heading stands in its section (an underline is part of it)."""
    below = [line for line in lines[heading.line : end] if line.strip()]
    return not below or (len(below) == 1 and not below[0].strip().strip("=-"))


def _within(
    ranges: Sequence[tuple[int, int]], first: int, last: int
) -> tuple[tuple[int, int], ...]:
    begin, end = bisect_left(ranges, (first, 0)), bisect_left(ranges, (last + 1, 0))
    return tuple(span for span in ranges[begin:end] if span[1] <= last)
