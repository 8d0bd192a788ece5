"""Garbage collection: revisions that are kept no longer, and what only they could see."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from knowledge.crash_points import reached
from knowledge.errors import Conflict
from knowledge.indexing.rebuild_requests import request_rebuild
from knowledge.indexing.rebuilding import clear_ended
from knowledge.indexing.tick import leased
from knowledge.model.collection import Collection
from knowledge.model.revision import Generation
from knowledge.runtime import Runtime
from knowledge.settings import Settings
from knowledge.storage.postgres import collecting, generations, lease, rebuilds
from knowledge.storage.postgres.collecting import DeadRows, Retention
from knowledge.storage.postgres.lease import Lease
from knowledge.storage.postgres.rebuilds import Rebuild

MARGIN_S: Final = 1.0
"""Added to the longest deadline of a request that was planned before the marks."""

_READ: Final = ("serving", "retired", "building")


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collection removed. ``floor`` is the oldest revision that can still be pinned.

    ``rebuild`` is the one asked for because of ``dead_rows``, else None.
    """

    floor: int
    revisions: int
    generations: int
    chunk_versions: int
    dead_rows: DeadRows
    rebuild: Rebuild | None
    seconds: float


def retention(settings: Settings) -> Retention:
    indexing = settings.indexing
    return Retention(
        revisions=indexing.keep_revisions,
        days=indexing.keep_days,
        dead_share=indexing.dead_rows_share,
        dead_rows=indexing.dead_rows_minimum,
    )


def collect(runtime: Runtime, collection: Collection, *, owner: str) -> Collected:
    """Mark, wait until no request can still read what was marked, then delete.

    First the index, then PostgreSQL, which says what to delete: killed anywhere and run again,
    it ends in the same state. Asks for a rebuild where too much of the index is dead rows.
    Raises `LeaseHeld`, `LeaseLost`, `IndexUnavailable`.
    """
    started = time.monotonic()
    kept = retention(runtime.settings)
    with runtime.owner.transaction() as connection:
        floor, marked = collecting.mark(connection, collection, kept)
    reached("collect.marked")
    _await_requests(runtime, collection)
    with leased(runtime, collection.tenant_id, collection.slug, owner) as held:
        dropped = _drop_unread(runtime, held)
        reached("collect.generations_dropped")
        deleted = _delete_unseen(runtime, held, floor)
        lease.release(runtime.app, held)
    reached("collect.rows_deleted")
    with runtime.owner.transaction() as connection:
        dead = collecting.dead_rows(connection, collection)
    return Collected(
        floor=floor,
        revisions=len(marked),
        generations=dropped,
        chunk_versions=deleted,
        dead_rows=dead,
        rebuild=_renew(runtime, collection) if dead.are_too_many(kept) else None,
        seconds=time.monotonic() - started,
    )


def _await_requests(runtime: Runtime, collection: Collection) -> None:
    """Sleep until every request that was planned before the last mark has met its deadline."""
    age_s = collecting.age_of_marks_s(runtime.owner, collection)
    patience_s = runtime.settings.retrieval.request_timeout_s + MARGIN_S
    if age_s is not None and age_s < patience_s:
        time.sleep(patience_s - age_s)


def _drop_unread(runtime: Runtime, held: Lease) -> int:
    """Drop the generations that no revision reads. Those of another backend stay with it."""
    unread = set(collecting.unread_generations(runtime.owner, held.collection))
    dropped = 0
    for generation in _generations(runtime, held.collection, ("retired", "building")):
        if generation.generation_id not in unread:
            continue
        if generation.rebuild_id is not None and generation.state == "building":
            # Its builder may not have noticed yet that it was cancelled.
            dropped += clear_ended(runtime, held.collection, generation.rebuild_id)
            continue
        runtime.index.drop_generation(generation)
        with runtime.app.tenant(generation.tenant_id) as connection:
            lease.require(connection, held)
            generations.set_collected(connection, generation)
        dropped += 1
    return dropped


def _delete_unseen(runtime: Runtime, held: Lease, floor: int) -> int:
    found = _generations(runtime, held.collection, _READ)
    written = [generation for generation in found if generation.applied_rev > 0]
    for ids in collecting.unseen_ids(runtime.owner, held.collection, floor):
        for generation in written:
            runtime.index.delete(generation, ids)
    reached("collect.items_deleted")
    with runtime.owner.transaction() as connection:
        lease.require(connection, held)
        deleted = collecting.delete_unseen(connection, held.collection, floor)
        reached("collect.rows_deleting")
    return deleted


def _generations(
    runtime: Runtime, collection: Collection, states: tuple[str, ...]
) -> list[Generation]:
    with runtime.app.tenant(collection.tenant_id) as connection:
        return generations.generations_in(
            connection, collection, backend=runtime.index.name, states=states
        )


def _renew(runtime: Runtime, collection: Collection) -> Rebuild | None:
    """Ask for a generation without the dead rows, unless a rebuild is at work already."""
    with runtime.app.tenant(collection.tenant_id) as connection:
        found = rebuilds.active(connection, collection)
        serving = generations.serving_generation(connection, collection)
    if found is not None or serving is None:
        return found
    with suppress(Conflict):  # somebody asked for another one at this moment
        return request_rebuild(
            runtime.app,
            collection,
            profile=serving.embedding_profile,
            reason="dead_rows",
            requested_by="garbage collection",
        )
    return None
