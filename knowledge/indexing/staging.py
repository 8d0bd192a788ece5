"""Pending snapshots of a collection merged into one delta, in order of announcement."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from knowledge.errors import InvalidInput, InvalidSnapshot
from knowledge.indexing.turns import merged, placed
from knowledge.model.chunk import Chunk
from knowledge.model.collection import Collection
from knowledge.model.identity import content_hash, object_id, text_hash, turn_hash
from knowledge.model.turn import Placed, read_turn
from knowledge.storage.postgres.clock import Opening, OpenTurn, StagedKey, StagedScope
from knowledge.storage.snapshots import Snapshot
from knowledge.text.analysis import analyse


@dataclass(frozen=True, slots=True)
class StagedVersion:
    """The version of a source that the delta brings, and the snapshot it came with."""

    source_version: str
    snapshot_id: uuid.UUID


@dataclass(frozen=True, slots=True)
class Told:
    """The turns of a source that one snapshot tells, by session and in order.

    ``is_full`` says that they are all of the source's.
    """

    source_id: str
    is_full: bool
    sessions: Mapping[str, Sequence[uuid.UUID]]

    def homes(self) -> dict[uuid.UUID, str]:
        """The session that it tells each turn in."""
        return {turn: session for session, told in self.sessions.items() for turn in told}


@dataclass(slots=True)
class Delta:
    """What a tick will do. A later snapshot overrides an earlier one where they meet.

    ``keys`` maps source and path to the staged chunks; ``scopes`` maps a source to the paths it
    replaces, or None for the whole source. ``withdrawn`` are chunks that a later snapshot removed
    again: what was said of who may read them holds for the versions that pins still show.
    ``has_turns`` says that the chunks are turns of a conversation; ``turns`` is then where they
    stand, once `place_turns` found it.
    """

    keys: dict[tuple[str, str], dict[uuid.UUID, StagedKey]] = field(default_factory=dict)
    has_turns: bool = False
    withdrawn: dict[uuid.UUID, StagedKey] = field(default_factory=dict)
    snapshots: dict[tuple[str, str], Snapshot] = field(default_factory=dict)
    scopes: dict[str, set[str] | None] = field(default_factory=dict)
    versions: dict[str, StagedVersion] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)
    turns: dict[uuid.UUID, Placed] = field(default_factory=dict)

    def add(self, snapshot: Snapshot) -> None:
        manifest = snapshot.manifest
        for source in manifest.sources:
            paths = {*source.paths, *source.deleted_paths} if manifest.mode == "delta" else None
            self._replace(source.source_id, paths)
            self.versions[source.source_id] = StagedVersion(
                source.source_version, manifest.snapshot_id
            )
        sessions: dict[str, dict[str, list[uuid.UUID]]] = {}
        for row in snapshot.rows():
            key = _key(row)
            if self.has_turns:
                turn = read_turn(json.loads(row["metadata"] or "{}"))
                told = sessions.setdefault(key.source_id, {})
                told.setdefault(turn.session, []).append(key.chunk_id)
            place = (key.source_id, key.path)
            self.keys.setdefault(place, {})[key.chunk_id] = key
            self.withdrawn.pop(key.chunk_id, None)
            self.snapshots[place] = snapshot
        is_full = manifest.mode == "full"
        self.told += [Told(source, is_full, told) for source, told in sessions.items()]

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

    @property
    def sessions(self) -> set[tuple[str, str]]:
        """Source and session of every turn that is staged."""
        return {(told.source_id, session) for told in self.told for session in told.sessions}

    def place_turns(self, open_turns: Iterable[OpenTurn]) -> None:
        """Find the place of every staged turn, beside the open ones of its session.

        ``open_turns`` are those of `sessions` in their order. A turn's place is part of what makes
        it changed.
        """
        staged = {key.chunk_id for chunks in self.keys.values() for key in chunks.values()}
        known = [turn for turn in open_turns if turn.chunk_id in staged or not self._removes(turn)]
        places = {turn.chunk_id: Placed(turn.session, turn.place) for turn in known}
        for session, order in _orders(self.told, known).items():
            of_session = {
                turn: places[turn].place
                for turn in order
                if turn in places and places[turn].session == session[1]
            }
            present = [turn for turn in order if turn in staged or turn in of_session]
            for turn, place in placed(present, of_session, staged).items():
                self.turns[turn] = Placed(session[1], place)
        for chunks in self.keys.values():
            for key in chunks.values():
                assert key.content_hash is not None
                changed = turn_hash(key.content_hash, self.turns[key.chunk_id])
                chunks[key.chunk_id] = replace(key, content_hash=changed)

    def _removes(self, turn: OpenTurn) -> bool:
        paths = self.scopes.get(turn.source_id, set())
        return paths is None or turn.path in paths

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
                    opening = _opening(
                        collection, revision, chunk_id, row, snapshot, projects[row["source_id"]]
                    )
                    turn = self.turns.get(chunk_id)
                    yield opening if turn is None else _of_turn(opening, turn)


def require_turns(snapshot: Snapshot) -> None:
    """Raise `InvalidSnapshot` where a chunk for a collection of a conversation is no turn."""
    for row in snapshot.rows(["path", "metadata"]):
        try:
            read_turn(json.loads(row["metadata"] or "{}"))
        except InvalidInput as error:
            raise InvalidSnapshot(f"chunk of {row['path']!r}: {error.message}") from error


def _orders(
    told: Iterable[Told], known: Iterable[OpenTurn]
) -> dict[tuple[str, str], list[uuid.UUID]]:
    """The turns of each source and session in order, after everything that was told."""
    orders: dict[tuple[str, str], list[uuid.UUID]] = {}
    for turn in known:
        orders.setdefault((turn.source_id, turn.session), []).append(turn.chunk_id)
    for telling in told:
        homes = telling.homes()
        for place, order in orders.items():  # a turn stands in one session at a time
            if place[0] == telling.source_id:
                orders[place] = [turn for turn in order if homes.get(turn, place[1]) == place[1]]
        for session, turns in telling.sessions.items():
            place = (telling.source_id, session)
            orders[place] = list(turns) if telling.is_full else merged(orders.get(place, []), turns)
    return orders


def _of_turn(opening: Opening, turn: Placed) -> Opening:
    changed = turn_hash(opening.content_hash, turn)
    return replace(opening, content_hash=changed, session=turn.session, place=turn.place)


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
