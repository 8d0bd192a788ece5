"""The hybrid index in PostgreSQL with pgvector, written: one table for all generations."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, LiteralString

from pgvector.psycopg import register_vector

from knowledge.errors import InvalidInput, PartialWrite
from knowledge.model.chunk import ChunkVersion
from knowledge.model.revision import Generation
from knowledge.storage.backend import StoredItem, Vector, require_finite
from knowledge.storage.pgvector.probe import server_version, translated
from knowledge.storage.pgvector.schema import (
    COLUMNS,
    SCHEMA_VERSION,
    class_name,
    decoded,
    generation_key,
    query_words,
    row,
)
from knowledge.storage.postgres.database import Database, Transaction

_BATCH: Final = 1000
_BINARY: Final = ("embedding", "words")
_UPSERT: Final = "insert into hybrid_items ({}) values ({}) on conflict {} do update set {}".format(
    ", ".join(COLUMNS),
    ", ".join("%b" if column in _BINARY else "%s" for column in COLUMNS),
    "(generation, object_id)",
    ", ".join(f"{column} = excluded.{column}" for column in COLUMNS[3:]),
)
_ITEMS: Final = """
    select object_id, from_rev, to_rev, acl,
           case when %(with_vectors)s then vector_send(embedding) end as vector
    from hybrid_items
    where generation = %(generation)s and object_id > %(after)s
    order by object_id limit %(limit)s
"""


class PgvectorIndex:
    """Implements `HybridIndex` as the application role, each method a transaction of its own.

    The database is the caller's to close.
    """

    name = "pgvector"

    def __init__(self, database: Database) -> None:
        self._database = database

    def close(self) -> None:
        pass

    def version(self) -> str:
        return server_version(self._database)

    def schema_fingerprint(self) -> str:
        return SCHEMA_VERSION

    def class_name(self, profile: str | None) -> str:
        return class_name(profile)

    def create_generation(self, generation: Generation, *, with_vectors: bool) -> None:
        """Nothing: a generation is its rows."""

    def upsert(
        self, generation: Generation, versions: Sequence[ChunkVersion], vectors: Vector | None
    ) -> None:
        require_finite(vectors)
        rows = (
            row(generation, version, None if vectors is None else vectors[place])
            for place, version in enumerate(versions)
        )
        try:
            with self._transaction(generation) as connection:
                register_vector(connection)
                connection.cursor().executemany(_UPSERT, rows)
        except InvalidInput as error:
            # PostgreSQL writes all or nothing.
            raise PartialWrite(
                f"PostgreSQL refused {len(versions)} items: {error.__cause__}",
                refused=len(versions),
            ) from error

    def count(self, generation: Generation) -> int:
        [found] = self._rows(
            generation,
            "select count(*) as items from hybrid_items where generation = %(generation)s",
        )
        return int(found["items"])

    def items(
        self,
        generation: Generation,
        *,
        after: uuid.UUID | None = None,
        limit: int | None = None,
        with_vectors: bool = False,
    ) -> Iterator[StoredItem]:
        after, left = after or uuid.UUID(int=0), limit
        while left is None or left > 0:
            size = _BATCH if left is None else min(left, _BATCH)
            found = self._rows(
                generation, _ITEMS, after=after, limit=size, with_vectors=with_vectors
            )
            yield from map(_stored, found)
            if len(found) < size:
                return
            after, left = found[-1]["object_id"], None if left is None else left - size

    def delete(self, generation: Generation, object_ids: Sequence[uuid.UUID]) -> None:
        self._execute(
            generation,
            "delete from hybrid_items where generation = %(generation)s and object_id = any(%(ids)s)",
            ids=list(object_ids),
        )

    def probe(self, generation: Generation, version: ChunkVersion) -> bool:
        terms = dict.fromkeys(version.analysed.split(), 1.0)
        words = query_words(terms, terms)
        if words is None:
            return True
        return bool(
            self._rows(
                generation,
                "select from hybrid_items where generation = %(generation)s and object_id = %(id)s"
                " and words <#> %(words)s::sparsevec < 0",
                id=version.object_id,
                words=words,
            )
        )

    def drop_generation(self, generation: Generation) -> None:
        self._execute(generation, "delete from hybrid_items where generation = %(generation)s")

    def _rows(
        self, generation: Generation, query: LiteralString, **values: Any
    ) -> list[dict[str, Any]]:
        values["generation"] = generation_key(generation)
        with self._transaction(generation) as connection:
            return connection.execute(query, values).fetchall()

    def _execute(self, generation: Generation, query: LiteralString, **values: Any) -> None:
        values["generation"] = generation_key(generation)
        with self._transaction(generation) as connection:
            connection.execute(query, values)

    @contextmanager
    def _transaction(self, generation: Generation) -> Iterator[Transaction]:
        with translated(), self._database.tenant(generation.tenant_id) as connection:
            yield connection


def _stored(found: dict[str, Any]) -> StoredItem:
    acl = found["acl"]
    return StoredItem(
        object_id=found["object_id"],
        from_rev=found["from_rev"],
        to_rev=found["to_rev"],
        acl=None if acl is None else tuple(acl),
        vector=decoded(found["vector"]),
    )
