"""Convergence: every index kind upserts what lies between the clock it reached and the head.

What to write is always read from PostgreSQL, never from the index, so a run that is killed
anywhere and started again ends in the same state.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from knowledge.crash_points import reached
from knowledge.errors import IndexInconsistent
from knowledge.indexing.consistency import require_consistent
from knowledge.indexing.targets import Target, is_writable, plan_hybrid, plan_metadata
from knowledge.model.chunk import ChunkVersion
from knowledge.model.collection import Collection
from knowledge.model.revision import Generation
from knowledge.runtime import Runtime
from knowledge.storage.backend import Vector
from knowledge.storage.postgres import chunk_versions, generations, metadata, revisions, upkeep
from knowledge.storage.postgres.database import Transaction
from knowledge.storage.postgres.lease import Lease

Item = TypeVar("Item")

PROBE_PATIENCE_S: Final = 2.0


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


def converge_hybrid(runtime: Runtime, held: Lease) -> Converged:
    """Bring vector and full-text to the head. Raises `PartialWrite`, `IndexInconsistent`."""
    started = time.monotonic()
    target = plan_hybrid(runtime, held)
    if target is None:
        return _nothing(started)
    start_building(runtime, target)
    written = write_changes(runtime, target)
    reached("index.written")
    items, repaired = settle(runtime, target)
    carry_acls(runtime, target.collection, target.head)
    reached("index.applied")
    return _converged(target, written + repaired, items, started)


def converge_metadata(runtime: Runtime, held: Lease) -> Converged:
    """Bring the metadata index (path, title and tags, in PostgreSQL) to the head."""
    started = time.monotonic()
    target = plan_metadata(runtime, held)
    if target is None:
        return _nothing(started)
    start_building(runtime, target)
    written, items = write_metadata(runtime, target)
    return _converged(target, written, items, started)


def write_metadata(runtime: Runtime, target: Target) -> tuple[int, int]:
    """Bring the metadata generation to the target's head; how many items it wrote and holds."""
    written = 0
    if not target.is_current:
        for versions in versions_to_write(runtime, target):
            with runtime.app.tenant(target.collection.tenant_id) as connection:
                written += metadata.upsert(connection, target.collection, versions)
        upkeep.make_fast(runtime.owner, written)
    reached("metadata.written")
    with runtime.app.tenant(target.collection.tenant_id) as connection:
        items = _expected(connection, target)
        generations.set_applied(connection, target.generation, target.head, items=items)
    reached("metadata.applied")
    return written, items


def write_changes(
    runtime: Runtime, target: Target, *, noted: Callable[[int], None] = lambda _count: None
) -> int:
    """Write what lies between the generation's clock and the target's head. Returns how many.

    ``noted`` is told the size of each batch.
    """
    generation = target.generation
    # Also where nothing is new: a lost data folder is made again, and repaired by `settle`.
    runtime.index.create_generation(
        generation, with_vectors=generation.embedding_profile is not None
    )
    written = 0
    if not target.is_current:
        for versions, vectors in _ahead(_with_vectors(runtime, target)):
            runtime.index.upsert(generation, versions, vectors)
            reached("index.part_written")
            written += len(versions)
            noted(len(versions))
    return written


def settle(runtime: Runtime, target: Target) -> tuple[int, int]:
    """Verify, repair once where that fails, and note the clock reached.

    Returns how many items the generation holds and how many a repair wrote. Raises
    `IndexInconsistent` where the repair did not help.
    """
    repaired = 0
    try:
        items = verify_hybrid(runtime, target)
        _require_same(runtime, target, items)
    except IndexInconsistent:
        repaired, items = _repair(runtime, target)
        verify_hybrid(runtime, target, expected=items)
        _require_same(runtime, target, items)
    with runtime.app.tenant(target.collection.tenant_id) as connection:
        generations.set_applied(connection, target.generation, target.head, items=items)
    return items, repaired


def verify_hybrid(runtime: Runtime, target: Target, *, expected: int | None = None) -> int:
    """Compare the index with PostgreSQL and probe what was just written; returns the count.

    Raises `IndexInconsistent`: repair (write everything again) and retry, never abandon.
    """
    if expected is None:
        with runtime.app.tenant(target.collection.tenant_id) as connection:
            expected = _expected(connection, target)
    found = runtime.index.count(target.generation)
    if found != expected:
        raise IndexInconsistent(
            f"the index holds {found} items, PostgreSQL says {expected}: materialise again",
            found=found,
            expected=expected,
        )
    for version in chunk_versions.latest_versions(
        runtime.app, target.collection, target.head, count=3
    ):
        if not _is_found(runtime, target.generation, version):
            raise IndexInconsistent(
                f"chunk {version.chunk_id} was written but its words do not find it: the server"
                " ranks unflushed objects wrongly, use Weaviate 1.36 or newer"
            )
    return expected


def _is_found(runtime: Runtime, generation: Generation, version: ChunkVersion) -> bool:
    """Whether the words of a chunk find it, now or in a moment.

    A server that was killed and started again has once missed a chunk while it put its files in
    order. The servers this guards against miss it for a minute.
    """
    deadline = time.monotonic() + PROBE_PATIENCE_S
    while not runtime.index.probe(generation, version):
        if time.monotonic() > deadline:
            return False
        time.sleep(PROBE_PATIENCE_S / 8)
    return True


def _require_same(runtime: Runtime, target: Target, items: int) -> None:
    """Compare a stretch of the index item by item, as it will be once the head is applied."""
    reached_head = replace(target.generation, applied_rev=target.head, items=items)
    require_consistent(runtime, target.collection, reached_head)


def carry_acls(runtime: Runtime, collection: Collection, head: int) -> int:
    """Write ACL changes into the generations that stay behind and that pins still read.

    Those are the retired ones, and one that a rebuild is about to retire before a killed run's
    tick reached it. Permissions are always today's, whatever revision is asked. Returns how many
    items changed.
    """
    with runtime.app.tenant(collection.tenant_id) as connection:
        behind = generations.generations_in(
            connection, collection, backend=runtime.index.name, states=["retired", "serving"]
        )
    written = 0
    for generation in behind:
        carried = max(generation.acl_rev, generation.applied_rev)
        if carried >= head or not is_writable(runtime, generation):
            continue
        for versions in chunk_versions.versions_with_new_acl(
            runtime.app,
            collection,
            after=carried,
            upto=head,
            created=generation.created_rev,
            applied=generation.applied_rev,
        ):
            _write(runtime, generation, versions)
            written += len(versions)
        with runtime.app.tenant(collection.tenant_id) as connection:
            generations.set_acl_applied(connection, generation, head)
    return written


def _repair(runtime: Runtime, target: Target) -> tuple[int, int]:
    """Make the index hold exactly what PostgreSQL says, without a moment of it being thinner.

    Every version is written again and what does not belong is deleted. Returns how many were
    written, and so are held.
    """
    generation = target.generation
    extra = {item.object_id for item in runtime.index.items(generation)}
    written = 0
    for versions in chunk_versions.versions_held(
        runtime.app, target.collection, created=generation.created_rev, upto=target.head
    ):
        _write(runtime, generation, versions)
        extra.difference_update(version.object_id for version in versions)
        written += len(versions)
    runtime.index.delete(generation, sorted(extra))
    return written, written


def _write(runtime: Runtime, generation: Generation, versions: Sequence[ChunkVersion]) -> None:
    runtime.index.upsert(generation, versions, _vectors(runtime, generation, versions))


def _with_vectors(
    runtime: Runtime, target: Target
) -> Iterator[tuple[list[ChunkVersion], Vector | None]]:
    for versions in versions_to_write(runtime, target):
        yield versions, _vectors(runtime, target.generation, versions)


def _vectors(
    runtime: Runtime, generation: Generation, versions: Sequence[ChunkVersion]
) -> Vector | None:
    profile = generation.embedding_profile
    if profile is None:
        return None
    store = runtime.vectors(generation.tenant_id, profile)
    return store.get([version.text_hash for version in versions])


def _ahead(batches: Iterator[Item]) -> Iterator[Item]:
    """The same batches, the next one read while the last is used: writing waits for a server."""
    with ThreadPoolExecutor(1, thread_name_prefix="reading-ahead") as pool:
        following = pool.submit(next, batches, None)
        while (batch := following.result()) is not None:
            following = pool.submit(next, batches, None)
            yield batch


def versions_to_write(runtime: Runtime, target: Target) -> Iterator[list[ChunkVersion]]:
    """Batches of what the target's generation lacks."""
    if target.is_new:
        return chunk_versions.versions_visible(runtime.app, target.collection, target.head)
    return chunk_versions.versions_changed(
        runtime.app,
        target.collection,
        after=target.generation.applied_rev,
        upto=target.head,
    )


def _expected(connection: Transaction, target: Target) -> int:
    """What the generation holds at the head: counted once when new, then what was opened since."""
    generation = target.generation
    if target.is_new:
        return chunk_versions.count_versions(
            connection, target.collection, created=target.head, upto=target.head
        )
    return generation.items + chunk_versions.count_opened(
        connection, target.collection, after=generation.applied_rev, upto=target.head
    )


def start_building(runtime: Runtime, target: Target) -> None:
    """Note the revisions being built."""
    with runtime.app.tenant(target.collection.tenant_id) as connection:
        revisions.start_building(
            connection, target.collection, target.generation, target.kinds, target.head
        )


def _converged(target: Target, written: int, items: int, started: float) -> Converged:
    return Converged(
        revision=target.head,
        behind=max(0, target.head - target.generation.applied_rev),
        written=written,
        items=items,
        generation=target.generation.generation_id,
        profile=target.generation.embedding_profile,
        seconds=time.monotonic() - started,
    )


def _nothing(started: float) -> Converged:
    return Converged(0, 0, 0, 0, None, None, time.monotonic() - started)
