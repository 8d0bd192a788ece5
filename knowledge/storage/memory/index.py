"""The hybrid index in this process's memory, written: for tests and benchmarks."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from knowledge.model.chunk import ChunkVersion
from knowledge.model.revision import Generation
from knowledge.storage.backend import StoredItem, Vector, require_finite
from knowledge.storage.term_weights import saturated_frequencies

SCHEMA_VERSION: Final = "1"


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """``words`` is what each term weighs; ``vector`` is float32 [d] of length 1, or None."""

    version: ChunkVersion
    words: Mapping[str, float]
    vector: Vector | None


@dataclass(slots=True)
class MemoryStore:
    """What both sides of the backend share: the items by generation. Safe between threads."""

    _generations: dict[tuple[str, str], dict[uuid.UUID, MemoryItem]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, generation: Generation, items: Mapping[uuid.UUID, MemoryItem]) -> None:
        with self._lock:
            self._generations.setdefault(_key(generation), {}).update(items)

    def read(self, generation: Generation) -> dict[uuid.UUID, MemoryItem]:
        """A copy, in id order; empty for an unknown generation."""
        with self._lock:
            return dict(sorted(self._generations.get(_key(generation), {}).items()))

    def remove(self, generation: Generation, object_ids: Sequence[uuid.UUID]) -> None:
        with self._lock:
            held = self._generations.get(_key(generation), {})
            for object_id in object_ids:
                held.pop(object_id, None)

    def drop(self, generation: Generation) -> None:
        with self._lock:
            self._generations.pop(_key(generation), None)


def _key(generation: Generation) -> tuple[str, str]:
    return generation.tenant_id, generation.backend_tenant


class MemoryIndex:
    """Implements `HybridIndex` on a store that its `MemorySearch` shares."""

    name = "memory"

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def close(self) -> None:
        pass

    def version(self) -> str:
        return "1"

    def schema_fingerprint(self) -> str:
        return SCHEMA_VERSION

    def class_name(self, profile: str | None) -> str:
        return f"memory:{SCHEMA_VERSION}:{profile or 'none'}"

    def create_generation(self, generation: Generation, *, with_vectors: bool) -> None:
        self._store.put(generation, {})

    def upsert(
        self, generation: Generation, versions: Sequence[ChunkVersion], vectors: Vector | None
    ) -> None:
        require_finite(vectors)
        self._store.put(
            generation,
            {
                version.object_id: MemoryItem(
                    version,
                    saturated_frequencies(version.analysed),
                    None if vectors is None else vectors[place].copy(),
                )
                for place, version in enumerate(versions)
            },
        )

    def count(self, generation: Generation) -> int:
        return len(self._store.read(generation))

    def items(
        self,
        generation: Generation,
        *,
        after: uuid.UUID | None = None,
        limit: int | None = None,
        with_vectors: bool = False,
    ) -> Iterator[StoredItem]:
        held = self._store.read(generation)
        ids = [object_id for object_id in held if after is None or object_id > after]
        for object_id in ids[:limit]:
            version, vector = held[object_id].version, held[object_id].vector
            yield StoredItem(
                object_id=object_id,
                from_rev=version.from_rev,
                to_rev=version.to_rev,
                acl=version.chunk.acl,
                vector=vector if with_vectors else None,
            )

    def delete(self, generation: Generation, object_ids: Sequence[uuid.UUID]) -> None:
        self._store.remove(generation, object_ids)

    def probe(self, generation: Generation, version: ChunkVersion) -> bool:
        item = self._store.read(generation).get(version.object_id)
        terms = set(version.analysed.split())
        return not terms or (item is not None and not terms.isdisjoint(item.words))

    def drop_generation(self, generation: Generation) -> None:
        self._store.drop(generation)
