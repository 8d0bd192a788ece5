"""A backend that is asked only after it proved its filters."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from knowledge.errors import IndexUnavailable
from knowledge.model.revision import Generation
from knowledge.storage.backend import Hit, HybridSearch, ScopeFilter, Vector


class GuardedSearch:
    """Implements `HybridSearch` by ``inner``, unavailable until ``is_proven`` is set.

    ``reason`` tells what it waits for.
    """

    def __init__(self, inner: HybridSearch) -> None:
        self.inner = inner
        self.name = inner.name
        self.is_proven = False
        self.reason = "the index has not proven its scope filters yet"

    async def close(self) -> None:
        await self.inner.close()

    async def near_vector(
        self, generation: Generation, vector: Vector, scope: ScopeFilter, limit: int
    ) -> list[Hit]:
        self._require_proven()
        return await self.inner.near_vector(generation, vector, scope, limit)

    async def bm25(
        self,
        generation: Generation,
        terms: Sequence[str],
        scope: ScopeFilter,
        limit: int,
        *,
        with_vectors: bool,
    ) -> list[Hit]:
        self._require_proven()
        return await self.inner.bm25(generation, terms, scope, limit, with_vectors=with_vectors)

    async def vectors(
        self, generation: Generation, object_ids: Sequence[uuid.UUID], scope: ScopeFilter
    ) -> dict[uuid.UUID, Vector]:
        self._require_proven()
        return await self.inner.vectors(generation, object_ids, scope)

    def _require_proven(self) -> None:
        if not self.is_proven:
            raise IndexUnavailable(self.reason)
