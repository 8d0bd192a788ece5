"""Convergence: every index kind upserts what lies between the clock it reached and the head.

What to write is always read from PostgreSQL, never from the index, so a run that is killed
anywhere and started again ends in the same state.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from knowledge.errors import IndexInconsistent
from knowledge.model.chunk import ChunkVersion
from knowledge.model.collection import Collection
from knowledge.model.revision import Generation, IndexKind
from knowledge.runtime import Runtime
from knowledge.storage.postgres import clock, metadata, revisions
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
        if self.generation.backend == revisions.POSTGRES:
            return (IndexKind.METADATA,)
        if self.generation.embedding_profile is None:
            return (IndexKind.FULL_TEXT,)
        return (IndexKind.VECTOR, IndexKind.FULL_TEXT)


@dataclass(frozen=True, slots=True)
class Converged:
    """What a convergence wrote. ``items`` is what the generation then holds.

    ``behind`` is how many revisions it caught up. Before the first publish all is 0 and None.
    """

    revision: int
    behind: int
    written: int
    items: int
    generation: uuid.UUID | None
    profile: str | None
    seconds: float


def plan(runtime: Runtime, held: Lease, *, backend: str | None = None) -> Target | None:
    """The generation to bring to the head, made now when there is none for the profile.

    None as long as nothing was ever published: there is no revision 0.
    """
    backend = backend or runtime.index.name
    collection = runtime.collection(held.collection.tenant_id, held.collection.slug)
    if not collection.head_rev:
        return None
    profile = None if backend == revisions.POSTGRES else collection.embedding_profile
    with runtime.app.tenant(collection.tenant_id) as connection:
        generation = revisions.current_generation(
            connection,
            collection,
            backend=backend,
            class_name="" if backend == revisions.POSTGRES else runtime.index.class_name(profile),
        )
        if generation is None:
            generation = _new_generation(runtime, collection, backend, profile)
            revisions.add_generation(connection, generation)
        elif generation.applied_rev == 0 and generation.created_rev != collection.head_rev:
            # Never finished: it starts again at today's head, without what it holds so far.
            if generation.backend_tenant:
                runtime.index.drop_generation(generation)
            generation = replace(generation, created_rev=collection.head_rev)
            revisions.restart_generation(connection, generation)
    return Target(collection, generation, collection.head_rev)


def _new_generation(
    runtime: Runtime, collection: Collection, backend: str, profile: str | None
) -> Generation:
    in_postgres = backend == revisions.POSTGRES
    return Generation(
        generation_id=uuid.uuid4(),
        tenant_id=collection.tenant_id,
        collection_id=collection.collection_id,
        backend=backend,
        class_name="" if in_postgres else runtime.index.class_name(profile),
        backend_tenant="" if in_postgres else uuid.uuid4().hex,
        embedding_profile=profile,
        created_rev=collection.head_rev,
        applied_rev=0,
        state="building",
    )


def converge_hybrid(runtime: Runtime, held: Lease) -> Converged:
    """Bring vector and full-text to the head. Raises `PartialWrite`, `IndexInconsistent`."""
    started = time.monotonic()
    target = plan(runtime, held)
    if target is None:
        return _nothing(started)
    generation, profile = target.generation, target.generation.embedding_profile
    _start(runtime, target)
    written = 0
    # Also where nothing is new: a lost data folder is made again, and repaired below.
    runtime.index.create_generation(generation, with_vectors=profile is not None)
    if not target.is_current:
        for versions in _to_write(runtime, target):
            _write(runtime, generation, versions)
            written += len(versions)
    try:
        verify_hybrid(runtime, target)
    except IndexInconsistent:
        written += _repair(runtime, target)
        verify_hybrid(runtime, target)
    _finish(runtime, target)
    return _converged(runtime, target, written, started)


def converge_metadata(runtime: Runtime, held: Lease) -> Converged:
    """Bring the metadata index (path, title and tags, in PostgreSQL) to the head."""
    started = time.monotonic()
    target = plan(runtime, held, backend=revisions.POSTGRES)
    if target is None:
        return _nothing(started)
    _start(runtime, target)
    written = 0
    if not target.is_current:
        for versions in _to_write(runtime, target):
            with runtime.app.tenant(target.collection.tenant_id) as connection:
                written += metadata.upsert(connection, target.collection, versions)
        _finish(runtime, target)
    return _converged(runtime, target, written, started)


def verify_hybrid(runtime: Runtime, target: Target) -> None:
    """Compare the index with PostgreSQL and probe what was just written.

    Raises `IndexInconsistent`: repair (write everything again) and retry, never abandon.
    """
    expected = _expected(runtime, target)
    found = runtime.index.count(target.generation)
    if found != expected:
        raise IndexInconsistent(
            f"the index holds {found} items, PostgreSQL says {expected}: materialise again",
            found=found,
            expected=expected,
        )
    for version in _latest(runtime, target):
        if not runtime.index.probe(target.generation, version):
            raise IndexInconsistent(
                f"chunk {version.chunk_id} was written but its words do not find it: the server"
                " ranks unflushed objects wrongly, use Weaviate 1.36 or newer"
            )


def _repair(runtime: Runtime, target: Target) -> int:
    """Make the index hold exactly what PostgreSQL says, without a moment of it being thinner.

    Every version is written again and what does not belong is deleted. Returns how many written.
    """
    generation = target.generation
    extra = runtime.index.object_ids(generation)
    written = 0
    for versions in clock.versions_between(
        runtime.app,
        target.collection,
        after=0,
        upto=target.head,
        visible_only=False,
        created=generation.created_rev,
    ):
        _write(runtime, generation, versions)
        extra.difference_update(version.object_id for version in versions)
        written += len(versions)
    runtime.index.delete(generation, sorted(extra))
    return written


def _write(runtime: Runtime, generation: Generation, versions: Sequence[ChunkVersion]) -> None:
    profile = generation.embedding_profile
    vectors = None
    if profile:
        store = runtime.vectors(generation.tenant_id, profile)
        vectors = store.get([version.text_hash for version in versions])
    runtime.index.upsert(generation, versions, vectors)


def _to_write(runtime: Runtime, target: Target) -> Iterator[list[ChunkVersion]]:
    return clock.versions_between(
        runtime.app,
        target.collection,
        after=target.generation.applied_rev,
        upto=target.head,
        visible_only=target.is_new,
    )


def _latest(runtime: Runtime, target: Target, count: int = 3) -> list[ChunkVersion]:
    for versions in clock.versions_between(
        runtime.app,
        target.collection,
        after=target.head - 1,
        upto=target.head,
        visible_only=False,
        batch=count,
    ):
        return [version for version in versions if version.from_rev == target.head]
    return []


def _expected(runtime: Runtime, target: Target) -> int:
    with runtime.app.tenant(target.collection.tenant_id) as connection:
        return clock.count_versions(
            connection,
            target.collection,
            created=target.generation.created_rev,
            upto=target.head,
        )


def _start(runtime: Runtime, target: Target) -> None:
    with runtime.app.tenant(target.collection.tenant_id) as connection:
        revisions.start_building(
            connection, target.collection, target.generation, target.kinds, target.head
        )


def _finish(runtime: Runtime, target: Target) -> None:
    with runtime.app.tenant(target.collection.tenant_id) as connection:
        revisions.set_applied(connection, target.generation, target.head)


def _converged(runtime: Runtime, target: Target, written: int, started: float) -> Converged:
    return Converged(
        revision=target.head,
        behind=max(0, target.head - target.generation.applied_rev),
        written=written,
        items=_expected(runtime, target),
        generation=target.generation.generation_id,
        profile=target.generation.embedding_profile,
        seconds=time.monotonic() - started,
    )


def _nothing(started: float) -> Converged:
    return Converged(0, 0, 0, 0, None, None, time.monotonic() - started)
