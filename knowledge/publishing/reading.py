"""Reading a source: its version, where it came from, and its documents as chunks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from knowledge.errors import InvalidInput
from knowledge.model.chunk import Chunk
from knowledge.publishing.chunking.chunkers import chunk_file
from knowledge.publishing.feed import FeedDocument, read_feed, read_turns
from knowledge.publishing.files import FileSet, SourceFile, collect
from knowledge.publishing.versions import source_version
from knowledge.settings import PublishingSettings


@dataclass(frozen=True, slots=True)
class Document:
    """One path: the SHA-256 of what it holds, and its chunks, made when they are asked for.

    ``session`` is that of a turn of a conversation.
    """

    path: str
    digest: bytes
    chunks: Iterable[Chunk]
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A source being read: its version, where it came from, its documents, what was skipped."""

    default_name: str
    version: str
    origin: str
    documents: Iterator[Document]
    skipped: Mapping[str, int]
    skipped_note: str
    is_feed: bool


def read_source(
    paths: Sequence[Path], *, root: Path | None, rechunk: bool, settings: PublishingSettings
) -> Reading:
    """Read files, folders, git working trees, or one ``.jsonl`` by itself.

    Documents are read as they are asked for, in order of path or of the feed.
    Raises `InvalidInput`, `InvalidDocument` (also while documents are read), `NothingToPublish`.
    """
    feeds = [path for path in paths if path.suffix == ".jsonl"]
    if feeds and len(paths) > 1:
        raise InvalidInput("publish a .jsonl feed by itself, without other PATHs")
    if feeds:
        documents = read_feed(feeds[0], rechunk=rechunk, max_tokens=settings.max_chunk_tokens)
        return _feed(feeds[0], documents)
    files = collect(paths, root=root, settings=settings)
    named = paths[0].resolve() if len(paths) == 1 else files.root
    return Reading(
        default_name=named.name or "files",
        version=source_version(files.root, files.digests),
        origin=str(files.root),
        documents=_chunked(files, settings.max_chunk_tokens),
        skipped=files.skipped,
        skipped_note=files.describe_skipped(),
        is_feed=False,
    )


def read_conversation(paths: Sequence[Path], *, rechunk: bool) -> Reading:
    """Read one ``.jsonl`` of turns, in the order of the file. Raises what `read_source` raises."""
    if len(paths) != 1 or paths[0].suffix != ".jsonl":
        raise InvalidInput(
            "a collection of kind conversation takes one .jsonl of turns, no other files"
        )
    if rechunk:
        raise InvalidInput("a turn is one chunk: leave --chunk out")
    return _feed(paths[0], read_turns(paths[0]))


def _feed(path: Path, documents: Iterator[FeedDocument]) -> Reading:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from error
    return Reading(
        default_name=path.stem,
        version=f"sha256:{digest[:16]}",
        origin=str(path),
        documents=(Document(d.document_id, d.digest, d.chunks, d.session) for d in documents),
        skipped={},
        skipped_note="",
        is_feed=True,
    )


def _chunked(files: FileSet, max_tokens: int) -> Iterator[Document]:
    for file in files.files:
        yield Document(file.path, file.digest, _LazyChunks(file, max_tokens))


class _LazyChunks:
    """The chunks of a file, made only when they are asked for: a delta skips most files."""

    def __init__(self, file: SourceFile, max_tokens: int) -> None:
        self._file, self._max_tokens = file, max_tokens

    def __iter__(self) -> Iterator[Chunk]:
        text = self._file.read_text()
        return iter(chunk_file(self._file.path, text, max_tokens=self._max_tokens))
