"""Which chunker a file gets: decided by its suffix."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final, Protocol

from knowledge.model.chunk import Chunk
from knowledge.publishing.chunking.code import chunk_code
from knowledge.publishing.chunking.languages import language_of
from knowledge.publishing.chunking.markdown import chunk_markdown
from knowledge.publishing.chunking.prose import chunk_prose
from knowledge.publishing.chunking.tokens import split_lines


class Chunker(Protocol):
    """Cuts the text of a file into chunks of at most ``max_tokens`` tokens, in line order."""

    def __call__(self, path: str, text: str, *, max_tokens: int) -> list[Chunk]: ...


CHUNKERS: Final[dict[str, Chunker]] = {
    ".md": chunk_markdown,
    ".markdown": chunk_markdown,
    ".mdx": chunk_markdown,
    ".mkd": chunk_markdown,
}
"""Chunkers of document formats by suffix; source code is told apart by its language."""


def chunk_file(path: str, text: str, *, max_tokens: int) -> list[Chunk]:
    r"""The chunks of one file, in line order; none when it is blank.

    ``text`` has ``\n`` line ends. Every line that is not blank is in a chunk (front matter is
    metadata instead), anchors are unique, line ranges exact, and no chunk's text exceeds
    ``max_tokens`` tokens.
    """
    if chunker := CHUNKERS.get(PurePosixPath(path).suffix.lower()):
        return chunker(path, text, max_tokens=max_tokens)
    if language := language_of(path, text):
        return chunk_code(path, text, language=language, max_tokens=max_tokens)
    return chunk_prose(path, text, max_tokens=max_tokens)


def chunk_snippet(whole: Chunk, *, max_tokens: int) -> list[Chunk]:
    """A document that has no file, as chunks of at most ``max_tokens`` tokens in order.

    Everything but text and anchor is the document's; the anchor is the ordinal, from 1.
    """
    pieces = split_lines(whole.text.split("\n"), max_tokens=max_tokens)
    return [
        replace(whole, anchor=str(ordinal), text=piece.text)
        for ordinal, piece in enumerate(pieces, start=1)
    ]
