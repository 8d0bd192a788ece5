"""The hybrid index in Weaviate, queried: each leg a query of its own, scoped by the filter.

Replies are read as the client receives them: decoding every vector into a list of Python floats,
as its public query objects do, costs more than the query itself. That reaches into two
attributes of the pinned client (`_query` builds the request, `_connection` sends it).
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final

import numpy as np
import weaviate
from weaviate.classes.query import Filter, MetadataQuery
from weaviate.collections.classes.grpc import _MetadataQuery

from knowledge.model.revision import Generation
from knowledge.storage.backend import Hit, ScopeFilter, Vector
from knowledge.storage.weaviate.address import WeaviateAddress
from knowledge.storage.weaviate.client import open_async, require_listening, translated
from knowledge.storage.weaviate.schema import scope_filter

_DISTANCE: Final = _MetadataQuery.from_public(MetadataQuery(distance=True), False)
_SCORE: Final = {
    with_vectors: _MetadataQuery.from_public(MetadataQuery(score=True), with_vectors)
    for with_vectors in (True, False)
}
PATIENCE_S: Final = 0.1
"""A query that takes longer makes us look whether the server still listens."""

_VECTOR: Final = _MetadataQuery.from_public(None, True)


class WeaviateSearch:
    """Implements `HybridSearch`. Connects at first use and again after a failure."""

    name = "weaviate"

    def __init__(self, address: WeaviateAddress) -> None:
        self._address = address
        self._client: weaviate.WeaviateAsyncClient | None = None
        self._connecting = asyncio.Lock()

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def near_vector(
        self, generation: Generation, vector: Vector, scope: ScopeFilter, limit: int
    ) -> list[Hit]:
        found = await self._search(
            generation,
            scope,
            "near_vector",
            near_vector=vector.tolist(),
            limit=limit,
            return_metadata=_DISTANCE,
            return_properties=[],
        )
        return [Hit(_id(item), 1.0 - item.distance) for item in found]

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
        if not terms:
            return []
        found = await self._search(
            generation,
            scope,
            "bm25",
            query=" ".join(terms),
            properties=["analysed"],
            limit=limit,
            return_metadata=_SCORE[with_vectors],
            return_properties=[],
        )
        return [Hit(_id(item), item.score, _vector(item)) for item in found]

    async def vectors(
        self, generation: Generation, object_ids: Sequence[uuid.UUID], scope: ScopeFilter
    ) -> dict[uuid.UUID, Vector]:
        if not object_ids:
            return {}
        found = await self._search(
            generation,
            scope,
            "get",
            only=Filter.by_id().contains_any(list(object_ids)),
            limit=len(object_ids),
            return_metadata=_VECTOR,
            return_properties=[],
        )
        vectors = {_id(item): _vector(item) for item in found}
        return {key: value for key, value in vectors.items() if value is not None}

    async def _search(
        self,
        generation: Generation,
        scope: ScopeFilter,
        method: str,
        *,
        only: Any = None,
        **arguments: Any,
    ) -> list[Any]:
        """The metadata of each found object, best first; no readable source finds nothing."""
        if not scope.sources:
            return []
        filters = scope_filter(scope) if only is None else only & scope_filter(scope)
        with translated():
            client = await self._connected()
            collection = client.collections.use(generation.class_name)
            query: Any = collection.with_tenant(generation.backend_tenant).query
            request = getattr(query._query, method)(filters=filters, **arguments)
            reply = await self._reply(query._connection.grpc_search(request))
        return [result.metadata for result in reply.results]

    async def _reply(self, sent: Coroutine[Any, Any, Any]) -> Any:
        """The reply, unless the server is gone: the client would go on trying for 30 s."""
        task = asyncio.ensure_future(sent)
        try:
            done, _ = await asyncio.wait([task], timeout=PATIENCE_S)
            if not done:
                await require_listening(self._address)
            return await task
        finally:
            task.cancel()

    async def _connected(self) -> weaviate.WeaviateAsyncClient:
        async with self._connecting:  # the first legs come together; one connection will do
            if self._client is None:
                with translated():
                    client = open_async(self._address)
                    try:
                        await client.connect()
                    except BaseException:
                        await client.close()
                        raise
                self._client = client
            return self._client


def _id(item: Any) -> uuid.UUID:
    return uuid.UUID(bytes=item.id_as_bytes)


def _vector(item: Any) -> Vector | None:
    """The object's one vector, as little-endian float32 on the wire."""
    for vector in item.vectors:
        return np.frombuffer(vector.vector_bytes, dtype="<f4")
    return None
