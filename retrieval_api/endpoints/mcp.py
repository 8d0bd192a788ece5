"""``/mcp``: agents over Streamable HTTP, each request with its own key or token."""

from __future__ import annotations

from contextlib import suppress

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from knowledge.errors import DatabaseUnavailable
from retrieval_api.service import service_of


class McpEndpoint:
    """Lets a request through to the MCP server once its credential is known not to be revoked.

    What it may read or write is decided where the tool's operation is served.
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
        await service.mcp.handle_request(scope, receive, send)
