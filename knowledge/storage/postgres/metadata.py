"""The metadata index: the analysed words of path, title and tags of every chunk version."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import Connection

from knowledge.model.chunk import ChunkVersion
from knowledge.model.collection import Collection
from knowledge.storage.postgres.database import Row
from knowledge.text.analysis import analyse


def metadata_terms(version: ChunkVersion) -> list[str]:
    """Distinct terms, sorted. Path separators end words; dots and underscores do not."""
    chunk = version.chunk
    words = " ".join([chunk.path.replace("/", " "), chunk.title, *chunk.tags])
    return sorted(set(analyse(words)))


def upsert(
    connection: Connection[Row], collection: Collection, versions: Sequence[ChunkVersion]
) -> int:
    """Write the items of these versions. Returns how many. Path, title and tags never change."""
    connection.cursor().executemany(
        "insert into metadata_items (object_id, tenant_id, collection_id, terms)"
        " values (%s, %s, %s, %s) on conflict (object_id) do update set terms = excluded.terms",
        [
            (
                version.object_id,
                collection.tenant_id,
                collection.collection_id,
                metadata_terms(version),
            )
            for version in versions
        ],
    )
    return len(versions)


def missing(
    connection: Connection[Row], collection: Collection, *, created: int, after: int, upto: int
) -> int:
    """How many versions opened in (after, upto] have no metadata item.

    Those that were closed again when the generation was ``created`` need none.
    """
    row = connection.execute(
        "select count(*) as n from chunk_versions v where v.collection_id = %s"
        " and v.from_rev > %s and v.from_rev <= %s and v.to_rev > %s"
        " and not exists (select from metadata_items m where m.object_id = v.object_id)",
        [collection.collection_id, after, upto, created],
    ).fetchone()
    assert row is not None
    return int(row["n"])
