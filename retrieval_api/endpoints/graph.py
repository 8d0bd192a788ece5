"""Questions about facts: by filter, around entities, between two of them, over time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from knowledge.graph.expanding import expand as expand_graph
from knowledge.graph.expanding import find_paths
from knowledge.graph.querying import FactReader
from knowledge.graph.wire import answer_to_wire, history_to_wire, paths_to_wire, subgraph_to_wire
from knowledge.model.scope import READ, Caller
from retrieval_api.bodies import read_json
from retrieval_api.graph_bodies import (
    ExpansionBody,
    FactQueryBody,
    HistoryBody,
    PathsBody,
    SuggestionsQuery,
)
from retrieval_api.headers import deadline_s
from retrieval_api.service import service_of

Answer = TypeVar("Answer")


async def query(request: Request) -> Response:
    return await _answered(
        request,
        lambda given: FactQueryBody.model_validate(given).to_question(),
        FactReader.query,
        answer_to_wire,
    )


async def expand(request: Request) -> Response:
    return await _answered(
        request,
        lambda given: ExpansionBody.model_validate(given).to_question(),
        expand_graph,
        subgraph_to_wire,
    )


async def paths(request: Request) -> Response:
    return await _answered(
        request,
        lambda given: PathsBody.model_validate(given).to_question(),
        find_paths,
        paths_to_wire,
    )


async def history(request: Request) -> Response:
    return await _answered(
        request,
        lambda given: HistoryBody.model_validate(given).to_question(),
        FactReader.history,
        history_to_wire,
    )


async def list_suggestions(request: Request) -> Response:
    """Inferred facts that nobody has confirmed or rejected, of those the caller may read."""
    return await _answered(
        request,
        lambda given: SuggestionsQuery.model_validate(given).to_question(),
        FactReader.query,
        answer_to_wire,
    )


Question = TypeVar("Question")


async def _answered(
    request: Request,
    read: Callable[[Any], Question],
    ask: Callable[[FactReader, Caller, Question], Awaitable[Answer]],
    to_wire: Callable[[Answer], dict[str, Any]],
) -> Response:
    """Ask what the body (or the query string) says, within the deadline of a search."""
    service = service_of(request)
    caller = await service.authenticate(request, READ)
    limit_s = service.settings.retrieval.request_timeout_s
    asked_s = deadline_s(request)
    given = await read_json(request) if request.method == "POST" else dict(request.query_params)
    question = read(given)
    async with asyncio.timeout(min(limit_s, asked_s or limit_s)):
        answer = await ask(service.facts, caller, question)
    return JSONResponse(to_wire(answer))
