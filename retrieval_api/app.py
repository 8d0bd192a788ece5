"""The query service as one ASGI application.

To mount it in another application, enter `open_service` in the parent's lifespan and set
``app.state.service``: a mounted application's own lifespan is not run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from mcp_server.http import MAX_BODY_BYTES
from retrieval_api.bodies import BodyLimit
from retrieval_api.docs import openapi_json, swagger_files, swagger_page
from retrieval_api.endpoints import (
    collections,
    events,
    facts,
    graph,
    health,
    mcp,
    memory,
    oauth,
    rebuilds,
    search,
)
from retrieval_api.operation import BASE
from retrieval_api.problems import HANDLERS
from retrieval_api.service import ServiceConfig, open_service

FACTS_PATH = f"{BASE}/graph/facts"
UPSERT_PATH = f"{BASE}/memory/upsert"
OFFLOAD_PATH = f"{BASE}/memory/offload"
MCP_PATH = "/mcp"


def routes() -> list[Route | Mount]:
    return [
        Route(f"{BASE}/search", search.search, methods=["POST"]),
        Route(f"{BASE}/queries/{{query_id}}", search.read_query, methods=["GET"]),
        Route(f"{BASE}/citations/{{citations_ref}}", search.read_citations, methods=["GET"]),
        Route(f"{BASE}/collections", collections.list_collections, methods=["GET"]),
        Route(
            f"{BASE}/collections/{{collection}}/indexes",
            collections.list_indexes,
            methods=["GET"],
        ),
        Route(
            f"{BASE}/collections/{{collection}}/indexes/rebuild",
            rebuilds.post_rebuild,
            methods=["POST"],
        ),
        Route(f"{BASE}/rebuilds/{{rebuild_id}}", rebuilds.get_rebuild, methods=["GET"]),
        Route(f"{BASE}/rebuilds/{{rebuild_id}}/cancel", rebuilds.post_cancel, methods=["POST"]),
        *_graph_routes(),
        *_memory_routes(),
        Route(f"{BASE}/events", events.events, methods=["GET", "POST"]),
        Route(MCP_PATH, mcp.McpEndpoint()),
        Route("/oauth/token", oauth.issue_token, methods=["POST"]),
        Route("/healthz", health.healthz, methods=["GET"]),
        Route("/readyz", health.readyz, methods=["GET"]),
        Route("/metrics", health.metrics, methods=["GET"]),
        Route("/openapi.json", openapi_json, methods=["GET"]),
        Route("/docs", swagger_page, methods=["GET"]),
        Mount("/docs/static", StaticFiles(directory=swagger_files())),
    ]


def _graph_routes() -> list[Route]:
    suggestion = f"{BASE}/graph/suggestions/{{suggestion_id}}"
    return [
        Route(f"{BASE}/graph/query", graph.query, methods=["POST"]),
        Route(f"{BASE}/graph/expand", graph.expand, methods=["POST"]),
        Route(f"{BASE}/graph/paths", graph.paths, methods=["POST"]),
        Route(f"{BASE}/graph/history", graph.history, methods=["POST"]),
        Route(FACTS_PATH, facts.assert_facts, methods=["POST"]),
        Route(f"{BASE}/graph/suggestions", graph.list_suggestions, methods=["GET"]),
        Route(f"{suggestion}/confirm", facts.confirm, methods=["POST"]),
        Route(f"{suggestion}/reject", facts.reject, methods=["POST"]),
    ]


def _memory_routes() -> list[Route]:
    return [
        Route(f"{BASE}/memory/recall", memory.recall, methods=["POST"]),
        Route(f"{BASE}/memory/search", memory.search, methods=["POST"]),
        Route(f"{BASE}/memory/subgraph", memory.subgraph, methods=["POST"]),
        Route(f"{BASE}/memory/names", memory.names, methods=["GET"]),
        Route(UPSERT_PATH, memory.post_upsert, methods=["POST"]),
        Route(OFFLOAD_PATH, memory.offload, methods=["POST"]),
        Route(f"{BASE}/memory/jobs/{{job_id}}", memory.read_job, methods=["GET"]),
        Route(f"{BASE}/memory/promote", memory.promote, methods=["POST"]),
        Route(f"{BASE}/memory/forget", memory.forget, methods=["POST"]),
        Route(f"{BASE}/memory/verify", memory.verify, methods=["POST"]),
    ]


def create_app(config: ServiceConfig) -> Starlette:
    """The application for ``config``; everything it opens is opened and closed by its lifespan."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with open_service(config) as service:
            app.state.service = service
            yield

    return Starlette(
        routes=routes(),
        lifespan=lifespan,
        exception_handlers=HANDLERS,
        middleware=[
            Middleware(
                BodyLimit,
                larger={
                    FACTS_PATH: facts.MAX_FACTS_BYTES,
                    UPSERT_PATH: memory.MAX_UPSERT_BYTES,
                    OFFLOAD_PATH: memory.MAX_OFFLOAD_BYTES,
                    MCP_PATH: MAX_BODY_BYTES,
                },
            )
        ],
    )
