"""Publish: read files or a feed, chunk, write a snapshot, announce it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from knowledge.errors import DatabaseUnavailable, InvalidInput, KnowledgeError, NothingToPublish
from knowledge.model.collection import Collection
from knowledge.publishing.announcing import Announcement, announce
from knowledge.publishing.reading import Document, Reading, read_conversation, read_source
from knowledge.runtime import Runtime
from knowledge.storage.postgres import catalogue
from knowledge.storage.postgres.publishing import Acl, published_digests
from knowledge.storage.snapshot_writer import SnapshotWriter
from knowledge.storage.snapshots import Mode, Snapshot, SnapshotSource

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
    acl: tuple[str, ...] | Acl | None = Acl.UNCHANGED
    root: Path | None = None
    rechunk: bool = False
    deleted: Sequence[str] = ()
    revive: bool = False


@dataclass(frozen=True, slots=True)
class Published:
    """What was announced. ``unchanged`` counts paths a delta left out because nothing differs.

    ``skipped_note`` names examples, e.g. ``2 binary (a.png, b.png)``; empty without any.
    """

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
    skipped_note: str = ""


@dataclass(frozen=True, slots=True)
class _Sent:
    """The source as the publisher left it: the path to digest it remembers, and its folder."""

    source_id: str
    exists: bool
    origin: str | None
    digests: Mapping[str, bytes]


@dataclass(slots=True)
class _Selection:
    """What one publish sends: the digests of its documents, the rest counted or listed."""

    digests: dict[str, bytes] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    unchanged: int = 0
    deleted: tuple[str, ...] = ()


def publish(
    runtime: Runtime,
    collection: Collection,
    request: PublishRequest,
    *,
    establish: Callable[[], Collection] | None = None,
) -> Published:
    """Write a verified snapshot and announce it. Nothing is announced or left when anything fails.

    ``establish`` creates what is new: called once the snapshot is good, it returns the collection
    to announce in; ``collection`` then only has to have the same tenant, slug and kind.
    Raises `NothingToPublish`, `InvalidInput`, `InvalidDocument`, `Conflict`.
    """
    reading = (
        read_conversation(request.paths, rechunk=request.rechunk)
        if collection.kind == "conversation"
        else read_source(
            request.paths,
            root=request.root,
            rechunk=request.rechunk,
            settings=runtime.settings.publishing,
        )
    )
    source_id = request.source_id or reading.default_name
    _require_source_id(source_id)
    sent = _sent_before(runtime, collection, source_id, request)
    snapshot, selection = _write(runtime, collection, request, reading, sent)
    try:
        snapshot.verify()
        sequence = announce(
            runtime.app,
            establish() if establish else collection,
            Announcement(
                snapshot,
                acl=request.acl,
                origin=_origin(request, reading, sent),
                revive=request.revive,
                digests={source_id: selection.digests},
            ),
        )
    except DatabaseUnavailable:
        raise  # whether it was announced is not known: an announced snapshot must stay
    except KnowledgeError:
        snapshot.discard()
        raise
    return _published(sequence, snapshot, selection, reading)


def _write(
    runtime: Runtime,
    collection: Collection,
    request: PublishRequest,
    reading: Reading,
    sent: _Sent,
) -> tuple[Snapshot, _Selection]:
    selection = _Selection()
    with SnapshotWriter(
        runtime.home.snapshots_dir,
        tenant_id=collection.tenant_id,
        project_id=request.project_id,
        collection=collection.slug,
        mode=request.mode,
    ) as writer:
        for document in _selected(request, reading, sent, selection):
            selection.digests[document.path] = document.digest
            for chunk in document.chunks:
                writer.add(sent.source_id, reading.version, chunk)
        selection.deleted = _deleted(request, reading, sent, selection.seen)
        if request.mode == "full" and not selection.digests:
            raise NothingToPublish(f"nothing to publish in {reading.origin}: it holds no document")
        source = SnapshotSource(
            source_id=sent.source_id,
            source_version=reading.version,
            chunk_count=0,
            paths=tuple(sorted(selection.digests)) if request.mode == "delta" else (),
            deleted_paths=selection.deleted,
        )
        return writer.finish([source], dict(reading.skipped)), selection


def _selected(
    request: PublishRequest, reading: Reading, sent: _Sent, selection: _Selection
) -> Iterator[Document]:
    """The documents to send: all, or for a delta those that differ from what was sent last.

    A turn that is sent brings the one before it in its session: that tells where it stands.
    """
    before: dict[str, Document] = {}
    for document in reading.documents:
        selection.seen.add(document.path)
        session = document.session or ""
        if request.mode == "delta" and sent.digests.get(document.path) == document.digest:
            selection.unchanged += 1
            if document.session is not None:
                before[session] = document
            continue
        if session in before:
            selection.unchanged -= 1
            yield before.pop(session)
        yield document


def _published(
    sequence: int, snapshot: Snapshot, selection: _Selection, reading: Reading
) -> Published:
    manifest = snapshot.manifest
    return Published(
        sequence=sequence,
        snapshot_id=str(manifest.snapshot_id),
        source_id=manifest.sources[0].source_id,
        source_version=manifest.sources[0].source_version,
        mode=manifest.mode,
        documents=len(selection.digests),
        chunks=manifest.chunk_count,
        unchanged=selection.unchanged,
        deleted=len(selection.deleted),
        skipped=manifest.skipped,
        skipped_note=reading.skipped_note,
    )


def _sent_before(
    runtime: Runtime, collection: Collection, source_id: str, request: PublishRequest
) -> _Sent:
    if request.mode == "full":
        return _Sent(source_id, False, None, {})
    source = catalogue.find_source(runtime.app, collection, source_id)
    return _Sent(
        source_id,
        exists=source is not None,
        origin=source.origin if source else None,
        digests=published_digests(runtime.app, collection, source_id),
    )


def _deleted(
    request: PublishRequest, reading: Reading, sent: _Sent, seen: set[str]
) -> tuple[str, ...]:
    """The paths a delta removes: those named, and those missing where that can be told."""
    for path in request.deleted:
        if path in seen:
            raise InvalidInput(f"{path} is published and deleted at once: leave one out")
        if sent.digests and path not in sent.digests:
            raise InvalidInput(f"source {sent.source_id} holds no {path} that could be deleted")
    gone = set(sent.digests) - seen if _is_same_folder(request, reading, sent) else set()
    return tuple(sorted({*request.deleted, *gone}))


def _is_same_folder(request: PublishRequest, reading: Reading, sent: _Sent) -> bool:
    """Whether the folder sent before is published whole again: what is missing is then gone.

    A feed, a single file or another folder holds only what changed: nothing is inferred there.
    """
    return (
        request.mode == "delta"
        and _is_whole_folder(request, reading)
        and sent.origin == reading.origin
    )


def _is_whole_folder(request: PublishRequest, reading: Reading) -> bool:
    if reading.is_feed or len(request.paths) != 1:
        return False
    return request.paths[0].resolve() == Path(reading.origin)


def _origin(request: PublishRequest, reading: Reading, sent: _Sent) -> str | None:
    """The folder to remember; None keeps the one known: a delta of a part does not move a source."""
    if reading.is_feed:
        return None
    if request.mode == "full":
        return reading.origin
    return reading.origin if not sent.exists and _is_whole_folder(request, reading) else None


def _require_source_id(source_id: str) -> None:
    if not 1 <= len(source_id) <= MAX_SOURCE_CHARS or not source_id.isprintable():
        raise InvalidInput(
            f"source names have 1 to {MAX_SOURCE_CHARS} printable characters: --source NAME"
        )
