"""Rebuilds as the wire objects that the service answers and ``--json`` prints."""

from __future__ import annotations

from typing import Any

from knowledge.model.collection import Collection
from knowledge.retrieval.wire import time_to_wire
from knowledge.storage.postgres.rebuilds import Rebuild


def rebuild_to_wire(rebuild: Rebuild, collection: Collection) -> dict[str, Any]:
    """One rebuild of ``collection``."""
    times = {
        "requestedAt": rebuild.requested_at,
        "startedAt": rebuild.started_at,
        "finishedAt": rebuild.finished_at,
    }
    return {
        "rebuildId": str(rebuild.rebuild_id),
        "collection": collection.slug,
        "collectionId": str(rebuild.collection_id),
        "state": rebuild.state.value,
        "reason": rebuild.reason,
        "embeddingProfileVersion": rebuild.embedding_profile,
        "requestedBy": rebuild.requested_by,
        **{name: value and time_to_wire(value) for name, value in times.items()},
        "attempts": rebuild.claims,
        "failedAttempts": rebuild.attempts,
        "itemsWritten": rebuild.items_written,
        "revision": rebuild.revision,
        "error": rebuild.error,
    }
