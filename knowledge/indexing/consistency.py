"""Whether the hybrid index holds what PostgreSQL says it must hold."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from typing import Final

from knowledge.model.collection import Collection
from knowledge.model.revision import Generation
from knowledge.runtime import Runtime
from knowledge.storage.postgres import clock, revisions
from knowledge.storage.postgres.samples import versions_among

LOOKED_AT: Final = 1000


@dataclass(frozen=True, slots=True)
class Consistency:
    """``orphans`` are ids of the index that PostgreSQL does not know, among ``looked_at`` items:
    all of a small index, else a stretch of it that another revision sees elsewhere."""

    revision: int
    expected: int
    found: int
    looked_at: int
    orphans: tuple[uuid.UUID, ...]


def compare_hybrid(runtime: Runtime, collection: Collection) -> Consistency | None:
    """Compare the collection's hybrid index with PostgreSQL; None before it was first built."""
    with runtime.app.tenant(collection.tenant_id) as connection:
        generation = revisions.current_generation(
            connection,
            collection,
            backend=runtime.index.name,
            class_name=runtime.index.class_name(collection.embedding_profile),
        )
        if generation is None or generation.applied_rev == 0:
            return None
        created, applied = generation.created_rev, generation.applied_rev
        expected = clock.count_versions(connection, collection, created=created, upto=applied)
    found = runtime.index.count(generation)
    ids = runtime.index.object_ids(generation, after=_start(generation, found), limit=LOOKED_AT)
    known = versions_among(runtime.app, collection, ids, created=created, upto=applied)
    return Consistency(applied, expected, found, len(ids), tuple(sorted(ids - known)))


def _start(generation: Generation, items: int) -> uuid.UUID | None:
    """Where to look: at the beginning when all is looked at, else where the revision says."""
    if items <= LOOKED_AT:
        return None
    seed = f"{generation.generation_id}{generation.applied_rev}".encode()
    return uuid.UUID(bytes=hashlib.sha256(seed).digest()[:16])
