"""The clock of a collection: which chunk versions a revision holds, and the tick that adds one."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection
from psycopg.types.json import Jsonb

from knowledge.model.chunk import Chunk
from knowledge.model.collection import Collection
from knowledge.storage.postgres.database import Row
from knowledge.text.analysis import count_terms

_COLUMNS = (
    "object_id, tenant_id, collection_id, chunk_id, from_rev, acl_rev, snapshot_id, source_id,"
    " project_id, path, anchor, title, text, kind, language, tags, metadata, line_start, line_end,"
    " acl, updated_at, content_hash, text_hash, words, title_words, terms, session, place"
)


@dataclass(frozen=True, slots=True)
class StagedKey:
    """What the tick compares: a staged chunk's id, place, content hash and ACL.

    ``content_hash`` None says of a chunk only who may read its stored versions.
    """

    chunk_id: uuid.UUID
    source_id: str
    path: str
    content_hash: bytes | None
    acl: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class StagedScope:
    """What a delta replaces: one path of a source, or (``path`` None) the whole source."""

    source_id: str
    path: str | None


@dataclass(frozen=True, slots=True)
class Opening:
    """A chunk version to open, ready to be written; of a turn with its session and place."""

    object_id: uuid.UUID
    chunk_id: uuid.UUID
    snapshot_id: uuid.UUID
    source_id: str
    project_id: str
    chunk: Chunk
    content_hash: bytes
    text_hash: bytes
    terms: Sequence[str]
    title_terms: Sequence[str]
    session: str | None = None
    place: float | None = None


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A turn of a conversation as it stands at the head."""

    chunk_id: uuid.UUID
    source_id: str
    path: str
    session: str
    place: float


def lock_head(connection: Connection[Row], collection: Collection, *, patient: bool = True) -> int:
    """The head revision, locked until the transaction ends.

    Whoever is not ``patient`` waits 5 s for a publish that commits, then gets `Busy`.
    """
    if not patient:
        connection.execute("set local lock_timeout = '5s'")
    row = connection.execute(
        "select head_rev from collections where collection_id = %s for update",
        [collection.collection_id],
    ).fetchone()
    assert row is not None
    return int(row["head_rev"])


def stage(
    connection: Connection[Row], keys: Iterable[StagedKey], scopes: Iterable[StagedScope]
) -> None:
    """Put the staged keys and scopes into temporary tables of this transaction."""
    connection.execute(
        "create temp table staged_keys (chunk_id uuid primary key, source_id text, path text,"
        " content_hash bytea, acl text[]) on commit drop"
    )
    connection.execute("create temp table staged_scopes (source_id text, path text) on commit drop")
    with connection.cursor().copy(
        "copy staged_keys (chunk_id, source_id, path, content_hash, acl) from stdin"
    ) as copy:
        for key in keys:
            acl = None if key.acl is None else list(key.acl)
            copy.write_row((key.chunk_id, key.source_id, key.path, key.content_hash, acl))
    with connection.cursor().copy("copy staged_scopes (source_id, path) from stdin") as copy:
        for scope in scopes:
            copy.write_row((scope.source_id, scope.path))
    connection.execute("analyze staged_keys")
    connection.execute("analyze staged_scopes")


def changed_chunks(connection: Connection[Row], collection: Collection) -> list[uuid.UUID]:
    """Staged chunks that are new, or differ from what is open now."""
    rows = connection.execute(
        "select k.chunk_id from staged_keys k left join chunk_versions v"
        " on v.collection_id = %s and v.chunk_id = k.chunk_id and v.to_rev = 2147483647"
        " where k.content_hash is not null"
        " and (v.chunk_id is null or v.content_hash <> k.content_hash)",
        [collection.collection_id],
    ).fetchall()
    return [row["chunk_id"] for row in rows]


def close_replaced(connection: Connection[Row], collection: Collection, revision: int) -> int:
    """Close open versions in scope that are gone or changed. Returns how many."""
    gone = (
        "with closed as ("
        "update chunk_versions v set to_rev = %(rev)s from staged_scopes s"
        " where v.collection_id = %(c)s and v.to_rev = 2147483647 and v.source_id = s.source_id"
        " and {match} and not exists (select from staged_keys k"
        " where k.chunk_id = v.chunk_id and k.content_hash = v.content_hash)"
        " returning v.snapshot_id),"
        " counted as (select snapshot_id, count(*) as n from closed group by snapshot_id),"
        " noted as (update snapshots s set open_chunks = s.open_chunks - n from counted"
        " where s.snapshot_id = counted.snapshot_id)"
        " select coalesce(sum(n), 0) as n from counted"
    )
    values = {"rev": revision, "c": collection.collection_id}
    closed = 0
    for match in ("s.path is null", "v.path = s.path"):
        row = connection.execute(gone.format(match=match), values).fetchone()
        assert row is not None
        closed += int(row["n"])
    return closed


def overwrite_acls(connection: Connection[Row], collection: Collection, revision: int) -> int:
    """Write staged ACLs into every stored version of the chunk. Returns how many rows changed."""
    return connection.execute(
        "update chunk_versions v set acl = k.acl, acl_rev = %s from staged_keys k"
        " where v.collection_id = %s and v.chunk_id = k.chunk_id and v.acl is distinct from k.acl",
        [revision, collection.collection_id],
    ).rowcount


def open_versions(
    connection: Connection[Row],
    collection: Collection,
    revision: int,
    openings: Iterable[Opening],
) -> int:
    """Insert new versions, visible from ``revision`` on. Returns how many."""
    # PostgreSQL refuses COPY into a table with row-level security, hence the way round.
    connection.execute(
        "create temp table opened (like chunk_versions including defaults) on commit drop"
    )
    with connection.cursor().copy(f"copy opened ({_COLUMNS}) from stdin") as copy:
        for opening in openings:
            copy.write_row(_opening_row(collection, revision, opening))
    opened = connection.execute("insert into chunk_versions select * from opened").rowcount
    connection.execute(
        "update snapshots s set open_chunks = s.open_chunks + n from"
        " (select snapshot_id, count(*) as n from opened group by snapshot_id) counted"
        " where s.snapshot_id = counted.snapshot_id"
    )
    return opened


def _opening_row(collection: Collection, revision: int, opening: Opening) -> Sequence[Any]:
    chunk = opening.chunk
    lines = chunk.lines or (None, None)
    return (
        opening.object_id,
        collection.tenant_id,
        collection.collection_id,
        opening.chunk_id,
        revision,
        revision,
        opening.snapshot_id,
        opening.source_id,
        opening.project_id,
        chunk.path,
        chunk.anchor,
        chunk.title,
        chunk.text,
        chunk.kind,
        chunk.language,
        list(chunk.tags),
        Jsonb(dict(chunk.metadata)),
        *lines,
        None if chunk.acl is None else list(chunk.acl),
        chunk.updated_at,
        opening.content_hash,
        opening.text_hash,
        count_terms(opening.terms),
        count_terms(opening.title_terms),
        sorted(set(opening.terms)),
        opening.session,
        opening.place,
    )


def open_turns(
    connection: Connection[Row], collection: Collection, sessions: Iterable[tuple[str, str]]
) -> list[OpenTurn]:
    """The open turns of these sessions (source and name), in their order."""
    wanted = set(sessions)
    rows = connection.execute(
        "select chunk_id, source_id, path, session, place from chunk_versions"
        " where collection_id = %s and source_id = any(%s) and session = any(%s)"
        " and to_rev = 2147483647 order by source_id, session, place, object_id",
        [
            collection.collection_id,
            sorted({source_id for source_id, _ in wanted}),
            sorted({session for _, session in wanted}),
        ],
    ).fetchall()
    return [OpenTurn(**row) for row in rows if (row["source_id"], row["session"]) in wanted]


def set_source_version(
    connection: Connection[Row],
    collection: Collection,
    revision: int,
    source_id: str,
    version: str,
    snapshot_id: uuid.UUID,
) -> None:
    connection.execute(
        "insert into source_versions"
        " (tenant_id, collection_id, source_id, revision, source_version, snapshot_id)"
        " values (%s, %s, %s, %s, %s, %s)"
        " on conflict (collection_id, source_id, revision) do update"
        " set source_version = excluded.source_version, snapshot_id = excluded.snapshot_id",
        [
            collection.tenant_id,
            collection.collection_id,
            source_id,
            revision,
            version,
            snapshot_id,
        ],
    )


def current_source_versions(connection: Connection[Row], collection: Collection) -> dict[str, str]:
    rows = connection.execute(
        "select distinct on (source_id) source_id, source_version from source_versions"
        " where collection_id = %s order by source_id, revision desc",
        [collection.collection_id],
    ).fetchall()
    return {row["source_id"]: row["source_version"] for row in rows}


def advance(
    connection: Connection[Row],
    collection: Collection,
    revision: int,
    snapshots: Iterable[uuid.UUID] = (),
    *,
    growth: int = 0,
) -> None:
    """Tick: make ``revision`` the head and tie the snapshots to it.

    ``growth`` is how many more chunks are visible in it than before.
    """
    connection.execute(
        "update collections set head_rev = %s, open_chunks = open_chunks + %s"
        " where collection_id = %s",
        [revision, growth, collection.collection_id],
    )
    connection.execute(
        "update snapshots set committed_rev = %s where snapshot_id = any(%s)",
        [revision, list(snapshots)],
    )


def refreeze_statistics(
    connection: Connection[Row], collection: Collection, revision: int, *, growth: float
) -> bool:
    """Freeze term statistics from ``revision`` on when the collection has outgrown the last ones."""
    row = connection.execute(
        "select (select documents from term_statistics where collection_id = %(c)s"
        " order by from_rev desc limit 1) as frozen, open_chunks as visible"
        " from collections where collection_id = %(c)s",
        {"c": collection.collection_id},
    ).fetchone()
    assert row is not None
    frozen, visible = row["frozen"], row["visible"]
    if frozen is not None and frozen / growth <= visible <= max(frozen * growth, frozen + 20):
        return False
    connection.execute("select freeze_statistics(%s, %s)", [collection.collection_id, revision])
    return True


def open_chunks(connection: Connection[Row], collection: Collection) -> int:
    """How many chunks are visible at the head: kept by every tick, not counted."""
    row = connection.execute(
        "select open_chunks from collections where collection_id = %s", [collection.collection_id]
    ).fetchone()
    assert row is not None
    return int(row["open_chunks"])
