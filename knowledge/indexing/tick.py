"""The tick: every pending snapshot of a collection becomes one revision of its clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from knowledge.crash_points import reached
from knowledge.errors import ChecksFailed, InvalidSnapshot
from knowledge.indexing.staging import Delta, require_turns
from knowledge.indexing.targets import is_writable
from knowledge.model.collection import Collection
from knowledge.model.event import CHUNKS_PUBLISHED, SOURCE_DELETED
from knowledge.runtime import Runtime
from knowledge.storage.postgres import clock, generations, inbox, lease
from knowledge.storage.postgres.database import Transaction
from knowledge.storage.postgres.inbox import PendingEvent
from knowledge.storage.postgres.lease import Lease
from knowledge.storage.snapshots import Snapshot, read_snapshot

Check = Callable[[Snapshot], None]
"""Runs the blocking data checks on a snapshot; raises `ChecksFailed`."""


@dataclass(frozen=True, slots=True)
class Tick:
    """What one tick did. ``ticked`` is False when nothing differed and the clock stood still.

    ``unchanged`` counts staged chunks that are open already, word for word.
    """

    revision: int
    ticked: bool
    events: int
    opened: int
    closed: int
    unchanged: int
    acls_changed: int
    statistics_frozen: bool
    seconds: float


@contextmanager
def leased(runtime: Runtime, tenant_id: str, slug: str, owner: str) -> Iterator[Lease]:
    """The collection's lease, taken by ``owner`` (a run) for one of its steps."""
    settings = runtime.settings.indexing
    with lease.held(
        runtime.app,
        runtime.collection(tenant_id, slug),
        owner=owner,
        ttl_s=settings.lease_ttl_s,
        wait_s=settings.lease_wait_s,
    ) as taken:
        yield taken


def tick(runtime: Runtime, held: Lease, *, check: Check) -> Tick:
    """Take every pending event, check the staged data, then commit one revision.

    A snapshot that is broken or fails a blocking check is rejected for good, with its reason,
    and nothing is committed; the events beside it stay pending for the next attempt.
    Raises `InvalidSnapshot`, `ChecksFailed`, `LeaseLost`.
    """
    started = time.monotonic()
    events = inbox.pending(runtime.app, held.collection)
    reached("tick.taken")
    inbox.count_attempt(runtime.app, held.collection)
    delta = Delta(has_turns=held.collection.kind == "conversation")
    for event in events:
        if event.event_type == CHUNKS_PUBLISHED:
            delta.add(_accepted(runtime, held, event, check))
        elif event.event_type == SOURCE_DELETED:
            delta.remove_source(str(event.payload["sourceId"]))
    return _commit(runtime, held, events, delta, started)


def _accepted(runtime: Runtime, held: Lease, event: PendingEvent, check: Check) -> Snapshot:
    """The event's snapshot, verified and checked; rejects the event when it is not fit."""
    try:
        snapshot = read_snapshot(Path(str(event.payload["manifest"])))
        snapshot.verify()
        if held.collection.kind == "conversation":
            require_turns(snapshot)
        check(snapshot)
    except (InvalidSnapshot, ChecksFailed) as error:
        inbox.reject(runtime.app, held.collection, event.sequence, error.message)
        raise
    return snapshot


def _commit(
    runtime: Runtime, held: Lease, events: list[PendingEvent], delta: Delta, started: float
) -> Tick:
    collection = held.collection
    with runtime.app.tenant(collection.tenant_id) as connection:
        lease.require(connection, held)
        head = clock.lock_head(connection, collection)
        changes = _write_changes(runtime, connection, collection, head + 1, delta)
        ticked = changes.are_any or _needs_new_generation(runtime, connection, collection)
        frozen = ticked and _advance(runtime, connection, collection, head + 1, delta, changes)
        revision = head + 1 if ticked else head
        inbox.commit_events(connection, [event.sequence for event in events], revision)
        reached("tick.written")
    reached("tick.committed")
    return Tick(
        revision=revision,
        ticked=ticked,
        events=len(events),
        opened=changes.opened,
        closed=changes.closed,
        unchanged=changes.unchanged,
        acls_changed=changes.acls,
        statistics_frozen=frozen,
        seconds=time.monotonic() - started,
    )


@dataclass(frozen=True, slots=True)
class _Changes:
    """How many chunk versions a delta opened, closed, left alone; ACLs and versions it changed."""

    opened: int
    closed: int
    unchanged: int
    acls: int
    versions: int

    @property
    def are_any(self) -> bool:
        return bool(self.opened or self.closed or self.acls or self.versions)


def _write_changes(
    runtime: Runtime, connection: Transaction, collection: Collection, revision: int, delta: Delta
) -> _Changes:
    """Write what differs from the open rows, as ``revision``; nothing when all is as it was."""
    if delta.has_turns:
        delta.place_turns(clock.open_turns(connection, collection, delta.sessions))
    clock.stage(connection, delta.staged_keys(), delta.staged_scopes())
    changed = clock.changed_chunks(connection, collection)
    closed = clock.close_replaced(connection, collection, revision)
    acls = clock.overwrite_acls(connection, collection, revision)
    projects = runtime.source_projects(collection)
    openings = delta.openings(collection, revision, changed, projects)
    opened = clock.open_versions(connection, collection, revision, openings)
    current = clock.current_source_versions(connection, collection)
    versions = {
        source_id: staged
        for source_id, staged in delta.versions.items()
        if current.get(source_id) != staged.source_version
    }
    for source_id, staged in versions.items():
        clock.set_source_version(
            connection, collection, revision, source_id, staged.source_version, staged.snapshot_id
        )
    unchanged = sum(map(len, delta.keys.values())) - len(changed)
    return _Changes(opened, closed, unchanged, acls, len(versions))


def _needs_new_generation(
    runtime: Runtime, connection: Transaction, collection: Collection
) -> bool:
    """Whether what serves was built by another backend, or with another schema of the index."""
    serving = generations.serving_generation(connection, collection)
    return serving is not None and not is_writable(runtime, serving)


def _advance(
    runtime: Runtime,
    connection: Transaction,
    collection: Collection,
    revision: int,
    delta: Delta,
    changes: _Changes,
) -> bool:
    """Make ``revision`` the head; returns whether the term statistics were frozen anew."""
    snapshots = [staged.snapshot_id for staged in delta.versions.values()]
    growth = changes.opened - changes.closed
    clock.advance(connection, collection, revision, snapshots, growth=growth)
    return clock.refreeze_statistics(
        connection,
        collection,
        revision,
        growth=runtime.settings.indexing.statistics_growth,
    )
