"""The hybrid index in this process's memory, queried: an exact scan over the items in scope."""

from __future__ import annotations

import heapq
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from knowledge.errors import NoTenant
from knowledge.model.chunk import ChunkVersion
from knowledge.model.revision import Generation
from knowledge.storage.backend import Hit, ScopeFilter, Vector
from knowledge.storage.memory.index import MemoryItem, MemoryStore

CLAUSES: Final[Mapping[str, Callable[[ScopeFilter, ChunkVersion], bool]]] = {
    "project": lambda scope, version: version.project_id == scope.project_id,
    "source": lambda scope, version: version.source_id in scope.sources,
    "acl": lambda scope, version: (
        version.chunk.acl is None or not set(version.chunk.acl).isdisjoint(scope.acl)
    ),
    "from_rev": lambda scope, version: version.from_rev <= scope.revision,
    "to_rev": lambda scope, version: scope.revision < version.to_rev,
    "path": lambda scope, version: version.chunk.path.startswith(scope.path_prefix or ""),
    "kind": lambda scope, version: scope.kind in (None, version.chunk.kind),
    "language": lambda scope, version: scope.language in (None, version.chunk.language),
    "tags": lambda scope, version: set(scope.tags) <= set(version.chunk.tags),
    "updated_at": lambda scope, version: (
        scope.updated_after is None
        or (
            version.chunk.updated_at is not None and version.chunk.updated_at >= scope.updated_after
        )
    ),
}
"""The one filter, by what each clause restricts."""


class MemorySearch:
    """Implements `HybridSearch` on a store that its `MemoryIndex` shares."""

    name = "memory"

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def close(self) -> None:
        pass

    async def near_vector(
        self, generation: Generation, vector: Vector, scope: ScopeFilter, limit: int
    ) -> list[Hit]:
        return _best(
            (
                Hit(object_id, _cosine(item.vector, vector))
                for object_id, item in self._admitted(generation, scope)
                if item.vector is not None
            ),
            limit,
        )

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
        query = {term: weights.get(term, 0.0) for term in terms}
        return _best(
            (
                Hit(object_id, score, item.vector if with_vectors else None)
                for object_id, item in self._admitted(generation, scope)
                if (score := sum(w * item.words.get(term, 0.0) for term, w in query.items())) > 0
            ),
            limit,
        )

    async def vectors(
        self, generation: Generation, object_ids: Sequence[uuid.UUID], scope: ScopeFilter
    ) -> dict[uuid.UUID, Vector]:
        wanted = set(object_ids)
        return {
            object_id: item.vector
            for object_id, item in self._admitted(generation, scope)
            if object_id in wanted and item.vector is not None
        }

    def _admitted(
        self, generation: Generation, scope: ScopeFilter
    ) -> Iterator[tuple[uuid.UUID, MemoryItem]]:
        if not scope.tenant_id:
            raise NoTenant()
        return (
            (object_id, item)
            for object_id, item in self._store.read(generation).items()
            if all(clause(scope, item.version) for clause in CLAUSES.values())
        )


def _best(hits: Iterable[Hit], limit: int) -> list[Hit]:
    """Highest score first, ties by id."""
    return heapq.nsmallest(limit, hits, key=lambda hit: (-hit.score, hit.object_id))


def _cosine(left: Vector, right: Vector) -> float:
    """0 for a vector of zeros."""
    lengths = float(np.linalg.norm(left) * np.linalg.norm(right))
    return float(left @ right) / lengths if lengths else 0.0
