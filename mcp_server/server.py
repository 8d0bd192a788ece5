"""The MCP server: its tools, listed and called. Transports and credentials come from outside."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from pydantic import ValidationError

from knowledge.errors import InvalidInput, KnowledgeError
from mcp_server.identity import DISTRIBUTION, INSTRUCTIONS, NAME, TITLE
from mcp_server.inputs import compact_schema
from mcp_server.tools import Tool

logger = logging.getLogger(__name__)

MAX_CLIENT_CHARS: Final = 120
MAX_WRONG: Final = 3

Context = ServerRequestContext[Any, Any]
Perform = Callable[[Context, Tool, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Does what a tool stands for with a body in wire names. Raises `KnowledgeError`."""


def build_server(
    tools: Sequence[Tool], perform: Perform, *, session: Callable[[], str]
) -> Server[Any]:
    """A server of these tools. ``session`` names the session of what is told without naming one."""
    offered = {tool.name: tool for tool in tools}
    all_listed = types.ListToolsResult(tools=[listed(tool) for tool in tools])

    async def list_tools(
        _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return all_listed

    async def call_tool(
        context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        try:
            tool = offered.get(params.name)
            if tool is None:
                raise InvalidInput(f"there is no tool {params.name[:80]}: use {', '.join(offered)}")
            body = _body(tool, params.arguments or {})
            if tool.tells:
                if body.get("scope") == "session" and body.get("sessionId") is None:
                    raise InvalidInput(
                        "scope: session needs a sessionId: name the session that recalls these facts"
                    )
                body = _told_by(context, session()) | body
            answer = tool.shape(await perform(context, tool, body))
            return _result(tool.render(answer), answer)
        except KnowledgeError as error:
            return _failure(error.message)
        except Exception:  # the tool's outermost handler: an agent gets one line, the log the rest
            logger.exception("a tool failed", extra={"tool": params.name[:80]})
            return _failure("something went wrong here; it has been logged")

    return Server(
        NAME,
        version=version(DISTRIBUTION),
        title=TITLE,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def listed(tool: Tool) -> types.Tool:
    """A tool as agents are told of it."""
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=compact_schema(tool.arguments),
        output_schema=tool.output,
        annotations=types.ToolAnnotations(
            read_only_hint=not tool.writes,
            idempotent_hint=tool.idempotent,
            destructive_hint=False,
            open_world_hint=False,
        ),
    )


def _body(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The body of the operation. Raises `InvalidInput` naming what is wrong: three arguments at most,
    for a misspelt one is missing under its right name."""
    try:
        return tool.arguments.model_validate(dict(arguments)).to_body()
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        raise InvalidInput("; ".join(_wrong(tool, each) for each in found[:MAX_WRONG])) from error


def _wrong(tool: Tool, error: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in error["loc"])[:200] or "arguments"
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        fields = tool.arguments.model_fields.values()
        message = f"unknown argument: use {', '.join(str(field.alias) for field in fields)}"
    return f"{place}: {message}"


def _told_by(context: Context, session_id: str) -> dict[str, Any]:
    """Who tells, as far as the connection knows it."""
    params = context.session.client_params
    client = params.client_info.name[:MAX_CLIENT_CHARS] if params else "mcp"
    return {"client": client or "mcp", "sessionId": session_id}


def _result(text: str, answer: dict[str, Any]) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content=answer
    )


def _failure(line: str) -> types.CallToolResult:
    content = types.TextContent(type="text", text=" ".join(line.split()))
    return types.CallToolResult(content=[content], is_error=True)
