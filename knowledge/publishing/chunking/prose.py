"""Plain text: paragraphs packed up to the bound. Also for every text type without its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from knowledge.model.chunk import Chunk, ChunkKind
from knowledge.publishing.chunking.tokens import split_lines

_TITLE_CHARS: Final = 100
_UNDERLINES: Final = frozenset("=-~^*#+")


def chunk_prose(
    path: str,
    text: str,
    *,
    max_tokens: int,
    kind: ChunkKind = "document",
    language: str | None = None,
) -> list[Chunk]:
    """Chunks of consecutive paragraphs; the anchor is the ordinal, from 1.

    The title is the first line when it looks like one (documents only), else the file name.
    """
    lines = text.split("\n")
    title = (kind == "document" and _title(lines)) or PurePosixPath(path).name
    return [
        Chunk(
            path=path,
            anchor=str(ordinal),
            title=title,
            text=piece.text,
            kind=kind,
            language=language,
            lines=(piece.first, piece.last),
        )
        for ordinal, piece in enumerate(split_lines(lines, max_tokens=max_tokens), start=1)
    ]


def _title(lines: Sequence[str]) -> str | None:
    """The first line with text, when it stands alone or underlined and reads like a title."""
    start = next((index for index, line in enumerate(lines) if line.strip()), None)
    if start is not None and _is_rule(lines[start]):
        start += 1  # a title between two rules, as reStructuredText writes it
    if start is None or start + 1 >= len(lines):
        return None
    title, below = lines[start].strip(), lines[start + 1].strip()
    alone = not below or _is_rule(below)
    reads = title[:1].isalnum() and title[-1:] not in ".,;:{}[]()=" and len(title) <= _TITLE_CHARS
    return title if alone and reads else None


def _is_rule(line: str) -> bool:
    line = line.strip()
    return len(line) >= 3 and line[0] in _UNDERLINES and not line.strip(line[0])
