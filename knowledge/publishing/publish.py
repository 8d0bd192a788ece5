"""Publish: read files or a feed, chunk, write a snapshot, announce it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from knowledge.errors import InvalidInput, NothingToPublish
from knowledge.model.chunk import Chunk
from knowledge.model.collection import Collection
from knowledge.publishing.announcing import Announcement, announce
from knowledge.publishing.chunking.chunkers import chunk_file
from knowledge.publishing.feed import read_feed
from knowledge.publishing.files import FileSet, SourceFile, collect
from knowledge.storage.snapshots import Mode, Snapshot, SnapshotSource, SnapshotWriter
from knowledge.publishing.versions import source_version
from knowledge.runtime import Runtime
from knowledge.storage.postgres import catalogue
from knowledge.storage.postgres.publishing import Acl, published_digests

MAX_SOURCE_CHARS = 512


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """What to publish where. ``source_id`` None is the name of the folder or file.

    ``deleted`` lists paths (or document ids) that a delta removes. ``acl`` unchanged keeps what
    the source has. ``root`` is what citation paths are relative to.
    """

    paths: Sequence[Path]
    project_id: str
    source_id: str | None = None
    mode: Mode = "full"
    acl: tuple[str, ...] | None | Acl = Acl.UNCHANGED
    root: Path | None = None
    rechunk: bool = False
    deleted: Sequence[str] = ()
    revive: bool = False


@dataclass(frozen=True, slots=True)
class Published:
    """What was announced. ``unchanged`` counts paths a delta left out because nothing differs."""

    sequence: int
    snapshot_id: str
    source_id: str
    source_version: str
    mode: Mode
    documents: int
    chunks: int
    unchanged: int
    deleted: int
    skipped: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Document:
    path: str
    digest: bytes
    chunks: Iterable[Chunk]


@dataclass(frozen=True, slots=True)
class _Reading:
    """A source being read: its version, where it came from, its documents, what was skipped."""

    default_name: str
    version: str
    origin: str
    documents: Iterator[_Document]
    skipped: Mapping[str, int]
    is_feed: bool


def publish(runtime: Runtime, collection: Collection, request: PublishRequest) -> Published:
    """Write a verified snapshot and announce it. Nothing is announced when anything fails.

    Raises `NothingToPublish`, `InvalidInput`, `InvalidDocument`, `Conflict`.
    """
    reading = _read(runtime, request)
    source_id = request.source_id or reading.default_name
    _require_source_id(source_id)
    before = _sent_before(runtime, collection, source_id, request)
    digests: dict[str, bytes] = {}
    unchanged = 0
    with SnapshotWriter(
        runtime.home.snapshots_dir,
        tenant_id=collection.tenant_id,
        project_id=request.project_id,
        collection=collection.slug,
        mode=request.mode,
    ) as writer:
        seen = set()
        for document in reading.documents:
            seen.add(document.path)
            if request.mode == "delta" and before.get(document.path) == document.digest:
                unchanged += 1
                continue
            digests[document.path] = document.digest
            for chunk in document.chunks:
                writer.add(source_id, reading.version, chunk)
        deleted = sorted(
            {
                *request.deleted,
                *_gone(runtime, collection, source_id, request, reading, before, seen),
            }
        )
        if not digests and not deleted and request.mode == "full":
            raise NothingToPublish(f"nothing to publish in {reading.origin}: it holds no document")
        snapshot = writer.finish(
            [
                SnapshotSource(
                    source_id=source_id,
                    source_version=reading.version,
                    chunk_count=0,
                    paths=tuple(sorted(digests)) if request.mode == "delta" else (),
                    deleted_paths=tuple(deleted),
                )
            ],
            dict(reading.skipped),
        )
    snapshot.verify()
    sequence = announce(
        runtime.app,
        collection,
        Announcement(
            snapshot,
            acl=request.acl,
            origin=None if reading.is_feed else reading.origin,
            revive=request.revive,
            digests={source_id: digests},
        ),
    )
    return _published(sequence, snapshot, source_id, len(digests), unchanged)


def _published(
    sequence: int, snapshot: Snapshot, source_id: str, documents: int, unchanged: int
) -> Published:
    manifest = snapshot.manifest
    return Published(
        sequence=sequence,
        snapshot_id=str(manifest.snapshot_id),
        source_id=source_id,
        source_version=manifest.sources[0].source_version,
        mode=manifest.mode,
        documents=documents,
        chunks=manifest.chunk_count,
        unchanged=unchanged,
        deleted=len(manifest.sources[0].deleted_paths),
        skipped=manifest.skipped,
    )


def _read(runtime: Runtime, request: PublishRequest) -> _Reading:
    feeds = [path for path in request.paths if path.suffix == ".jsonl"]
    if feeds and len(request.paths) > 1:
        raise InvalidInput("publish a .jsonl feed by itself, without other PATHs")
    if feeds:
        return _read_feed(feeds[0], request, runtime.settings.publishing.max_chunk_tokens)
    files = collect(request.paths, root=request.root, settings=runtime.settings.publishing)
    named = request.paths[0].resolve() if len(request.paths) == 1 else files.root
    return _Reading(
        default_name=named.name or "files",
        version=source_version(files.root, files.digests),
        origin=str(files.root),
        documents=_chunked(files, runtime.settings.publishing.max_chunk_tokens),
        skipped=files.skipped,
        is_feed=False,
    )


def _read_feed(path: Path, request: PublishRequest, max_tokens: int) -> _Reading:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from error
    documents = read_feed(path, rechunk=request.rechunk, max_tokens=max_tokens)
    return _Reading(
        default_name=path.stem,
        version=f"sha256:{digest[:16]}",
        origin=str(path),
        documents=(_Document(d.document_id, d.digest, d.chunks) for d in documents),
        skipped={},
        is_feed=True,
    )


def _chunked(files: FileSet, max_tokens: int) -> Iterator[_Document]:
    for file in files.files:
        yield _Document(file.path, file.digest, _LazyChunks(file, max_tokens))


class _LazyChunks:
    """The chunks of a file, made only when they are asked for: a delta skips most files."""

    def __init__(self, file: SourceFile, max_tokens: int) -> None:
        self._file, self._max_tokens = file, max_tokens

    def __iter__(self) -> Iterator[Chunk]:
        text = self._file.read_text()
        return iter(chunk_file(self._file.path, text, max_tokens=self._max_tokens))


def _sent_before(
    runtime: Runtime, collection: Collection, source_id: str, request: PublishRequest
) -> dict[str, bytes]:
    if request.mode == "full":
        return {}
    return published_digests(runtime.app, collection, source_id)


def _gone(
    runtime: Runtime,
    collection: Collection,
    source_id: str,
    request: PublishRequest,
    reading: _Reading,
    before: Mapping[str, bytes],
    seen: set[str],
) -> set[str]:
    """Paths sent before that are missing now, where the same folder is published whole again.

    A feed, a single file or another folder holds only what changed: nothing is inferred there.
    """
    if request.mode == "full" or reading.is_feed:
        return set()
    if len(request.paths) != 1 or request.paths[0].resolve() != Path(reading.origin):
        return set()
    source = catalogue.find_source(runtime.app, collection, source_id)
    if source is None or source.origin != reading.origin:
        return set()
    return set(before) - seen


def _require_source_id(source_id: str) -> None:
    if not 1 <= len(source_id) <= MAX_SOURCE_CHARS or not source_id.isprintable():
        raise InvalidInput(
            f"source names have 1 to {MAX_SOURCE_CHARS} printable characters: --source NAME"
        )
