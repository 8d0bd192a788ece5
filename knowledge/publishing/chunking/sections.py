"""From sections of a file to its chunks: bounds, line ranges, unique anchors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from knowledge.model.chunk import Chunk, ChunkKind
from knowledge.publishing.chunking.tokens import split_lines


@dataclass(frozen=True, slots=True)
class Section:
    """Lines of a file that belong together; 1-based and inclusive.

    ``whole`` are line ranges within it that should not be cut.
    """

    anchor: str
    title: str
    first: int
    last: int
    whole: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What every chunk of one file shares."""

    path: str
    kind: ChunkKind = "document"
    language: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    updated_at: datetime | None = None


def chunk_sections(
    facts: FileFacts, lines: Sequence[str], sections: Iterable[Section], *, max_tokens: int
) -> list[Chunk]:
    """One chunk a section, or several where it exceeds ``max_tokens``; blank ones give none.

    A repeated anchor gets ``~2``, ``~3``; the further pieces of a section ``#2``, ``#3``.
    """
    anchors = Anchors()
    chunks = []
    for section in sections:
        pieces = split_lines(
            lines[section.first - 1 : section.last],
            first=section.first,
            max_tokens=max_tokens,
            whole=section.whole,
        )
        if not pieces:
            continue
        anchor = anchors.take(section.anchor)
        for number, piece in enumerate(pieces, start=1):
            chunks.append(
                Chunk(
                    path=facts.path,
                    anchor=anchor if number == 1 else anchors.take(f"{anchor}#{number}"),
                    title=section.title,
                    text=piece.text,
                    kind=facts.kind,
                    language=facts.language,
                    lines=(piece.first, piece.last),
                    tags=facts.tags,
                    metadata=facts.metadata,
                    updated_at=facts.updated_at,
                )
            )
    return chunks


class Anchors:
    """Hands out anchors that are unique within one path."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._repeats: dict[str, int] = {}

    def take(self, anchor: str) -> str:
        """``anchor``, or ``anchor`` with the lowest free number, ``~2``, ``~3``, …."""
        free, number = anchor, self._repeats.get(anchor, 1)
        while free in self._taken:
            number += 1
            free = f"{anchor}~{number}"
        self._repeats[anchor] = number
        self._taken.add(free)
        return free
