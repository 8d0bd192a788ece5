"""Facts told, corrected and retracted; inferred facts confirmed and rejected."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from knowledge.errors import NotFound
from knowledge.graph import suggestions
from knowledge.graph.asserting import Retraction, require_batch_size
from knowledge.graph.receiving import Delivery, Sender, receive_facts
from knowledge.graph.session import Writer
from knowledge.model.scope import ADMIN, WRITE
from knowledge.storage.postgres.database import Database
from retrieval_api.bodies import parse_json, read_json
from retrieval_api.graph_bodies import Decision, DecisionBody, FactsBody
from retrieval_api.headers import idempotency_key
from retrieval_api.service import service_of

MAX_FACTS_BYTES: Final = 8_000_000
"""Of a batch: 5,000 facts of 1,600 bytes."""

Decide = Callable[[Database, str, str, uuid.UUID, Writer], None]


async def assert_facts(request: Request) -> Response:
    """Write a batch, all or nothing. The same Idempotency-Key again answers as the first time."""
    service = service_of(request)
    caller = await service.authenticate(request, WRITE)
    key = idempotency_key(request)
    raw = await request.body()
    async with service.write_slots.of(caller.tenant_id):
        body = await asyncio.to_thread(_read, raw)
        plan = await service.facts.plan(caller, body.project_id, needed=WRITE)
        delivery = Delivery(
            facts=body.facts,
            retractions=[Retraction(entry.fact_id) for entry in body.retractions],
            key=key,
        )
        answer = await asyncio.to_thread(
            receive_facts, service.writer, Sender.of(caller, plan), delivery
        )
    return JSONResponse(answer)


async def confirm(request: Request) -> Response:
    """Serve a suggestion like any fact from now on."""
    return await _decided(request, suggestions.confirm, "confirmed")


async def reject(request: Request) -> Response:
    """Never make this suggestion again, and withdraw what rests on it."""
    return await _decided(request, suggestions.reject, "rejected")


def _read(raw: bytes) -> FactsBody:
    """In a thread, too: so much JSON would hold up everybody else."""
    given = parse_json(raw)
    if isinstance(given, dict):
        require_batch_size(sum(_length(given.get(part)) for part in ("facts", "retractions")))
    return FactsBody.model_validate(given)


def _length(part: Any) -> int:
    return len(part) if isinstance(part, list) else 0


async def _decided(request: Request, decide: Decide, decision: Decision) -> Response:
    service = service_of(request)
    caller = await service.authenticate(request, ADMIN)
    body = DecisionBody.model_validate(await read_json(request, such_as='{"projectId": "…"}'))
    plan = await service.facts.plan(caller, body.project_id, needed=ADMIN)
    wanted = request.path_params["suggestion_id"]
    try:
        suggestion = uuid.UUID(wanted)
    except ValueError as error:
        raise NotFound(f"there is no suggestion {wanted}") from error
    async with service.write_slots.of(caller.tenant_id):
        await asyncio.to_thread(
            decide,
            service.writer,
            caller.tenant_id,
            body.project_id,
            suggestion,
            Sender.of(caller, plan).writer,
        )
    return JSONResponse({"factId": str(suggestion), "suggestion": decision})
