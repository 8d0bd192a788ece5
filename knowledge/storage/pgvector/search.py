"""The hybrid index in PostgreSQL, queried: an exact scan over the rows in scope.

No approximate index: pgvector's looks at the scope after the scan, which comes back short.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from pgvector import Vector as PgVector

from knowledge.model.revision import Generation
from knowledge.storage.backend import Hit, ScopeFilter, Vector
from knowledge.storage.pgvector.probe import translated
from knowledge.storage.pgvector.schema import decoded, query_words, scope_parameters, where
from knowledge.storage.postgres.database import AsyncDatabase, Row

# The distance from or to a vector of zeros is NaN; it stands at a right angle to everything.
_NEAR_VECTOR = """
    select object_id, 1 - distance as score from (
        select object_id, coalesce(nullif(embedding <=> %(vector)s::vector, 'NaN'), 1) as distance
        from hybrid_items where embedding is not null and {where}
    ) item
    order by distance, object_id limit %(limit)s
"""
_BM25 = """
    select object_id, score, case when %(with_vectors)s then vector_send(embedding) end as vector
    from (
        select object_id, embedding, -(words <#> %(words)s::sparsevec) as score
        from hybrid_items where words <#> %(words)s::sparsevec < 0 and {where}
        order by score desc, object_id limit %(limit)s
    ) item
    order by score desc, object_id
"""

_VECTORS = """
    select object_id, vector_send(embedding) as vector
    from hybrid_items where object_id = any(%(ids)s) and embedding is not null and {where}
"""


class PgvectorSearch:
    """Implements `HybridSearch`. The database is the caller's to close."""

    name = "pgvector"

    def __init__(self, database: AsyncDatabase) -> None:
        self._database = database

    async def close(self) -> None:
        pass

    async def near_vector(
        self, generation: Generation, vector: Vector, scope: ScopeFilter, limit: int
    ) -> list[Hit]:
        values = {"vector": PgVector(vector).to_text(), "limit": limit}
        found = await self._rows(generation, scope, _NEAR_VECTOR, values)
        return [Hit(item["object_id"], item["score"]) for item in found]

    async def bm25(
        self,
        generation: Generation,
        terms: Sequence[str],
        scope: ScopeFilter,
        limit: int,
        *,
        weights: Mapping[str, float],
        with_vectors: bool,
    ) -> list[Hit]:
        values = {
            "words": query_words(terms, weights),
            "limit": limit,
            "with_vectors": with_vectors,
        }
        found = await self._rows(generation, scope, _BM25, values)
        return [Hit(item["object_id"], item["score"], decoded(item["vector"])) for item in found]

    async def vectors(
        self, generation: Generation, object_ids: Sequence[uuid.UUID], scope: ScopeFilter
    ) -> dict[uuid.UUID, Vector]:
        found = await self._rows(generation, scope, _VECTORS, {"ids": list(object_ids)})
        vectors = {item["object_id"]: decoded(item["vector"]) for item in found}
        return {key: value for key, value in vectors.items() if value is not None}

    async def _rows(
        self, generation: Generation, scope: ScopeFilter, query: str, values: dict[str, Any]
    ) -> list[Row]:
        values |= scope_parameters(generation, scope)
        with translated():
            [found] = await self._database.rows(
                scope.tenant_id, (query.format(where=where()), values)
            )
        return found
