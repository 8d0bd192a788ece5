"""The hybrid index in Weaviate, queried: each leg a query of its own, scoped by the filter."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
import weaviate
from weaviate.classes.query import Filter, MetadataQuery

from knowledge.model.revision import Generation
from knowledge.storage.backend import Hit, ScopeFilter, Vector
from knowledge.storage.weaviate.client import WeaviateAddress, open_async, translated
from knowledge.storage.weaviate.schema import scope_filter


class WeaviateSearch:
    """Implements `HybridSearch`. Connects at first use and again after a failure."""

    name = "weaviate"

    def __init__(self, address: WeaviateAddress) -> None:
        self._address = address
        self._client: weaviate.WeaviateAsyncClient | None = None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def is_ready(self) -> bool:
        client = await self._connected()
        return await client.is_ready()

    async def near_vector(
        self, generation: Generation, vector: Vector, scope: ScopeFilter, limit: int
    ) -> list[Hit]:
        if not scope.sources:
            return []
        with translated():
            query = await self._query(generation)
            found = await query.near_vector(
                near_vector=vector.tolist(),
                filters=scope_filter(scope),
                limit=limit,
                return_metadata=MetadataQuery(distance=True),
                return_properties=[],
            )
        return [Hit(item.uuid, 1.0 - item.metadata.distance) for item in found.objects]

    async def bm25(
        self,
        generation: Generation,
        terms: Sequence[str],
        scope: ScopeFilter,
        limit: int,
        *,
        with_vectors: bool,
    ) -> list[Hit]:
        if not scope.sources or not terms:
            return []
        with translated():
            query = await self._query(generation)
            found = await query.bm25(
                query=" ".join(terms),
                query_properties=["analysed"],
                filters=scope_filter(scope),
                limit=limit,
                return_metadata=MetadataQuery(score=True),
                return_properties=[],
                include_vector=with_vectors,
            )
        return [Hit(item.uuid, item.metadata.score or 0.0, _vector(item)) for item in found.objects]

    async def vectors(
        self, generation: Generation, object_ids: Sequence[uuid.UUID], scope: ScopeFilter
    ) -> dict[uuid.UUID, Vector]:
        if not scope.sources or not object_ids:
            return {}
        with translated():
            query = await self._query(generation)
            found = await query.fetch_objects(
                filters=Filter.by_id().contains_any(list(object_ids)) & scope_filter(scope),
                limit=len(object_ids),
                return_properties=[],
                include_vector=True,
            )
        vectors = {item.uuid: _vector(item) for item in found.objects}
        return {key: value for key, value in vectors.items() if value is not None}

    async def _query(self, generation: Generation) -> Any:
        client = await self._connected()
        return (
            client.collections.use(generation.class_name)
            .with_tenant(generation.backend_tenant)
            .query
        )

    async def _connected(self) -> weaviate.WeaviateAsyncClient:
        if self._client is None:
            with translated():
                client = open_async(self._address)
                await client.connect()
            self._client = client
        return self._client


def _vector(item: Any) -> Vector | None:
    value = item.vector.get("default") if item.vector else None
    return None if not value else np.asarray(value, dtype=np.float32)
