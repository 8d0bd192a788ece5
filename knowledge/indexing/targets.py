"""Targets: which generation a run writes to, and the clock value it must reach."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace

from knowledge.crash_points import reached
from knowledge.model.collection import Collection
from knowledge.model.revision import Generation, IndexKind
from knowledge.runtime import Runtime
from knowledge.storage.postgres import generations
from knowledge.storage.postgres.database import Transaction
from knowledge.storage.postgres.lease import Lease


@dataclass(frozen=True, slots=True)
class Target:
    """A generation and the clock value it must reach."""

    collection: Collection
    generation: Generation
    head: int

    @property
    def is_new(self) -> bool:
        """Whether nothing has been applied: then only what is visible at the head is written."""
        return self.generation.applied_rev == 0

    @property
    def is_current(self) -> bool:
        return self.generation.applied_rev >= self.head

    @property
    def kinds(self) -> tuple[IndexKind, ...]:
        if self.generation.backend == generations.POSTGRES:
            return (IndexKind.METADATA,)
        if self.generation.embedding_profile is None:
            return (IndexKind.FULL_TEXT,)
        return (IndexKind.VECTOR, IndexKind.FULL_TEXT)


def plan_hybrid(runtime: Runtime, held: Lease) -> Target | None:
    """The generation to bring to the head: the serving one while it can be written.

    A pinned profile that differs is a rebuild's to build (`rebuilding`). A generation of another
    backend or schema cannot be written: then a new one is made here, with the pinned profile.
    None as long as nothing was ever published: there is no revision 0.
    """
    collection = _today(runtime, held)
    if not collection.head_rev:
        return None
    with runtime.app.tenant(collection.tenant_id) as connection:
        generation = generations.serving_generation(connection, collection)
        if generation is None or not is_writable(runtime, generation):
            generation = _building(runtime, connection, collection)
    reached("index.planned")
    return Target(collection, generation, collection.head_rev)


def plan_metadata(runtime: Runtime, held: Lease) -> Target | None:
    """The metadata generation (in PostgreSQL, one a collection) to bring to the head."""
    collection = _today(runtime, held)
    if not collection.head_rev:
        return None
    with runtime.app.tenant(collection.tenant_id) as connection:
        generation = generations.serving_generation(
            connection, collection, in_postgres=True
        ) or generations.building_generation(
            connection, collection, backend=generations.POSTGRES, class_name=""
        )
        if generation is None:
            generation = new_generation(collection, backend=generations.POSTGRES)
            generations.add_generation(connection, generation)
        elif not generation.applied_rev:
            # Never finished: it starts again at today's head.
            generation = replace(generation, created_rev=collection.head_rev)
            generations.restart_generation(connection, generation)
    return Target(collection, generation, collection.head_rev)


def is_writable(runtime: Runtime, generation: Generation) -> bool:
    """Whether a generation is of this backend and has the schema that it writes today."""
    return (
        generation.backend == runtime.index.name
        and generation.class_name == runtime.index.class_name(generation.embedding_profile)
    )


def new_hybrid_generation(
    runtime: Runtime,
    collection: Collection,
    profile: str | None,
    *,
    rebuild_id: uuid.UUID | None = None,
) -> Generation:
    """A generation of this backend that starts at the collection's head; not stored yet."""
    return new_generation(
        collection,
        backend=runtime.index.name,
        class_name=runtime.index.class_name(profile),
        backend_tenant=uuid.uuid4().hex,
        profile=profile,
        rebuild_id=rebuild_id,
    )


def new_generation(
    collection: Collection,
    *,
    backend: str,
    class_name: str = "",
    backend_tenant: str = "",
    profile: str | None = None,
    rebuild_id: uuid.UUID | None = None,
) -> Generation:
    return Generation(
        generation_id=uuid.uuid4(),
        tenant_id=collection.tenant_id,
        collection_id=collection.collection_id,
        backend=backend,
        class_name=class_name,
        backend_tenant=backend_tenant,
        embedding_profile=profile,
        created_rev=collection.head_rev,
        applied_rev=0,
        state="building",
        rebuild_id=rebuild_id,
    )


def _today(runtime: Runtime, held: Lease) -> Collection:
    return runtime.collection(held.collection.tenant_id, held.collection.slug)


def _building(runtime: Runtime, connection: Transaction, collection: Collection) -> Generation:
    """The publish path's own unfinished generation, or a new one."""
    profile = collection.embedding_profile
    found = generations.building_generation(
        connection,
        collection,
        backend=runtime.index.name,
        class_name=runtime.index.class_name(profile),
    )
    if found is None:
        found = new_hybrid_generation(runtime, collection, profile)
        generations.add_generation(connection, found)
    elif found.applied_rev == 0 and found.created_rev != collection.head_rev:
        # Never finished: it starts again at today's head, without what it holds so far.
        runtime.index.drop_generation(found)
        found = replace(found, created_rev=collection.head_rev)
        generations.restart_generation(connection, found)
    return found
