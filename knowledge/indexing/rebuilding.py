"""Rebuilds: a new generation beside the serving one, replayed to the head, then switched to.

Publishes go on meanwhile and are served from the old generation. Only the last round of replay
and the switch take the collection's lease.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from knowledge.crash_points import reached
from knowledge.errors import (
    KnowledgeError,
    LeaseHeld,
    RebuildCancelled,
    RebuildFailed,
    RebuildHeld,
    Unavailable,
)
from knowledge.indexing.convergence import (
    carry_acls,
    settle,
    write_changes,
    write_metadata,
)
from knowledge.indexing.embeddings import embed_for
from knowledge.indexing.rebuild_requests import builder_lock, keep_serving
from knowledge.indexing.serving import require_metadata
from knowledge.indexing.targets import Target, new_hybrid_generation, plan_metadata
from knowledge.indexing.tick import leased
from knowledge.model.collection import Collection
from knowledge.model.revision import Generation
from knowledge.runtime import Runtime
from knowledge.storage.postgres import (
    chunk_versions,
    clock,
    generations,
    inbox,
    lease,
    rebuilds,
    revisions,
)
from knowledge.storage.postgres.lease import Lease
from knowledge.storage.postgres.rebuilds import Rebuild, RebuildState

MAX_ROUNDS: Final = 20
"""Rounds of replay outside the lease; a collection that changes faster is finished inside it."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A finished rebuild: ``revision`` serves from ``generation``.

    ``rounds`` of replay ran outside the lease, which was held for ``lease_s`` of the ``seconds``.
    """

    revision: int
    generation: uuid.UUID
    profile: str | None
    items: int
    embedded: int
    rounds: int
    lease_s: float
    seconds: float


def rebuild(
    runtime: Runtime,
    wanted: Rebuild,
    *,
    owner: str,
    progress: Callable[[str], None] = lambda _line: None,
) -> Rebuilt:
    """Build, replay and switch. Killed anywhere and run again, it goes on where it was.

    Raises `RebuildHeld` when another process is at work on it, `RebuildCancelled`,
    `RebuildFailed` when processes ended under it too often, and what embedding and writing
    raise; then the old generation serves as before, and the rebuild is tried again until its
    attempts are used up.
    """
    with runtime.app.session_lock(builder_lock(wanted.rebuild_id)) as is_mine:
        if not is_mine:
            raise RebuildHeld(f"another run is at work on rebuild {wanted.rebuild_id}")
        collection = runtime.collection(wanted.tenant_id, str(wanted.collection_id))
        claimed = _claim(runtime, collection, wanted)
        reached("rebuild.claimed")
        try:
            return _Builder(runtime, collection, claimed, progress).run(owner)
        except RebuildHeld:
            raise
        except RebuildCancelled:
            drop_built(runtime, collection, wanted.rebuild_id)
            raise
        except BaseException as error:  # an interrupt too: the next run must find it requested
            _note_failure(runtime, collection, claimed, error)
            raise


def clear_ended(runtime: Runtime, collection: Collection, rebuild_id: uuid.UUID) -> int:
    """Remove what a rebuild that has ended wrote, unless its builder is still at it."""
    with runtime.app.session_lock(builder_lock(rebuild_id)) as nobody_builds:
        return drop_built(runtime, collection, rebuild_id) if nobody_builds else 0


def drop_built(runtime: Runtime, collection: Collection, rebuild_id: uuid.UUID) -> int:
    """Remove what a rebuild wrote and nothing serves from. Returns how many generations."""
    with runtime.app.tenant(collection.tenant_id) as connection:
        building = generations.generations_in(
            connection, collection, backend=runtime.index.name, states=["building"]
        )
    built = [generation for generation in building if generation.rebuild_id == rebuild_id]
    for generation in built:
        runtime.index.drop_generation(generation)
        with runtime.app.tenant(collection.tenant_id) as connection:
            generations.set_collected(connection, generation)
    return len(built)


def _claim(runtime: Runtime, collection: Collection, wanted: Rebuild) -> Rebuild:
    """Take the rebuild up and mark what serves as Rebuilding; give it up after too many ends."""
    max_attempts = runtime.settings.indexing.max_attempts
    with runtime.app.tenant(collection.tenant_id) as connection:
        clock.lock_head(connection, collection)
        claimed = rebuilds.claim(connection, wanted)
        if claimed.attempts < max_attempts:
            revisions.mark_rebuilding(connection, collection)
            return claimed
        reason = claimed.error or f"the processes that built it ended {claimed.attempts} times"
        rebuilds.note_failure(connection, claimed, reason, counts=False, max_attempts=max_attempts)
        keep_serving(connection, collection)
    drop_built(runtime, collection, wanted.rebuild_id)
    raise RebuildFailed(f"rebuild {wanted.rebuild_id} is given up: {reason}")


def _note_failure(
    runtime: Runtime, collection: Collection, claimed: Rebuild, error: BaseException
) -> None:
    """Keep why an attempt failed; after the last one what serves is pinned again."""
    reason = error.message if isinstance(error, KnowledgeError) else repr(error)
    passes = isinstance(error, (Unavailable, LeaseHeld)) or not isinstance(error, Exception)
    with suppress(Unavailable):  # the error that is under way says more
        with runtime.app.tenant(claimed.tenant_id) as connection:
            clock.lock_head(connection, collection)
            state = rebuilds.note_failure(
                connection,
                claimed,
                reason,
                counts=not passes,
                max_attempts=runtime.settings.indexing.max_attempts,
            )
            if state is RebuildState.FAILED:
                keep_serving(connection, collection)
            elif state is RebuildState.REQUESTED:
                revisions.mark_rebuilt(connection, collection)
        if state is RebuildState.FAILED:
            drop_built(runtime, collection, claimed.rebuild_id)


class _Builder:
    """One attempt at one rebuild."""

    def __init__(
        self,
        runtime: Runtime,
        collection: Collection,
        wanted: Rebuild,
        progress: Callable[[str], None],
    ) -> None:
        self._runtime = runtime
        self._collection = collection
        self._wanted = wanted
        self._progress = progress
        self._started = time.monotonic()
        self._embedded = 0
        self._rounds = 0

    def run(self, owner: str) -> Rebuilt:
        self._catch_up(self._generation())
        reached("rebuild.caught_up")
        collection = self._collection
        with leased(self._runtime, collection.tenant_id, collection.slug, owner) as held:
            since = time.monotonic()
            # Cancelled, taken up by another, or collected from, while we waited for the lease.
            self._note(0)
            done = self._finish(held, self._generation(), since)
            lease.release(self._runtime.app, held)
        return done

    def _generation(self) -> Generation:
        """The generation that an earlier attempt began, or a new one."""
        runtime, collection, wanted = self._runtime, self._collection, self._wanted
        profile = wanted.embedding_profile
        with runtime.app.tenant(collection.tenant_id) as connection:
            found = generations.building_generation(
                connection,
                collection,
                backend=runtime.index.name,
                class_name=runtime.index.class_name(profile),
                rebuild_id=wanted.rebuild_id,
            )
            if found is None:
                found = new_hybrid_generation(
                    runtime, collection, profile, rebuild_id=wanted.rebuild_id
                )
                generations.add_generation(connection, found)
        reached("rebuild.generation_added")
        return found

    def _catch_up(self, generation: Generation) -> None:
        """Write what is visible at the start, then replay what was published meanwhile."""
        head = generation.applied_rev or generation.created_rev
        while True:
            generation = self._round(generation, head)
            self._progress(f"{self._collection.partition}: written up to revision {head}")
            today = self._today().head_rev
            if today == head or self._rounds >= MAX_ROUNDS:
                return
            head = today

    def _round(self, generation: Generation, head: int) -> Generation:
        """Embed and write up to ``head``. Raises `RebuildCancelled` between two batches."""
        runtime = self._runtime
        target = Target(self._today(), generation, head)
        self._embedded += embed_for(runtime, target, noted=self._note).texts
        written = write_changes(runtime, target, noted=self._note)
        if target.is_current and not written:
            return generation
        with runtime.app.tenant(generation.tenant_id) as connection:
            items = chunk_versions.count_versions(
                connection, target.collection, created=generation.created_rev, upto=head
            )
            generations.set_applied(connection, generation, head, items=items)
        self._rounds += 1
        reached("rebuild.round_written")
        return replace(generation, applied_rev=head, items=items)

    def _finish(self, held: Lease, generation: Generation, since: float) -> Rebuilt:
        """The last round and the switch, while nobody else writes; the lease is held ``since``."""
        runtime = self._runtime
        head = self._today().head_rev
        generation = self._round(generation, head)
        target = Target(self._today(), generation, head)
        items, _ = settle(runtime, target)
        in_postgres = plan_metadata(runtime, held)
        assert in_postgres is not None  # a revision serves, so something was published
        write_metadata(runtime, in_postgres)  # a publish may have ended between tick and switch
        require_metadata(runtime, in_postgres)
        carry_acls(runtime, target.collection, head)
        revision = self._switch(held, target, in_postgres)
        reached("rebuild.switched")
        return Rebuilt(
            revision=revision,
            generation=generation.generation_id,
            profile=generation.embedding_profile,
            items=items,
            embedded=self._embedded,
            rounds=self._rounds,
            lease_s=time.monotonic() - since,
            seconds=time.monotonic() - self._started,
        )

    def _switch(self, held: Lease, hybrid: Target, in_postgres: Target) -> int:
        """Tick with an empty delta and switch to the new generation, in one transaction."""
        collection = hybrid.collection
        with self._runtime.app.tenant(collection.tenant_id) as connection:
            lease.require(connection, held)
            revision = clock.lock_head(connection, collection) + 1
            clock.advance(connection, collection, revision)
            for target in (hybrid, in_postgres):
                revisions.start_building(
                    connection, collection, target.generation, target.kinds, revision
                )
                generations.move_applied(connection, target.generation, revision)
            rebuilds.note_switched(connection, self._wanted, revision)
            visible = clock.open_chunks(connection, collection)
            built = [target.generation.generation_id for target in (hybrid, in_postgres)]
            revisions.switch(connection, collection, revision, visible, built)
            inbox.settle_served(connection, collection.collection_id, revision)
            reached("rebuild.switching")
        return revision

    def _note(self, count: int) -> None:
        rebuilds.note_written(self._runtime.app, self._wanted, count)

    def _today(self) -> Collection:
        collection = self._collection
        return self._runtime.collection(collection.tenant_id, str(collection.collection_id))
