"""The record of every search, written through a bounded queue.

A full queue holds searches up (back-pressure). A killed process may lose what it had not
flushed, at most 200 ms; nothing else rests on the record.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import uuid
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from knowledge.errors import DatabaseUnavailable, InvalidInput
from knowledge.model.event import RETRIEVAL_EXECUTED, TOPICS
from knowledge.retrieval.answer import Answer
from knowledge.retrieval.request import SearchRequest
from knowledge.storage.postgres.database import AsyncDatabase
from knowledge.storage.postgres.records import record

FLUSH_INTERVAL_S: Final = 0.2
CAPACITY: Final = 2000
_BATCH: Final = 100

logger = logging.getLogger(__name__)


class Recorder:
    """Run `run` as a task; `record` each answer; cancel the task to flush what is left."""

    def __init__(self, database: AsyncDatabase) -> None:
        self._database = database
        self._queue: asyncio.Queue[_Record] = asyncio.Queue(CAPACITY)

    async def record(self, request: SearchRequest, answer: Answer, wire: Mapping[str, Any]) -> None:
        """Queue a record; ``wire`` is the answer as it was sent. Waits while the queue is full."""
        await self._queue.put(_Record(request, answer, wire))

    async def run(self) -> None:
        try:
            while True:
                await asyncio.sleep(FLUSH_INTERVAL_S)
                await self.flush()
        finally:
            await self.flush()

    async def flush(self) -> None:
        """Write everything queued. When the database is away the records wait in the queue."""
        while not self._queue.empty():
            batch = [self._queue.get_nowait() for _ in range(min(_BATCH, self._queue.qsize()))]
            by_tenant: dict[str, list[dict[str, Any]]] = defaultdict(list)
            for item in batch:
                by_tenant[item.answer.scope.tenant_id].append(_describe(item))
            try:
                for tenant_id, records in by_tenant.items():
                    await record(self._database, tenant_id, records)
            except InvalidInput:
                logger.exception("records were refused", extra={"lost": len(batch)})
            except DatabaseUnavailable:
                logger.warning("records wait for the database", extra={"waiting": len(batch)})
                for item in batch:
                    if not self._queue.full():
                        self._queue.put_nowait(item)
                return


@dataclass(frozen=True, slots=True)
class _Record:
    request: SearchRequest
    answer: Answer
    wire: Mapping[str, Any]
    event_id: uuid.UUID = field(default_factory=uuid.uuid4)
    executed_at: datetime = field(default_factory=lambda: datetime.now(UTC))


def _describe(item: _Record) -> dict[str, Any]:
    """The row of one search: scope, query hash (never the query), indexes, citations."""
    request, answer, scope = item.request, item.answer, item.answer.scope
    citations = [candidate["citation"] for candidate in item.wire["candidates"]]
    content = json.dumps([scope.tenant_id, scope.project_id, scope.principal, citations])
    run_id = None if request.run_id is None else str(request.run_id)
    latency_ms = round(answer.latency_ms)
    return {
        "query_id": str(answer.query_id),
        "tenant_id": scope.tenant_id,
        "project_id": scope.project_id,
        "principal": scope.principal,
        "groups": list(scope.groups),
        "run_id": run_id,
        "query_hash": hashlib.sha256(request.query.encode("utf-8", "surrogatepass")).hexdigest(),
        "filters": _filters(request),
        "indexes_used": [str(index) for index in answer.indexes_used],
        "legs": item.wire["legs"],
        "result_count": len(citations),
        "citations_ref": hashlib.sha256(content.encode()).hexdigest(),
        "citations": citations,
        "latency_ms": latency_ms,
        "executed_at": item.executed_at.isoformat(),
        "event_id": str(item.event_id),
        "topic": TOPICS[RETRIEVAL_EXECUTED],
        "event_type": RETRIEVAL_EXECUTED,
        "event": {
            "queryId": str(answer.query_id),
            "tenantId": scope.tenant_id,
            "runId": run_id,
            "resultCount": len(citations),
            "latencyMs": latency_ms,
        },
    }


def _filters(request: SearchRequest) -> Mapping[str, Any]:
    filters = request.filters
    values = {
        "collections": list(request.collections),
        "topK": request.top_k,
        "sourceId": filters.source_id,
        "pathPrefix": filters.path_prefix,
        "kind": filters.kind,
        "language": filters.language,
        "tags": list(filters.tags),
        "updatedAfter": filters.updated_after and filters.updated_after.isoformat(),
        "minTrust": request.min_trust,
        "pinnedRevisions": dict(request.pinned),
        "asOf": request.as_of and request.as_of.isoformat(),
        "between": request.between and [moment.isoformat() for moment in request.between],
    }
    return {key: value for key, value in values.items() if value}
