"""Rebuilds: a new generation beside the serving one, replayed to the head, then switched to.

Publishes go on meanwhile and are served from the old generation. Only the last round of replay
and the switch take the collection's lease.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from knowledge.crash_points import reached
from knowledge.errors import KnowledgeError, RebuildCancelled, RebuildHeld
from knowledge.indexing.convergence import (
    Target,
    carry_acls,
    new_hybrid_generation,
    plan_metadata,
    settle,
    write_changes,
    write_metadata,
)
from knowledge.indexing.embeddings import embed_for
from knowledge.indexing.serving import require_metadata
from knowledge.indexing.tick import leased
from knowledge.model.collection import Collection
from knowledge.model.revision import Generation
from knowledge.runtime import Runtime
from knowledge.storage.postgres import catalogue, clock, inbox, lease, rebuilds, revisions
from knowledge.storage.postgres.database import Database, Transaction
from knowledge.storage.postgres.lease import Lease
from knowledge.storage.postgres.rebuilds import Reason, Rebuild, RebuildState

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


def request_rebuild(
    app: Database,
    collection: Collection,
    *,
    profile: str | None,
    reason: Reason,
    requested_by: str,
    rebuild_id: uuid.UUID | None = None,
) -> Rebuild | None:
    """Pin ``profile`` and ask for a generation built with it; it is built by `rebuild`.

    None where nothing was published yet: then the first publish builds with it. The same
    ``rebuild_id`` again, or a rebuild to the same profile that is active, changes nothing.
    Raises `Conflict` while another one is active.
    """
    with app.tenant(collection.tenant_id) as connection:
        catalogue.set_embedding_profile(connection, collection, profile)
        if revisions.serving_generation(connection, collection) is None:
            return None
        return rebuilds.request(
            connection,
            collection,
            rebuild_id=rebuild_id or uuid.uuid4(),
            reason=reason,
            profile=profile,
            requested_by=requested_by,
        )


def cancel_rebuild(app: Database, collection: Collection, wanted: Rebuild) -> bool:
    """Cancel an active rebuild; False for one that has ended. What served goes on serving.

    A builder that runs notices at its next batch and removes what it wrote; what a killed one
    left is removed by `clear_ended` or garbage collection. The profile that serves is pinned.
    """
    with app.tenant(wanted.tenant_id) as connection:
        if not rebuilds.cancel(connection, wanted.rebuild_id):
            return False
        _keep_serving(connection, collection)
    return True


def clear_ended(runtime: Runtime, collection: Collection, wanted: Rebuild) -> None:
    """Remove what a cancelled or failed rebuild wrote, unless its builder is still at it."""
    with runtime.app.session_lock(_lock(wanted)) as nobody_builds:
        if nobody_builds:
            drop_built(runtime, collection, wanted.rebuild_id)


def rebuild(
    runtime: Runtime,
    wanted: Rebuild,
    *,
    owner: str,
    progress: Callable[[str], None] = lambda _line: None,
) -> Rebuilt:
    """Build, replay and switch. Killed anywhere and run again, it goes on where it was.

    Raises `RebuildHeld` when another process is at work on it, `RebuildCancelled`, and what
    embedding and writing raise; then the old generation serves as before, and the rebuild is
    tried again until its attempts are used up.
    """
    with runtime.app.session_lock(_lock(wanted)) as is_mine:
        if not is_mine:
            raise RebuildHeld(f"another run is at work on rebuild {wanted.rebuild_id}")
        collection = runtime.collection(wanted.tenant_id, str(wanted.collection_id))
        try:
            return _Builder(runtime, collection, wanted, progress).run(owner)
        except RebuildCancelled:
            drop_built(runtime, collection, wanted.rebuild_id)
            raise
        except Exception as error:  # whatever it was, an operator must find it with the rebuild
            reason = error.message if isinstance(error, KnowledgeError) else repr(error)
            _note_failure(runtime, collection, wanted, reason)
            raise


def drop_built(runtime: Runtime, collection: Collection, rebuild_id: uuid.UUID) -> int:
    """Remove what a rebuild that has ended wrote and nothing serves from. Returns how many."""
    with runtime.app.tenant(collection.tenant_id) as connection:
        building = revisions.generations_in(
            connection, collection, backend=runtime.index.name, states=["building"]
        )
    built = [generation for generation in building if generation.rebuild_id == rebuild_id]
    for generation in built:
        runtime.index.drop_generation(generation)
        with runtime.app.tenant(collection.tenant_id) as connection:
            revisions.set_collected(connection, generation)
    return len(built)


def _note_failure(runtime: Runtime, collection: Collection, wanted: Rebuild, reason: str) -> None:
    """Keep why an attempt failed; after the last one what serves is pinned again."""
    with runtime.app.tenant(wanted.tenant_id) as connection:
        state = rebuilds.note_failure(
            connection, wanted, reason, max_attempts=runtime.settings.indexing.max_attempts
        )
        if state is RebuildState.FAILED:
            _keep_serving(connection, collection)
    if not state.is_active:
        drop_built(runtime, collection, wanted.rebuild_id)


def _keep_serving(connection: Transaction, collection: Collection) -> None:
    """The rebuild ended without a switch: what serves is Ready, and its profile pinned."""
    revisions.mark_rebuilt(connection, collection)
    serving = revisions.serving_generation(connection, collection)
    if serving is not None:
        catalogue.set_embedding_profile(connection, collection, serving.embedding_profile)


def _lock(wanted: Rebuild) -> str:
    return f"rebuild {wanted.rebuild_id}"


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
        generation = self._claim()
        reached("rebuild.claimed")
        generation = self._catch_up(generation)
        reached("rebuild.caught_up")
        collection = self._collection
        with leased(self._runtime, collection.tenant_id, collection.slug, owner) as held:
            since = time.monotonic()
            done = self._finish(held, generation)
            lease.release(self._runtime.app, held)
        return replace(done, lease_s=time.monotonic() - since)

    def _claim(self) -> Generation:
        """Count the attempt, mark what serves as Rebuilding, and make or find the generation."""
        runtime, collection, wanted = self._runtime, self._collection, self._wanted
        profile = wanted.embedding_profile
        with runtime.app.tenant(collection.tenant_id) as connection:
            rebuilds.claim(connection, wanted)
            revisions.mark_rebuilding(connection, collection)
            found = revisions.building_generation(
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
                revisions.add_generation(connection, found)
        reached("rebuild.generation_added")
        return found

    def _catch_up(self, generation: Generation) -> Generation:
        """Write what is visible at the start, then replay what was published meanwhile."""
        head = generation.applied_rev or generation.created_rev
        while True:
            generation = self._round(generation, head)
            self._progress(f"{self._collection.partition}: written up to revision {head}")
            today = self._today().head_rev
            if today == head or self._rounds >= MAX_ROUNDS:
                return generation
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
            items = clock.count_versions(
                connection, target.collection, created=generation.created_rev, upto=head
            )
            revisions.set_applied(connection, generation, head, items=items)
        self._rounds += 1
        reached("rebuild.round_written")
        return replace(generation, applied_rev=head, items=items)

    def _finish(self, held: Lease, generation: Generation) -> Rebuilt:
        """The last round and the switch, while nobody else writes the collection."""
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
            lease_s=0.0,
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
                revisions.move_applied(connection, target.generation, revision)
            rebuilds.note_switched(connection, self._wanted, revision)
            visible = clock.open_chunks(connection, collection)
            generations = [target.generation.generation_id for target in (hybrid, in_postgres)]
            revisions.switch(connection, collection, revision, visible, generations)
            inbox.settle_served(connection, collection.collection_id, revision)
            reached("rebuild.switching")
        return revision

    def _note(self, count: int) -> None:
        rebuilds.note_written(self._runtime.app, self._wanted, count)

    def _today(self) -> Collection:
        collection = self._collection
        return self._runtime.collection(collection.tenant_id, str(collection.collection_id))
