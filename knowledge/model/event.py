"""Events as CloudEvents 1.0: what comes in, what goes out, and on which topics."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

CHUNKS_PUBLISHED: Final = "ChunksPublished"
SOURCE_DELETED: Final = "SourceDeleted"
SOURCE_ACCESS_CHANGED: Final = "SourceAccessChanged"

INBOUND: Final = (CHUNKS_PUBLISHED, SOURCE_DELETED, SOURCE_ACCESS_CHANGED)

RETRIEVAL_EXECUTED: Final = "RetrievalExecuted"
GRAPH_FACTS_UPDATED: Final = "GraphFactsUpdated"

TOPICS: Final = {
    "IndexRevisionReady": "retrieval.indexes.v1.index-revision-ready",
    "IndexRevisionRetired": "retrieval.indexes.v1.index-revision-retired",
    "IndexDegraded": "retrieval.indexes.v1.index-degraded",
    GRAPH_FACTS_UPDATED: "retrieval.graph.v1.graph-facts-updated",
    RETRIEVAL_EXECUTED: "retrieval.queries.v1.retrieval-executed",
}


@dataclass(frozen=True, slots=True)
class OutboundEvent:
    """An event of ours, stored in the outbox by the transaction that made it true."""

    event_type: str
    tenant_id: str
    subject: str
    payload: dict[str, Any]
    event_id: uuid.UUID = field(default_factory=uuid.uuid4)
    occurred_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def topic(self) -> str:
        return TOPICS[self.event_type]
