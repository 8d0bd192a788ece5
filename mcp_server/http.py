"""MCP over Streamable HTTP, to be mounted in the application that serves the API itself.

Stateless: every request stands alone and carries its own credential, so a restart loses nothing
and no session can be taken over.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import httpx
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from mcp_server.door import ask
from mcp_server.server import Context, build_server
from mcp_server.tools import Tool

MAX_BODY_BYTES: Final = 4_000_000
"""Of one call: 1,000 facts or 400 turns. The operations behind it have limits of their own."""

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


def session_manager(
    tools: Sequence[Tool], *, hosts: Sequence[str] = ()
) -> StreamableHTTPSessionManager:
    """What answers MCP requests while its ``run()`` is entered.

    The application must have authenticated the request and be found as ``request.app``: tools ask
    it, in process, with the request's own ``Authorization``. ``hosts`` are names (host or
    host:port) beside those of loopback that a request may be addressed to.
    """
    return StreamableHTTPSessionManager(
        build_server(tools, _perform, session=_todays_session),
        json_response=True,
        stateless=True,
        max_request_body_size=MAX_BODY_BYTES,
        security_settings=_security([*LOOPBACK, *hosts]),
    )


def _todays_session() -> str:
    """Requests that stand alone share a session by the day: its facts still tell when."""
    return f"mcp-{datetime.now(UTC):%Y-%m-%d}"


def _security(hosts: Sequence[str]) -> TransportSecuritySettings:
    """A name that resolves here by DNS rebinding is none of these, whatever the port."""
    patterns = [pattern for host in hosts for pattern in (host, f"{host}:*")]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=patterns,
        allowed_origins=[f"{kind}://{name}" for name in patterns for kind in ("http", "https")],
    )


async def _perform(context: Context, tool: Tool, body: dict[str, Any]) -> dict[str, Any]:
    request = context.request
    assert request is not None  # every request of this transport is an HTTP request
    transport = httpx.ASGITransport(request.app, raise_app_exceptions=False)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://127.0.0.1", trust_env=False
    ) as client:
        return await ask(client, request.headers["authorization"], tool, body)
