"""Agents as they connect: the SDK's own client over every transport, and raw requests."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import httpx
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from knowledge.runtime import Runtime
from knowledge.security.keys import ApiKey
from knowledge.storage.postgres import keys
from tests.retrieval_api.service import http

COMMAND: Final = str(Path(sys.executable).with_name("knowledge"))
Result = TypeVar("Result")


@dataclass(frozen=True)
class Agent:
    """Where an agent is to connect, and as whom. ``state`` keeps what its process remembers."""

    url: str
    credential: str | None
    state: Path
    mode: str = "auto"
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@asynccontextmanager
async def over_http(agent: Agent) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {agent.credential}"} if agent.credential else {}
    async with create_mcp_http_client(headers=headers) as client:
        transport = streamable_http_client(f"{agent.url}/mcp", http_client=client)
        async with Client(transport, mode=agent.mode, read_timeout_seconds=20) as session:
            yield session


@asynccontextmanager
async def over_stdio(agent: Agent) -> AsyncIterator[Client]:
    parameters = StdioServerParameters(
        command=COMMAND,
        args=["mcp", *agent.arguments],
        env=environment_of(agent),
        cwd=agent.state,
    )
    async with Client(parameters, mode=agent.mode, read_timeout_seconds=20) as session:
        yield session


def environment_of(agent: Agent) -> dict[str, str]:
    key = {"KNOWLEDGE_API_KEY": agent.credential} if agent.credential else {}
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(agent.state),
        "XDG_STATE_HOME": str(agent.state),
        "KNOWLEDGE_URL": agent.url,
        **key,
        **agent.environment,
    }


Connect = Callable[[Agent], AbstractAsyncContextManager[Client]]
TRANSPORTS: Final[Mapping[str, Connect]] = {"http": over_http, "stdio": over_stdio}
MODES: Final = ("legacy", "auto")
"""Both eras of the protocol: with the handshake, and with an envelope on each request."""


def talk(
    connect: Connect, agent: Agent, conversation: Callable[[Client], Awaitable[Result]]
) -> Result:
    """One connection, from its begin to its end."""

    async def connected() -> Result:
        async with connect(agent) as client:
            return await conversation(client)

    return asyncio.run(connected())


def call(
    connect: Connect, agent: Agent, tool: str, arguments: dict[str, Any]
) -> types.CallToolResult:
    return talk(connect, agent, lambda client: client.call_tool(tool, arguments))


def call_each(
    connect: Connect, agent: Agent, calls: Mapping[str, dict[str, Any]]
) -> dict[str, types.CallToolResult]:
    """Tools by name with their arguments, called one after another over one connection."""

    async def each(client: Client) -> dict[str, types.CallToolResult]:
        return {tool: await client.call_tool(tool, given) for tool, given in calls.items()}

    return talk(connect, agent, each)


def text_of(result: types.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


def failure_of(result: types.CallToolResult) -> str:
    """The one line of a call that failed, as a tool's error."""
    assert result.is_error, result
    (line,) = text_of(result).splitlines()
    assert "Traceback" not in line
    return line


def answer_of(result: types.CallToolResult) -> dict[str, Any]:
    assert not result.is_error, text_of(result)
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def make_key(runtime: Runtime, tenant_id: str, *, project: str = "p1", **options: Any) -> ApiKey:
    scopes = options.pop("scopes", ("factory.knowledge.read", "factory.knowledge.write"))
    key, _ = keys.create_key(
        runtime.owner, tenant_id, project, name="an agent", scopes=scopes, **options
    )
    return key


def post_mcp(url: str, headers: Mapping[str, str], **message: Any) -> httpx.Response:
    """One request as the handshake era writes it; ``message`` is the JSON-RPC request."""
    sent = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **headers,
    }
    return http().post(
        f"{url}/mcp", headers=sent, json={"jsonrpc": "2.0", "id": 1, "method": "ping", **message}
    )
