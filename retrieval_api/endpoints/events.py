"""Events in (the inbox) and out (the outbox), as CloudEvents."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from knowledge.errors import InvalidInput
from knowledge.model.scope import ADMIN
from knowledge.publishing.announcing import receive_event
from knowledge.retrieval.wire import time_to_wire
from knowledge.storage.postgres import service as queries
from knowledge.storage.postgres.database import Row
from retrieval_api.bodies import read_json
from retrieval_api.service import service_of
from retrieval_api.wire import EventBody

PAGE: Final = 500


async def events(request: Request) -> Response:
    """One route for both methods, so that a refused one names them all."""
    return await (post_event if request.method == "POST" else list_events)(request)


async def post_event(request: Request) -> Response:
    """Take one event; the same source and id again changes nothing (Idempotency by CloudEvents)."""
    service = service_of(request)
    caller = await service.authenticate(request, ADMIN)
    await service.granted(caller, ADMIN)
    event = EventBody.model_validate(await read_json(request))
    sequence = await asyncio.to_thread(
        receive_event,
        service.writer,
        tenant_id=caller.tenant_id,
        roots=service.snapshot_roots,
        event_source=event.source,
        event_id=event.id,
        event_type=event.type,
        data=event.data,
    )
    return JSONResponse({"sequence": sequence, "state": "accepted"}, 202)


async def list_events(request: Request) -> Response:
    """Events of the tenant after a sequence, oldest first; page on with the last sequence."""
    service = service_of(request)
    caller = await service.authenticate(request, ADMIN)
    await service.granted(caller, ADMIN)
    after = request.query_params.get("after", "0")
    if not after.isdecimal() or len(after) > 18:
        raise InvalidInput("after must be a sequence number, 0 or more")
    rows = await queries.events(service.database, caller.tenant_id, int(after), PAGE)
    return JSONResponse(
        {
            "events": [_event(row, service.tokens.issuer) for row in rows],
            "next": rows[-1]["sequence"] if rows else int(after),
        }
    )


def _event(row: Row, source: str) -> dict[str, Any]:
    return {
        "specversion": "1.0",
        "id": str(row["event_id"]),
        "source": f"urn:{source}",
        "type": row["event_type"],
        "subject": row["subject"],
        "time": time_to_wire(row["occurred_at"]),
        "datacontenttype": "application/json",
        "topic": row["topic"],
        "sequence": row["sequence"],
        "data": row["payload"],
    }
