"""The switch: revisions become Ready together, in one transaction with their events."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass

from knowledge.crash_points import reached
from knowledge.errors import Conflict, IndexInconsistent
from knowledge.indexing.convergence import verify_hybrid
from knowledge.indexing.rebuild_requests import request_rebuild
from knowledge.indexing.targets import Target, plan_hybrid, plan_metadata
from knowledge.model.revision import IndexKind
from knowledge.runtime import Runtime
from knowledge.storage.postgres import clock, inbox, lease, metadata, revisions
from knowledge.storage.postgres.lease import Lease


@dataclass(frozen=True, slots=True)
class Switched:
    """``kinds`` are those that became Ready now; empty when all served already."""

    revision: int
    kinds: tuple[str, ...]
    items: int
    seconds: float


def serve(runtime: Runtime, held: Lease) -> Switched:
    """Evaluate the blocking guards, then switch and let the lease go.

    The guards are evaluated here and not trusted from elsewhere: a check that ran beside the
    index, or did not run, must not let a thin revision serve. Raises `IndexInconsistent`,
    `LeaseLost`; then nothing was switched.
    """
    started = time.monotonic()
    hybrid = plan_hybrid(runtime, held)
    in_postgres = plan_metadata(runtime, held)
    if hybrid is None or in_postgres is None:
        return _nothing_published(runtime, held, started)
    _require_ready(runtime, hybrid, in_postgres)
    reached("serving.verified")
    collection, head = hybrid.collection, hybrid.head
    with runtime.app.tenant(collection.tenant_id) as connection:
        lease.require(connection, held)
        items = clock.open_chunks(connection, collection)
        generations = [target.generation.generation_id for target in (hybrid, in_postgres)]
        built = revisions.switch(connection, collection, head, items, generations)
        inbox.settle_served(connection, collection.collection_id, head)
        reached("serving.switching")
    reached("serving.switched")
    _follow_pin(runtime, hybrid)
    lease.release(runtime.app, held)
    return Switched(
        revision=head,
        kinds=tuple(row["kind"] for row in built),
        items=items,
        seconds=time.monotonic() - started,
    )


def _follow_pin(runtime: Runtime, hybrid: Target) -> None:
    """Ask for the rebuild that a profile pinned during the first build could not ask for yet."""
    today = runtime.collection(hybrid.collection.tenant_id, hybrid.collection.slug)
    if today.embedding_profile != hybrid.generation.embedding_profile:
        with suppress(Conflict):  # it is at work
            request_rebuild(
                runtime.app,
                today,
                profile=today.embedding_profile,
                reason="profile",
                requested_by="publish",
            )


def _nothing_published(runtime: Runtime, held: Lease, started: float) -> Switched:
    """Settle events that left the clock at 0, such as the deletion of an unknown source."""
    with runtime.app.tenant(held.collection.tenant_id) as connection:
        lease.require(connection, held)
        inbox.settle_served(connection, held.collection.collection_id, 0)
    lease.release(runtime.app, held)
    return Switched(0, (), 0, time.monotonic() - started)


def _require_ready(runtime: Runtime, hybrid: Target, in_postgres: Target) -> None:
    for target in (hybrid, in_postgres):
        if not target.is_current:
            raise IndexInconsistent(
                f"{'/'.join(target.kinds)} reached revision {target.generation.applied_rev},"
                f" the clock stands at {target.head}: materialise the index assets first"
            )
    verify_hybrid(runtime, hybrid)
    require_metadata(runtime, in_postgres)


def require_metadata(runtime: Runtime, target: Target) -> None:
    """Raise `IndexInconsistent` unless every chunk opened since the last switch has its item."""
    with runtime.app.tenant(target.collection.tenant_id) as connection:
        served = revisions.served_revision(connection, target.collection, IndexKind.METADATA)
        absent = metadata.missing(
            connection,
            target.collection,
            created=target.generation.created_rev,
            after=served,
            upto=target.head,
        )
    if absent:
        raise IndexInconsistent(f"{absent} chunks have no metadata item: materialise again")
