"""A backend that is asked only after it proved its filters."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence

from knowledge.errors import IndexUnavailable
from knowledge.model.revision import Generation
from knowledge.storage.backend import Hit, HybridIndex, HybridSearch, ScopeFilter, Vector
from knowledge.storage.contract import contract_hash, prove_scope
from knowledge.storage.postgres import service
from knowledge.storage.postgres.database import AsyncDatabase


class GuardedSearch:
    """Implements `HybridSearch` by ``inner``, unavailable until ``is_proven`` is set.

    ``reason`` tells what it waits for. A generation that another backend wrote stays unavailable.
    """

    def __init__(self, inner: HybridSearch) -> None:
        self.inner = inner
        self.name = inner.name
        self.is_proven = False
        self.reason = "the index has not proven its scope filters yet"

    async def prove(self, index: HybridIndex, database: AsyncDatabase) -> None:
        """Have the backend prove its filters, once per version and schema, then let it be asked.

        ``index`` is the same backend's writing side. Raises `ScopeContractBroken`,
        `IndexUnavailable`, `DatabaseUnavailable`.
        """
        version = await asyncio.to_thread(index.version)
        schema = contract_hash(index)
        if not await service.is_proven(database, index.name, version, schema):
            await prove_scope(index, self.inner)
            await service.note_proof(database, index.name, version, schema)
        self.is_proven = True

    async def close(self) -> None:
        await self.inner.close()

    async def near_vector(
        self, generation: Generation, vector: Vector, scope: ScopeFilter, limit: int
    ) -> list[Hit]:
        self._require_answerable(generation)
        return await self.inner.near_vector(generation, vector, scope, limit)

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
        self._require_answerable(generation)
        return await self.inner.bm25(
            generation, terms, scope, limit, weights=weights, with_vectors=with_vectors
        )

    async def vectors(
        self, generation: Generation, object_ids: Sequence[uuid.UUID], scope: ScopeFilter
    ) -> dict[uuid.UUID, Vector]:
        self._require_answerable(generation)
        return await self.inner.vectors(generation, object_ids, scope)

    def _require_answerable(self, generation: Generation) -> None:
        if generation.backend != self.name:
            raise IndexUnavailable(
                f"the collection is indexed in {generation.backend}, this installation uses"
                f" {self.name}: run `knowledge rebuild`"
            )
        if not self.is_proven:
            raise IndexUnavailable(self.reason)
