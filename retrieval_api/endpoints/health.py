"""Whether the process lives, whether it can answer, and its metrics."""

from __future__ import annotations

from importlib.metadata import version

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from knowledge.errors import DatabaseUnavailable
from retrieval_api.service import service_of


async def healthz(request: Request) -> Response:
    """``installation`` tells whose process answers: two may want the same port."""
    return JSONResponse(
        {
            "status": "ok",
            "version": version("knowledge-retrieval"),
            "installation": service_of(request).config.home.installation_id,
        }
    )


async def readyz(request: Request) -> Response:
    """200 when PostgreSQL answers; ``index`` tells whether the hybrid index is asked."""
    service = service_of(request)
    try:
        await service.database.global_rows("select 1 as ready")
        database = "ok"
    except DatabaseUnavailable as error:
        database = error.message
    index = "ok" if service.index.is_proven else service.index.reason
    ready = database == "ok"
    return JSONResponse(
        {"status": "ok" if ready else "unavailable", "database": database, "index": index},
        200 if ready else 503,
    )


async def metrics(request: Request) -> Response:
    service = service_of(request)
    await service.update_fact_counts()
    text = service.metrics.text()
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
