"""Index revisions: their kinds, states, and which state may follow which."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

OPEN: Final = 2147483647
"""``to_rev`` of a chunk version that nothing has replaced yet."""

VISIBILITY_MARGIN: Final = 8
"""Revisions that may tick while a query runs, without the query seeing them."""


class IndexKind(StrEnum):
    VECTOR = "vector"
    FULL_TEXT = "full_text"
    METADATA = "metadata"


class IndexState(StrEnum):
    BUILDING = "Building"
    READY = "Ready"
    REBUILDING = "Rebuilding"
    DEGRADED = "Degraded"
    RETIRED = "Retired"


TRANSITIONS: Final[dict[tuple[IndexState, str], IndexState]] = {
    (IndexState.BUILDING, "BuildCompleted"): IndexState.READY,
    (IndexState.READY, "RebuildRequested"): IndexState.REBUILDING,
    (IndexState.REBUILDING, "BuildCompleted"): IndexState.READY,
    (IndexState.READY, "BackendUnhealthy"): IndexState.DEGRADED,
    (IndexState.DEGRADED, "BackendRecovered"): IndexState.READY,
    (IndexState.READY, "NextRevisionReady"): IndexState.RETIRED,
}


def next_state(state: IndexState, trigger: str) -> IndexState:
    """The state after ``trigger``; `KeyError` when the life cycle has no such transition."""
    return TRANSITIONS[state, trigger]


@dataclass(frozen=True, slots=True)
class Generation:
    """The physical storage a chain of revisions lives in.

    ``class_name`` and ``backend_tenant`` are names in the backend (empty for PostgreSQL);
    ``applied_rev`` is the clock value it has reached, with ``items`` chunk versions. Once it is
    retired, ``acl_rev`` is the clock value up to which ACL changes have reached it.
    ``rebuild_id`` names the rebuild that made it, None for a publish.
    """

    generation_id: uuid.UUID
    tenant_id: str
    collection_id: uuid.UUID
    backend: str
    class_name: str
    backend_tenant: str
    embedding_profile: str | None
    created_rev: int
    applied_rev: int
    state: str
    items: int = 0
    acl_rev: int = 0
    rebuild_id: uuid.UUID | None = None


@dataclass(frozen=True, slots=True)
class IndexRevision:
    """One revision of one index kind of a collection (the specification's IndexRevision)."""

    index_revision_id: uuid.UUID
    tenant_id: str
    collection_id: uuid.UUID
    kind: IndexKind
    revision: int
    embedding_profile_version: str | None
    vector_profile: str | None
    state: IndexState
    item_count: int
    built_from_snapshots: tuple[uuid.UUID, ...]
    built_at: datetime | None
