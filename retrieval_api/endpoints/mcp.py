"""``/mcp``: agents over Streamable HTTP, each request with its own key or token."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from knowledge.errors import DatabaseUnavailable
from retrieval_api.bodies import parse_json
from retrieval_api.service import service_of

_PARSE_ERROR: Final = -32700
"""Of JSON-RPC 2.0."""


class McpEndpoint:
    """Lets a request through to the MCP server once its credential is known not to be revoked.

    What it may read or write is decided where the tool's operation is served. A body is JSON as
    everywhere else: the SDK would take the last of two values, and numbers that are none.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        service = service_of(request)
        caller = await service.identify(request)
        with suppress(DatabaseUnavailable):  # the call says so, in a form that agents read
            await service.known(caller)
        if request.method != "POST":
            raise HTTPException(
                405, "send POST: nothing is streamed from here", headers={"Allow": "POST"}
            )
        raw = await request.body()
        try:
            await asyncio.to_thread(parse_json, raw)
        except HTTPException as refused:
            await _parse_error(refused.detail)(scope, receive, send)
            return
        await service.mcp.handle_request(scope, _replayed(raw, receive), send)


def _parse_error(reason: str) -> Response:
    """As agents read it."""
    error = {"code": _PARSE_ERROR, "message": reason}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, 400)


def _replayed(raw: bytes, receive: Receive) -> Receive:
    """The body once more, then whatever comes."""
    body: list[Message] = [{"type": "http.request", "body": raw, "more_body": False}]

    async def receive_again() -> Message:
        return body.pop() if body else await receive()

    return receive_again
