"""Small items, vectors and questions for the tests of the port."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from knowledge.model.chunk import Chunk, ChunkVersion
from knowledge.model.revision import OPEN, Generation
from knowledge.storage.backend import Hit, HybridSearch, ScopeFilter, Vector
from tests.storage.conftest import Backend

SCOPE = ScopeFilter("port", "p1", ("s1",), ("group:a",), 5, 5)


def version_of(number: int, analysed: str = "lease", **changes: Any) -> ChunkVersion:
    fields = {"acl": changes.pop("acl", None)}
    version = ChunkVersion(
        object_id=uuid.UUID(int=number),
        chunk_id=uuid.UUID(int=number),
        from_rev=1,
        to_rev=OPEN,
        source_id="s1",
        project_id="p1",
        chunk=Chunk(path=f"{number}.md", anchor="", title="", text="", **fields),
        analysed=analysed,
        text_hash=b"",
    )
    return replace(version, **changes)


def versions_of(count: int) -> list[ChunkVersion]:
    return [version_of(number) for number in range(1, count + 1)]


def vectors_of(count: int, dimension: int = 4) -> Vector:
    """Unit vectors, each a little further from the first axis than the one before."""
    angles = np.linspace(0, 1, count, dtype=np.float32)
    vectors = np.zeros((count, dimension), dtype=np.float32)
    vectors[:, 0], vectors[:, 1] = np.cos(angles), np.sin(angles)
    return vectors


def ask(backend: Backend, question: Callable[[HybridSearch], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with backend.search() as opened:
            return await question(opened)

    return asyncio.run(run())


def near(
    backend: Backend, generation: Generation, vector: Vector, scope: ScopeFilter = SCOPE
) -> list[Hit]:
    found: list[Hit] = ask(backend, lambda s: s.near_vector(generation, vector, scope, 10))
    return found


def worded(
    backend: Backend,
    generation: Generation,
    terms: Sequence[str],
    weights: Mapping[str, float] | None = None,
    *,
    with_vectors: bool = False,
    limit: int = 10,
) -> list[Hit]:
    counted = weights or {term: float(terms.count(term)) for term in terms}
    found: list[Hit] = ask(
        backend,
        lambda s: s.bm25(
            generation, terms, SCOPE, limit, weights=counted, with_vectors=with_vectors
        ),
    )
    return found


def numbers(hits: Sequence[Hit]) -> list[int]:
    return [hit.object_id.int for hit in hits]
