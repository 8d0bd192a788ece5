"""What a search reads from PostgreSQL: the two SQL legs and the candidates' rows."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from knowledge.storage.backend import Hit, ScopeFilter
from knowledge.storage.postgres.database import AsyncDatabase, Row

_SEARCH: Final = {
    "full_text": "select * from search_full_text(%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s)",
    "metadata": "select * from search_metadata(%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s)",
}
METADATA_COVERAGE: Final = 0.6
"""Share of a query's summed idf that path, title and tags must hold."""

# By primary key, whatever the statistics of a table filled a moment ago: "is not distinct from"
# keeps the indexes that begin with the collection out of the choice.
_IN_SCOPE: Final = """
    from chunk_versions c
    where c.object_id = any(%(ids)s) and c.collection_id is not distinct from %(collection)s
      and c.from_rev <= %(rev)s and %(rev)s < c.to_rev
      and c.project_id = %(project)s and c.source_id = any(%(sources)s)
      and (c.acl is null or c.acl && %(acl)s)
"""
_ADMITTED: Final = "select c.object_id" + _IN_SCOPE
_CANDIDATES: Final = (
    "select c.object_id, c.chunk_id, c.source_id, c.path, c.title, c.kind, c.language,"
    " c.line_start, c.line_end, c.words, c.title_words, c.text, c.updated_at,"
    " c.session, c.place, case when c.session is not null then c.metadata->>'speaker' end as speaker,"
    " jsonb_build_object('tags', c.tags, 'metadata', c.metadata)::text as extras" + _IN_SCOPE
)
_VISIBLE: Final = """
    select c.chunk_id, c.object_id from chunk_versions c
    where c.collection_id = %(collection)s and c.chunk_id = any(%(chunks)s)
      and c.from_rev <= %(rev)s and %(rev)s < c.to_rev
      and c.project_id = %(project)s and c.source_id = any(%(sources)s)
      and (c.acl is null or c.acl && %(acl)s)
"""
_READABLE_VERSIONS: Final = """
    select col.slug, c.object_id, c.from_rev, c.to_rev, c.source_id, s.trust_tier, c.path, c.kind,
           c.language, c.tags, c.updated_at, c.words, c.title_words, c.session,
           m.terms as metadata_terms
    from collections col
    join chunk_versions c on c.collection_id = col.collection_id and c.chunk_id = %(chunk)s
    join sources s on s.collection_id = c.collection_id and s.source_id = c.source_id
    left join metadata_items m on m.object_id = c.object_id
    where c.project_id = %(project)s and s.project_id = %(project)s and s.deleted_at is null
      and (s.acl is null or s.acl && %(acl)s) and (c.acl is null or c.acl && %(acl)s)
    order by c.from_rev
"""
MAX_CACHED_ROWS: Final = 20_000
"""About 5 KB each."""


async def search_full_text(
    database: AsyncDatabase,
    collection_id: uuid.UUID,
    scope: ScopeFilter,
    weights: Mapping[str, float],
    limit: int,
) -> list[Hit]:
    """Items holding any of the weighted terms, by the summed weight of those they hold."""
    values = [*scope_values(collection_id, scope), list(weights), list(weights.values()), limit]
    return await _hits(database, scope, _SEARCH["full_text"], [*values, *filter_values(scope)])


async def search_metadata(
    database: AsyncDatabase,
    collection_id: uuid.UUID,
    scope: ScopeFilter,
    weights: Mapping[str, float],
    limit: int,
) -> list[Hit]:
    """Items whose path, title and tags hold most of the query; the score is the share held."""
    terms = [list(weights), list(weights.values()), METADATA_COVERAGE, limit]
    values = [*scope_values(collection_id, scope), *terms, *filter_values(scope)]
    return await _hits(database, scope, _SEARCH["metadata"], values)


async def visible_objects(
    database: AsyncDatabase,
    collection_id: uuid.UUID,
    scope: ScopeFilter,
    chunk_ids: Sequence[uuid.UUID],
) -> dict[uuid.UUID, uuid.UUID]:
    """Chunk id to the id of its version that the scope admits at its revision."""
    values = {
        "collection": collection_id,
        "rev": scope.revision,
        "project": scope.project_id,
        "sources": list(scope.sources),
        "acl": list(scope.acl),
        "chunks": list(chunk_ids),
    }
    [rows] = await database.rows(scope.tenant_id, (_VISIBLE, values))
    return {row["chunk_id"]: row["object_id"] for row in rows}


async def readable_versions(
    database: AsyncDatabase,
    tenant_id: str,
    project_id: str,
    acl: Sequence[str],
    chunk_id: uuid.UUID,
) -> list[Row]:
    """Every stored version of a chunk that the caller may read, oldest first.

    None of another tenant's or project's, of a source or with an ACL that does not admit.
    """
    values = {"project": project_id, "acl": list(acl), "chunk": chunk_id}
    [rows] = await database.rows(tenant_id, (_READABLE_VERSIONS, values))
    return rows


async def _hits(
    database: AsyncDatabase, scope: ScopeFilter, query: Any, values: Sequence[Any]
) -> list[Hit]:
    [rows] = await database.rows(scope.tenant_id, (query, values))
    return [Hit(row["object_id"], row["score"]) for row in rows]


def scope_values(collection_id: uuid.UUID, scope: ScopeFilter) -> list[Any]:
    return [
        collection_id,
        scope.revision,
        scope.project_id,
        list(scope.sources),
        list(scope.acl),
    ]


def filter_values(scope: ScopeFilter) -> list[Any]:
    return [
        scope.path_prefix,
        scope.kind,
        scope.language,
        list(scope.tags) or None,
        scope.updated_after,
    ]


class CandidateReader:
    """Reads the rows of hits. What a chunk version says never changes, so it is kept here; who
    may see it is asked of PostgreSQL every time, and only the admitted come back.
    """

    def __init__(self, database: AsyncDatabase, *, max_rows: int = MAX_CACHED_ROWS) -> None:
        self._database = database
        self._max_rows = max_rows
        self._rows: OrderedDict[uuid.UUID, Row] = OrderedDict()

    async def read(
        self, collection_id: uuid.UUID, scope: ScopeFilter, object_ids: Sequence[uuid.UUID]
    ) -> list[Row]:
        """The rows of these items that the scope admits today; those of others are left out."""
        known = [key for key in object_ids if key in self._rows]
        unknown = [key for key in object_ids if key not in self._rows]
        values = {
            "collection": collection_id,
            "rev": scope.revision,
            "project": scope.project_id,
            "sources": list(scope.sources),
            "acl": list(scope.acl),
        }
        admitted, rows = await self._database.rows(
            scope.tenant_id,
            (_ADMITTED, {**values, "ids": known}),
            (_CANDIDATES, {**values, "ids": unknown}),
        )
        for row in rows:
            self._rows[row["object_id"]] = row
        found = [self._rows[row["object_id"]] for row in admitted]
        for row in found:
            self._rows.move_to_end(row["object_id"])
        while len(self._rows) > self._max_rows:
            self._rows.popitem(last=False)
        return [*found, *rows]
