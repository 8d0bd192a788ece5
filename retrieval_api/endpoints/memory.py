"""The memory of agents: facts told, recalled, and looked after."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable
from typing import Any, Final, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from knowledge.graph.receiving import Sender
from knowledge.memory import care
from knowledge.memory.extraction.extractor import Turn
from knowledge.memory.offload_jobs import RequestKey, job_to_wire
from knowledge.memory.plan import MemoryPlan, MemoryScope, plan_memory
from knowledge.memory.wire import (
    all_names_to_wire,
    names_to_wire,
    recalled_to_wire,
    surroundings_to_wire,
)
from knowledge.memory.writing import require_call_size, upsert
from knowledge.model.fact import require_name
from knowledge.model.scope import ADMIN, READ, WRITE, Caller
from knowledge.retrieval.wire import scope_to_wire
from retrieval_api.bodies import parse_json, read_json
from retrieval_api.headers import deadline_s, idempotency_key
from retrieval_api.memory_bodies import (
    ForgetBody,
    NamesBody,
    NamesQuery,
    OffloadBody,
    PromoteBody,
    RecallBody,
    SurroundingsBody,
    UpsertBody,
    VerifyBody,
)
from retrieval_api.offload_target import OffloadTarget
from retrieval_api.service import Service, service_of

MAX_UPSERT_BYTES: Final = 2_000_000
"""Of a call: 1,000 triples of 2,000 bytes."""

MAX_OFFLOAD_BYTES: Final = 4_000_000

Answer = TypeVar("Answer")


async def recall(request: Request) -> Response:
    """What is known about what a text speaks of."""
    service = service_of(request)
    caller = await service.authenticate(request, READ)
    body = RecallBody.model_validate(await read_json(request))
    started = time.perf_counter()
    found = await _in_time(request, service.memory.recaller.recall(caller, body.to_question()))
    seconds = time.perf_counter() - started
    mode = "skipped" if found.skipped else found.basis.mode
    service.metrics.count_recall(caller.tenant_id, mode, seconds, found.basis.dropped)
    return JSONResponse(recalled_to_wire(found, body.max_tokens))


async def search(request: Request) -> Response:
    """Which entities a text may speak of."""
    service = service_of(request)
    caller = await service.authenticate(request, READ)
    body = NamesBody.model_validate(await read_json(request))
    found = await _in_time(request, service.memory.recaller.search(caller, body.to_question()))
    service.metrics.count_foreign(caller.tenant_id, found.basis.dropped)
    return JSONResponse(names_to_wire(found))


async def subgraph(request: Request) -> Response:
    """The facts around entities."""
    service = service_of(request)
    caller = await service.authenticate(request, READ)
    body = SurroundingsBody.model_validate(await read_json(request))
    found = await _in_time(request, service.memory.recaller.subgraph(caller, body.to_question()))
    service.metrics.count_foreign(caller.tenant_id, found.basis.dropped)
    return JSONResponse(surroundings_to_wire(found, body.max_tokens))


async def names(request: Request) -> Response:
    """Every name that the caller may read a fact of, for clients that keep them."""
    service = service_of(request)
    caller = await service.authenticate(request, READ)
    asked = NamesQuery.model_validate(dict(request.query_params))
    plan, found = await _in_time(request, service.memory.recaller.names(caller, asked.scope()))
    return JSONResponse(all_names_to_wire(plan, found))


async def post_upsert(request: Request) -> Response:
    """Write facts that an agent observed. The same call again changes nothing."""
    service = service_of(request)
    caller = await service.authenticate(request, WRITE)
    key = idempotency_key(request)
    raw = await request.body()
    async with service.write_slots.of(caller.tenant_id):
        body = await asyncio.to_thread(_read_upsert, raw)
        plan = await _plan(service, caller, body.project_id, body.graph, WRITE)
        told = body.told(plan.namespace, key)
        answer = await asyncio.to_thread(
            upsert, service.writer, Sender.of(caller, plan.facts), told
        )
    service.memory.embedder.kick()
    return JSONResponse({**answer, "scope": scope_to_wire(plan.scope)})


async def offload(request: Request) -> Response:
    """Hand older turns over: accepted at once, read for facts later, kept in memory until then."""
    service = service_of(request)
    caller = await service.authenticate(request, WRITE)
    raw = await request.body()
    body = await asyncio.to_thread(_read_offload, raw)
    key = idempotency_key(request)
    # What may not be written later is refused now.
    plan = await _plan(service, caller, body.project_id, body.graph, WRITE)
    target = OffloadTarget(
        caller=caller,
        memory=MemoryScope(plan.scope.project_id, body.graph),
        client=require_name(body.client, "client"),
        session_id=require_name(body.session_id, "sessionId"),
        is_of_session=body.scope == "session",
    )
    turns = [Turn(turn.role, turn.content, turn.time) for turn in body.turns]
    status = service.memory.queue.submit(
        tenant_id=caller.tenant_id,
        principal=caller.client_id,
        turns=turns,
        target=target,
        key=None if key is None else RequestKey(key, hashlib.sha256(raw).digest()),
    )
    return JSONResponse(job_to_wire(status), 202)


async def read_job(request: Request) -> Response:
    """How far an offload is: the caller's own, for an hour."""
    service = service_of(request)
    caller = await service.authenticate(request, WRITE)
    await service.granted(caller, WRITE)
    status = service.memory.queue.status(
        request.path_params["job_id"], tenant_id=caller.tenant_id, principal=caller.client_id
    )
    return JSONResponse(job_to_wire(status))


async def promote(request: Request) -> Response:
    """Share facts of one session with every session."""
    service = service_of(request)
    caller = await service.authenticate(request, WRITE)
    body = PromoteBody.model_validate(await read_json(request))
    async with service.write_slots.of(caller.tenant_id):
        plan, sender = await _sender(service, caller, body.project_id, body.graph, WRITE)
        answer = await asyncio.to_thread(
            care.promote, service.writer, sender, plan.namespace, body.chosen()
        )
    return JSONResponse(answer)


async def forget(request: Request) -> Response:
    """Take facts out of every store; answers with a receipt."""
    service = service_of(request)
    caller = await service.authenticate(request, WRITE)
    body = ForgetBody.model_validate(await read_json(request))
    async with service.write_slots.of(caller.tenant_id):
        plan, sender = await _sender(service, caller, body.project_id, body.graph, WRITE)
        await service.recorder.flush()  # what cites the facts must be there to be taken out
        receipt = await asyncio.to_thread(
            care.forget, service.writer, sender, plan.namespace, body.chosen()
        )
    service.memory.names.drop(plan.place)
    scope = scope_to_wire(plan.scope)
    return JSONResponse({**receipt.to_wire(), "namespace": plan.namespace, "scope": scope})


async def verify(request: Request) -> Response:
    """A person says that facts are right."""
    service = service_of(request)
    caller = await service.authenticate(request, ADMIN)
    body = VerifyBody.model_validate(await read_json(request))
    async with service.write_slots.of(caller.tenant_id):
        plan, sender = await _sender(service, caller, body.project_id, body.graph, ADMIN)
        answer = await asyncio.to_thread(
            care.verify, service.writer, sender, plan.namespace, body.fact_ids
        )
    return JSONResponse(answer)


async def _sender(
    service: Service, caller: Caller, project_id: str | None, graph: str | None, needed: str
) -> tuple[MemoryPlan, Sender]:
    plan = await _plan(service, caller, project_id, graph, needed)
    return plan, Sender.of(caller, plan.facts)


async def _plan(
    service: Service, caller: Caller, project_id: str | None, graph: str | None, needed: str
) -> MemoryPlan:
    return await plan_memory(service.facts, caller, MemoryScope(project_id, graph), needed)


async def _in_time(request: Request, asking: Awaitable[Answer]) -> Answer:
    """The answer within the deadline of a search, which the request may shorten."""
    limit_s = service_of(request).settings.retrieval.request_timeout_s
    asked_s = deadline_s(request)
    async with asyncio.timeout(min(limit_s, asked_s or limit_s)):
        return await asking


def _read_offload(raw: bytes) -> OffloadBody:
    return OffloadBody.model_validate(parse_json(raw))


def _read_upsert(raw: bytes) -> UpsertBody:
    """In a thread: so much JSON would hold up everybody else."""
    given: Any = parse_json(raw)
    if isinstance(given, dict) and isinstance(given.get("triples"), list):
        require_call_size(len(given["triples"]))
    return UpsertBody.model_validate(given)
