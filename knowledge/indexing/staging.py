"""Pending snapshots of a collection merged into one delta, in order of announcement."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from knowledge.model.chunk import Chunk
from knowledge.model.collection import Collection
from knowledge.model.identity import content_hash, object_id, text_hash
from knowledge.storage.postgres.clock import Opening, StagedKey, StagedScope
from knowledge.storage.snapshots import Snapshot
from knowledge.text.analysis import analyse


@dataclass(frozen=True, slots=True)
class StagedVersion:
    """The version of a source that the delta brings, and the snapshot it came with."""

    source_version: str
    snapshot_id: uuid.UUID


@dataclass(slots=True)
class Delta:
    """What a tick will do. A later snapshot overrides an earlier one where they meet.

    ``keys`` maps source and path to the staged chunks; ``scopes`` maps a source to the paths it
    replaces, or None for the whole source. ``withdrawn`` are chunks that a later snapshot removed
    again: what was said of who may read them holds for the versions that pins still show.
    """

    keys: dict[tuple[str, str], dict[uuid.UUID, StagedKey]] = field(default_factory=dict)
    withdrawn: dict[uuid.UUID, StagedKey] = field(default_factory=dict)
    snapshots: dict[tuple[str, str], Snapshot] = field(default_factory=dict)
    scopes: dict[str, set[str] | None] = field(default_factory=dict)
    versions: dict[str, StagedVersion] = field(default_factory=dict)

    def add(self, snapshot: Snapshot) -> None:
        manifest = snapshot.manifest
        for source in manifest.sources:
            paths = {*source.paths, *source.deleted_paths} if manifest.mode == "delta" else None
            self._replace(source.source_id, paths)
            self.versions[source.source_id] = StagedVersion(
                source.source_version, manifest.snapshot_id
            )
        for row in snapshot.rows():
            key = _key(row)
            place = (key.source_id, key.path)
            self.keys.setdefault(place, {})[key.chunk_id] = key
            self.withdrawn.pop(key.chunk_id, None)
            self.snapshots[place] = snapshot

    def remove_source(self, source_id: str) -> None:
        self._replace(source_id, None)
        self.versions.pop(source_id, None)

    def _replace(self, source_id: str, paths: set[str] | None) -> None:
        """Forget what earlier snapshots staged for the source (or its listed paths)."""
        for place in [
            p for p in self.keys if p[0] == source_id and (paths is None or p[1] in paths)
        ]:
            for key in self.keys.pop(place).values():
                self.withdrawn[key.chunk_id] = replace(key, content_hash=None)
            del self.snapshots[place]
        earlier = self.scopes.get(source_id, set())
        if paths is None or earlier is None:
            self.scopes[source_id] = None
        else:
            self.scopes[source_id] = earlier | paths

    def staged_keys(self) -> Iterator[StagedKey]:
        for chunks in self.keys.values():
            yield from chunks.values()
        yield from self.withdrawn.values()

    def staged_scopes(self) -> Iterator[StagedScope]:
        for source_id, paths in self.scopes.items():
            if paths is None:
                yield StagedScope(source_id, None)
            else:
                yield from (StagedScope(source_id, path) for path in sorted(paths))

    def openings(
        self,
        collection: Collection,
        revision: int,
        changed: Iterable[uuid.UUID],
        projects: dict[str, str],
    ) -> Iterator[Opening]:
        """The changed chunks, analysed and ready to write. ``projects`` is by source."""
        wanted = set(changed)
        for snapshot in dict.fromkeys(self.snapshots.values()):
            for row in snapshot.rows():
                place = (row["source_id"], row["path"])
                chunk_id = uuid.UUID(row["chunk_id"])
                if chunk_id in wanted and self.snapshots.get(place) is snapshot:
                    yield _opening(
                        collection, revision, chunk_id, row, snapshot, projects[row["source_id"]]
                    )


def _key(row: dict[str, Any]) -> StagedKey:
    return StagedKey(
        chunk_id=uuid.UUID(row["chunk_id"]),
        source_id=row["source_id"],
        path=row["path"],
        content_hash=content_hash(_chunk(row)),
        acl=None if row["acl"] is None else tuple(row["acl"]),
    )


def _chunk(row: dict[str, Any]) -> Chunk:
    lines = None if row["line_start"] is None else (row["line_start"], row["line_end"])
    return Chunk(
        path=row["path"],
        anchor=row["anchor"],
        title=row["title"] or "",
        text=row["text"],
        kind=row["kind"],
        language=row["language"],
        lines=lines,
        tags=tuple(row["tags"] or ()),
        metadata=json.loads(row["metadata"] or "{}"),
        acl=None if row["acl"] is None else tuple(row["acl"]),
        updated_at=row["updated_at"],
    )


def _opening(
    collection: Collection,
    revision: int,
    chunk_id: uuid.UUID,
    row: dict[str, Any],
    snapshot: Snapshot,
    project_id: str,
) -> Opening:
    chunk = _chunk(row)
    title = analyse(chunk.title)
    return Opening(
        object_id=object_id(collection.collection_id, chunk_id, revision),
        chunk_id=chunk_id,
        snapshot_id=snapshot.manifest.snapshot_id,
        source_id=row["source_id"],
        project_id=project_id,
        chunk=chunk,
        content_hash=content_hash(chunk),
        text_hash=text_hash(chunk),
        terms=[*title, *analyse(chunk.text)],
        title_terms=title,
    )
