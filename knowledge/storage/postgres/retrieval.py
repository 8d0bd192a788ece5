"""What a search reads from PostgreSQL: term statistics, the two SQL legs, candidates, texts."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from knowledge.storage.backend import Hit, ScopeFilter
from knowledge.storage.postgres.database import AsyncDatabase, Row
from knowledge.text.bm25 import TermStatistics

_SEARCH: Final = {
    "full_text": "select * from search_full_text(%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s)",
    "metadata": "select * from search_metadata(%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s)",
}
METADATA_COVERAGE: Final = 0.6
"""Share of a query's summed idf that path, title and tags must hold."""

_CANDIDATES: Final = """
    select c.object_id, c.chunk_id, c.source_id, c.path, c.title, c.kind, c.language, c.line_start,
           c.line_end, c.analysed, c.analysed_title
    from chunk_versions c
    where c.object_id = any(%(ids)s) and c.collection_id = %(collection)s
      and c.from_rev <= %(rev)s and %(rev)s < c.to_rev
      and c.project_id = %(project)s and c.source_id = any(%(sources)s)
      and (c.acl is null or c.acl && %(acl)s)
"""
_TEXTS: Final = """
    select c.object_id, c.text, c.tags, c.metadata, v.source_version
    from chunk_versions c
    left join lateral (
        select source_version from source_versions v
        where v.collection_id = c.collection_id and v.source_id = c.source_id
          and v.revision <= %(rev)s
        order by v.revision desc limit 1
    ) v on true
    where c.object_id = any(%(ids)s) and c.collection_id = %(collection)s
"""


async def search_full_text(
    database: AsyncDatabase,
    collection_id: uuid.UUID,
    scope: ScopeFilter,
    weights: Mapping[str, float],
    limit: int,
) -> list[Hit]:
    """Items holding any of the weighted terms, by the summed weight of those they hold."""
    values = [*_scope(collection_id, scope), list(weights), list(weights.values()), limit]
    return await _hits(database, scope, _SEARCH["full_text"], [*values, *_filters(scope)])


async def search_metadata(
    database: AsyncDatabase,
    collection_id: uuid.UUID,
    scope: ScopeFilter,
    weights: Mapping[str, float],
    limit: int,
) -> list[Hit]:
    """Items whose path, title and tags hold most of the query; the score is the share held."""
    terms = [list(weights), list(weights.values()), METADATA_COVERAGE, limit]
    values = [*_scope(collection_id, scope), *terms, *_filters(scope)]
    return await _hits(database, scope, _SEARCH["metadata"], values)


async def _hits(
    database: AsyncDatabase, scope: ScopeFilter, query: Any, values: Sequence[Any]
) -> list[Hit]:
    [rows] = await database.rows(scope.tenant_id, (query, values))
    return [Hit(row["object_id"], row["score"]) for row in rows]


def _scope(collection_id: uuid.UUID, scope: ScopeFilter) -> list[Any]:
    return [
        collection_id,
        scope.revision,
        scope.project_id,
        list(scope.sources),
        list(scope.acl),
    ]


def _filters(scope: ScopeFilter) -> list[Any]:
    return [
        scope.path_prefix,
        scope.kind,
        scope.language,
        list(scope.tags) or None,
        scope.updated_after,
    ]


async def candidates(
    database: AsyncDatabase,
    collection_id: uuid.UUID,
    scope: ScopeFilter,
    object_ids: Sequence[uuid.UUID],
) -> list[Row]:
    """The rows of these items that the scope admits today; those of others are left out."""
    values = {
        "ids": list(object_ids),
        "collection": collection_id,
        "rev": scope.revision,
        "project": scope.project_id,
        "sources": list(scope.sources),
        "acl": list(scope.acl),
    }
    [rows] = await database.rows(scope.tenant_id, (_CANDIDATES, values))
    return rows


async def texts(
    database: AsyncDatabase,
    tenant_id: str,
    wanted: Sequence[tuple[uuid.UUID, int, Sequence[uuid.UUID]]],
) -> dict[uuid.UUID, Row]:
    """Text, tags, metadata and source version of the admitted items, by object id.

    ``wanted`` is (collection, revision, object ids); all are read in one round trip.
    """
    statements = [
        (_TEXTS, {"ids": list(ids), "collection": collection_id, "rev": revision})
        for collection_id, revision, ids in wanted
    ]
    if not statements:
        return {}
    results = await database.rows(tenant_id, *statements)
    return {row["object_id"]: row for rows in results for row in rows}


@dataclass(slots=True)
class _Frozen:
    from_rev: int
    documents: int
    average_length: float
    average_title_length: float
    in_text: dict[str, int]
    in_title: dict[str, int]


class StatisticsCache:
    """Frozen term statistics, read once: they never change for a revision.

    Holds at most ``max_entries`` collections' statistics and ``max_terms`` terms of each.
    """

    def __init__(
        self, database: AsyncDatabase, *, max_entries: int = 64, max_terms: int = 100_000
    ) -> None:
        self._database = database
        self._entries: OrderedDict[tuple[uuid.UUID, int], _Frozen] = OrderedDict()
        self._max_entries = max_entries
        self._max_terms = max_terms

    async def get(
        self, tenant_id: str, collection_id: uuid.UUID, revision: int, terms: Sequence[str]
    ) -> TermStatistics:
        """Statistics valid at ``revision``, with the frequencies of at least ``terms``."""
        key = (collection_id, revision)
        frozen = self._entries.get(key)
        if frozen is None:
            frozen = await self._read(tenant_id, collection_id, revision)
            self._entries[key] = frozen
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)
        self._entries.move_to_end(key)
        unknown = [term for term in dict.fromkeys(terms) if term not in frozen.in_text]
        if unknown:
            await self._learn(tenant_id, collection_id, frozen, unknown)
        return TermStatistics(
            frozen.documents,
            frozen.average_length,
            frozen.average_title_length,
            frozen.in_text,
            frozen.in_title,
        )

    async def _read(self, tenant_id: str, collection_id: uuid.UUID, revision: int) -> _Frozen:
        query = (
            "select from_rev, documents, average_length, average_title_length"
            " from term_statistics where collection_id = %s and from_rev <= %s"
            " order by from_rev desc limit 1"
        )
        [rows] = await self._database.rows(tenant_id, (query, [collection_id, revision]))
        row = (
            rows[0]
            if rows
            else dict.fromkeys(
                ("from_rev", "documents", "average_length", "average_title_length"), 0
            )
        )
        return _Frozen(**row, in_text={}, in_title={})

    async def _learn(
        self, tenant_id: str, collection_id: uuid.UUID, frozen: _Frozen, terms: list[str]
    ) -> None:
        query = (
            "select term, documents, title_documents from term_frequencies"
            " where collection_id = %s and from_rev = %s and term = any(%s)"
        )
        [rows] = await self._database.rows(
            tenant_id, (query, [collection_id, frozen.from_rev, terms])
        )
        if len(frozen.in_text) > self._max_terms:
            frozen.in_text, frozen.in_title = {}, {}
        frozen.in_text.update(dict.fromkeys(terms, 0))
        frozen.in_title.update(dict.fromkeys(terms, 0))
        frozen.in_text.update({row["term"]: row["documents"] for row in rows})
        frozen.in_title.update({row["term"]: row["title_documents"] for row in rows})
