"""One agent served: its tools, its key and the address of the API, from options and settings."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import sys
from argparse import Namespace

from knowledge.errors import KnowledgeError
from knowledge.home import Home, user_state_folder
from knowledge.settings import Settings, load_settings
from mcp_server.address import Address, Credential
from mcp_server.first_words import FirstWords
from mcp_server.known_names import KnownNames
from mcp_server.remote import Remote
from mcp_server.server import build_server
from mcp_server.stdio import serve
from mcp_server.tools import Tool, selected


def serve_agent(options: Namespace, first: FirstWords, read_fd: int, write_fd: int) -> int:
    """Serve until the input ends. Returns the exit code."""
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    home = Home.locate()
    try:
        settings = load_settings(home)
        tools = _tools(options, settings)
        url = options.url or os.environ.get("KNOWLEDGE_URL") or None
        address = Address(url, home, settings.stack.host)
    except KnowledgeError as error:
        print(f"knowledge mcp: {error.message}", file=sys.stderr)
        return 1
    credential = Credential(os.environ.get("KNOWLEDGE_API_KEY"), options.key_file)
    remote = Remote(address, credential, KnownNames(user_state_folder(os.environ) / "mcp"))
    asyncio.run(_serve(tools, remote, first, read_fd, write_fd))
    return 0


def _tools(options: Namespace, settings: Settings) -> tuple[Tool, ...]:
    named = settings.mcp.tools
    if options.tools is not None:
        named = tuple(name for part in options.tools.split(",") if (name := part.strip()))
    return selected(named, read_only=options.read_only or settings.mcp.read_only)


async def _serve(
    tools: tuple[Tool, ...], remote: Remote, first: FirstWords, read_fd: int, write_fd: int
) -> None:
    session_id = f"mcp-{secrets.token_hex(6)}"
    server = build_server(tools, remote.perform, session=lambda: session_id)
    try:
        await serve(server, first, read_fd, write_fd)
    finally:
        await remote.close()
