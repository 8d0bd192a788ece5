"""Chunk versions read for an index, in batches, and counted."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Final

from psycopg import Connection

from knowledge.model.chunk import Chunk, ChunkVersion
from knowledge.model.collection import Collection
from knowledge.model.revision import OPEN
from knowledge.storage.postgres.database import Database, Row
from knowledge.text.analysis import expand_terms

_INDEXED = (
    "object_id, chunk_id, from_rev, to_rev, source_id, project_id, path, anchor, title, text,"
    " kind, language, tags, line_start, line_end, acl, updated_at, text_hash, words, title_words"
)
"""What an index writes and a profile embeds: the metadata is neither."""

_VISIBLE_AT: Final = "from_rev <= %(upto)s and %(upto)s < to_rev"
_HELD: Final = "from_rev <= %(upto)s and to_rev > %(created)s"
_CHANGED: Final = (
    "(from_rev > %(after)s and from_rev <= %(upto)s"
    " or to_rev > %(after)s and to_rev <= %(upto)s"
    " or acl_rev > %(after)s and acl_rev <= %(upto)s)"
)


def versions_visible(
    app: Database, collection: Collection, revision: int
) -> Iterator[list[ChunkVersion]]:
    """Batches of what is visible in ``revision``: what a new generation starts with."""
    return _batches(app, collection, _VISIBLE_AT, upto=revision)


def versions_held(
    app: Database, collection: Collection, *, created: int, upto: int
) -> Iterator[list[ChunkVersion]]:
    """Batches of all that a generation made at ``created`` holds at clock ``upto``."""
    return _batches(app, collection, _HELD, upto=upto, created=created)


def versions_changed(
    app: Database, collection: Collection, *, after: int, upto: int
) -> Iterator[list[ChunkVersion]]:
    """Batches of the versions opened, closed, or given another ACL in (after, upto]."""
    return _batches(app, collection, _CHANGED, upto=upto, after=after)


def versions_with_new_acl(
    app: Database, collection: Collection, *, after: int, upto: int, created: int, applied: int
) -> Iterator[list[ChunkVersion]]:
    """Those of a retired generation (``created`` to ``applied``) whose ACL changed since."""
    condition = (
        "acl_rev > %(after)s and acl_rev <= %(to)s and from_rev <= %(upto)s"
        " and to_rev > %(created)s"
    )
    return _batches(app, collection, condition, upto=applied, after=after, to=upto, created=created)


def latest_versions(
    app: Database, collection: Collection, revision: int, count: int
) -> list[ChunkVersion]:
    """A few of the versions visible in ``revision``, those opened last first."""
    with app.tenant(collection.tenant_id) as connection:
        rows = connection.execute(
            f"select {_INDEXED} from chunk_versions where collection_id = %(c)s and {_VISIBLE_AT}"
            " order by from_rev desc limit %(n)s",
            {"c": collection.collection_id, "upto": revision, "n": count},
        ).fetchall()
    return [_version(row, revision) for row in rows]


def _batches(
    app: Database, collection: Collection, condition: str, *, upto: int, size: int = 1000, **at: int
) -> Iterator[list[ChunkVersion]]:
    """In order of object id. A close after ``upto`` belongs to a later round: it shows as open."""
    last = uuid.UUID(int=0)
    while True:
        with app.tenant(collection.tenant_id) as connection:
            rows = connection.execute(
                f"select {_INDEXED} from chunk_versions where collection_id = %(c)s"
                f" and {condition} and object_id > %(last)s order by object_id limit %(n)s",
                {"c": collection.collection_id, "upto": upto, **at, "last": last, "n": size},
            ).fetchall()
        if not rows:
            return
        last = rows[-1]["object_id"]
        yield [_version(row, upto) for row in rows]


def _version(row: Row, upto: int) -> ChunkVersion:
    lines = None if row["line_start"] is None else (row["line_start"], row["line_end"])
    return ChunkVersion(
        object_id=row["object_id"],
        chunk_id=row["chunk_id"],
        from_rev=row["from_rev"],
        to_rev=row["to_rev"] if row["to_rev"] <= upto else OPEN,
        source_id=row["source_id"],
        project_id=row["project_id"],
        chunk=Chunk(
            path=row["path"],
            anchor=row["anchor"],
            title=row["title"],
            text=row["text"],
            kind=row["kind"],
            language=row["language"],
            lines=lines,
            tags=tuple(row["tags"]),
            acl=None if row["acl"] is None else tuple(row["acl"]),
            updated_at=row["updated_at"],
        ),
        analysed=" ".join([expand_terms(row["words"]), expand_terms(row["title_words"])]).strip(),
        text_hash=row["text_hash"],
    )


def count_versions(
    connection: Connection[Row], collection: Collection, *, created: int, upto: int
) -> int:
    """How many versions a generation created at ``created`` holds at clock ``upto``."""
    row = connection.execute(
        "select count(*) as n from chunk_versions where collection_id = %s"
        " and from_rev <= %s and to_rev > %s",
        [collection.collection_id, upto, created],
    ).fetchone()
    assert row is not None
    return int(row["n"])


def count_opened(
    connection: Connection[Row], collection: Collection, *, after: int, upto: int
) -> int:
    """How many versions were opened in (after, upto]."""
    row = connection.execute(
        "select count(*) as n from chunk_versions"
        " where collection_id = %s and from_rev > %s and from_rev <= %s",
        [collection.collection_id, after, upto],
    ).fetchone()
    assert row is not None
    return int(row["n"])
