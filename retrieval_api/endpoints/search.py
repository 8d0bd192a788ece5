"""Search, and the records of searches."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from knowledge.errors import Forbidden, NotFound
from knowledge.model.scope import READ
from knowledge.retrieval.wire import answer_to_wire, time_to_wire
from knowledge.storage.postgres import records
from retrieval_api.bodies import read_json
from retrieval_api.headers import deadline_s
from retrieval_api.service import service_of
from retrieval_api.wire import SearchBody

_HASH: Final = re.compile(r"[0-9a-f]{64}")


async def search(request: Request) -> Response:
    service = service_of(request)
    caller = await service.authenticate(request, READ)
    limit_s = service.settings.retrieval.request_timeout_s
    asked_s = deadline_s(request)
    body = SearchBody.model_validate(await read_json(request))
    project_id = await service.project_of(caller, body.project_id, READ)
    wanted = body.to_request(project_id=project_id, timeout_s=asked_s)
    try:
        async with asyncio.timeout(min(limit_s, asked_s or limit_s)):
            answer = await service.searcher.search(caller, wanted)
    except TimeoutError:
        service.metrics.count_failure(caller.tenant_id, "timed_out")
        raise
    wire = answer_to_wire(answer)
    await service.recorder.record(wanted, answer, wire)
    service.metrics.count(answer)
    return Response(
        json.dumps(wire, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"),
        media_type="application/json",
    )


async def read_query(request: Request) -> Response:
    """The record of one search: its own caller's, or (admin scope) any of the tenant."""
    service = service_of(request)
    caller = await service.authenticate(request, READ)
    granted = await service.granted(caller, READ)
    query_id = _uuid(request.path_params["query_id"])
    row = query_id and await records.find_query(
        service.database, caller.tenant_id, query_id, service.principal_filter(caller, granted)
    )
    if not row:
        raise NotFound("there is no such query")
    return JSONResponse(
        {
            "queryId": str(row["query_id"]),
            "tenantId": row["tenant_id"],
            "projectId": row["project_id"],
            "principal": row["principal"],
            "groups": row["groups"],
            "runId": row["run_id"] and str(row["run_id"]),
            "queryHash": bytes(row["query_hash"]).hex(),
            "filters": row["filters"],
            "indexesUsed": [str(index) for index in row["indexes_used"]],
            "legs": row["legs"],
            "resultCount": row["result_count"],
            "citationsRef": row["citations_ref"],
            "latencyMs": row["latency_ms"],
            "executedAt": time_to_wire(row["executed_at"]),
        }
    )


async def read_citations(request: Request) -> Response:
    """Stored citations by content hash, less those that may no longer be read."""
    service = service_of(request)
    caller = await service.authenticate(request, READ)
    granted = await service.granted(caller, READ)
    citations_ref = request.path_params["citations_ref"]
    row = _HASH.fullmatch(citations_ref) and await records.find_citations(
        service.database, caller.tenant_id, citations_ref, service.principal_filter(caller, granted)
    )
    if not row:
        raise NotFound("there are no such citations")
    if row["project_id"] not in granted["projects"]:
        raise Forbidden("the client no longer has the project of these citations")
    acl = [f"user:{caller.client_id}", *(f"group:{group}" for group in granted["groups"])]
    kept = await records.readable_citations(
        service.database, caller.tenant_id, row["project_id"], acl, row["citations"]
    )
    return JSONResponse(
        {
            "citationsRef": citations_ref,
            "projectId": row["project_id"],
            "storedAt": time_to_wire(row["stored_at"]),
            "citations": kept,
            "withheld": len(row["citations"]) - len(kept),
        }
    )


def _uuid(value: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(value)
    except ValueError:
        return None
