"""The port of a hybrid index: what a backend must do. The docstrings are the contract.

One suite of tests runs over every implementation.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import numpy as np
import numpy.typing as npt

from knowledge.errors import PartialWrite
from knowledge.model.chunk import ChunkVersion
from knowledge.model.revision import Generation

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ScopeFilter:
    """What every query of a backend is restricted to *before* top-k.

    ``sources`` are the readable ones (none: nothing is found). ``acl`` are the caller's entries;
    an item without an ACL is visible to all of them. ``head`` is the clock's head when the query
    was planned; items of up to `VISIBILITY_MARGIN` later revisions stay invisible.
    """

    tenant_id: str
    project_id: str
    sources: tuple[str, ...]
    acl: tuple[str, ...]
    revision: int
    head: int
    path_prefix: str | None = None
    kind: str | None = None
    language: str | None = None
    tags: tuple[str, ...] = ()
    updated_after: datetime | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A found item. ``score`` is cosine (vector) or the backend's BM25; higher is better.

    ``vector`` is float32 [d], where the item has one and the leg returns it.
    """

    object_id: uuid.UUID
    score: float
    vector: Vector | None = None


@dataclass(frozen=True, slots=True)
class StoredItem:
    """An item as the backend holds it, for comparing with PostgreSQL.

    ``acl`` is None for everyone with the project. ``vector`` is float32 [d], where the item has
    one and vectors were asked for.
    """

    object_id: uuid.UUID
    from_rev: int
    to_rev: int
    acl: tuple[str, ...] | None
    vector: Vector | None = None


def require_finite(vectors: Vector | None) -> None:
    """Raise `PartialWrite` for NaN or infinity: no backend may rank by either."""
    if vectors is not None and not np.isfinite(vectors).all():
        wrong = int((~np.isfinite(vectors).all(axis=1)).sum())
        raise PartialWrite(
            f"{wrong} of {len(vectors)} vectors are not finite numbers: nothing was written",
            refused=wrong,
        )


class HybridIndex(Protocol):
    """Writing and maintaining; synchronous. Every method is idempotent."""

    name: str

    def version(self) -> str:
        """The server's version. Raises `IndexUnavailable`."""

    def schema_fingerprint(self) -> str:
        """Changes whenever the schema or the filters of this backend change."""

    def class_name(self, profile: str | None) -> str:
        """The name of the physical class that generations of a profile version live in."""

    def create_generation(self, generation: Generation, *, with_vectors: bool) -> None:
        """Make the physical storage of a generation where it is missing."""

    def upsert(
        self,
        generation: Generation,
        versions: Sequence[ChunkVersion],
        vectors: Vector | None,
    ) -> None:
        """Write versions and (aligned, [n, d]) vectors; the same object id is overwritten.

        Raises `PartialWrite` when any object was refused, and for a vector that is not finite.
        """

    def count(self, generation: Generation) -> int:
        """How many items the generation holds, all revisions together."""

    def items(
        self,
        generation: Generation,
        *,
        after: uuid.UUID | None = None,
        limit: int | None = None,
        with_vectors: bool = False,
    ) -> Iterator[StoredItem]:
        """The generation's items in id order, from ``after`` (exclusive) on: all, or ``limit``.

        Read in pages: a large generation is never held in memory as a whole.
        """

    def delete(self, generation: Generation, object_ids: Sequence[uuid.UUID]) -> None:
        """Remove items; unknown ids are passed over."""

    def probe(self, generation: Generation, version: ChunkVersion) -> bool:
        """Whether a just-written version is found by its words: guards the switch."""

    def drop_generation(self, generation: Generation) -> None:
        """Remove the generation and everything in it; nothing to remove is fine."""

    def close(self) -> None:
        """Let connections of its own go."""


class HybridSearch(Protocol):
    """Querying; asynchronous. Raises `IndexUnavailable`, and `NoTenant` without a tenant."""

    name: str

    async def near_vector(
        self, generation: Generation, vector: Vector, scope: ScopeFilter, limit: int
    ) -> list[Hit]:
        """The ``limit`` nearest items in scope by cosine, nearest first."""

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
        """The ``limit`` best items in scope that hold any of the analysed ``terms``.

        A term that is repeated weighs as often. ``weights`` gives each distinct term's frozen
        idf times its repeats: a backend without term statistics of its own ranks by them.
        """

    async def close(self) -> None:
        """Let connections of its own go."""

    async def vectors(
        self, generation: Generation, object_ids: Sequence[uuid.UUID], scope: ScopeFilter
    ) -> dict[uuid.UUID, Vector]:
        """Vectors of the given items, those out of scope or without one left out."""
