"""MCP over standard input and output: one client, one process.

Nothing but messages may be written to standard output: while it serves, whatever else is printed
goes to standard error.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from mcp_server.first_words import FirstWords

_CHUNK_BYTES = 65_536
MAX_LINE_BYTES = 16_000_000


async def serve(server: Server[Any], first: FirstWords, read_fd: int, write_fd: int) -> None:
    """Serve until the input ends. ``first`` was read from ``read_fd`` already."""
    into_server, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    answered, from_server = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        async with into_server:
            async for line in _lines(first.read, read_fd):
                try:
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except (ValidationError, ValueError) as error:
                    await into_server.send(error)
                else:
                    await into_server.send(SessionMessage(message))

    async def write() -> None:
        is_answered = first.answered is None
        async with from_server:
            async for message in from_server:
                if not is_answered and _answers(message, first.answered):
                    is_answered = True
                    continue
                line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await anyio.to_thread.run_sync(_write_all, write_fd, line.encode() + b"\n")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(write)
        await server.run(received, answered, server.create_initialization_options())


def _answers(message: SessionMessage, request_id: int | str | None) -> bool:
    """An error is passed on all the same."""
    inner = message.message
    return isinstance(inner, types.JSONRPCResponse) and inner.id == request_id


async def _lines(begun: bytes, fd: int) -> AsyncIterator[bytes]:
    """Lines without their end; one longer than `MAX_LINE_BYTES` ends the input."""
    held = begun
    while True:
        *whole, held = held.split(b"\n")
        for line in whole:
            if line.strip():
                yield line
        if len(held) > MAX_LINE_BYTES:
            return
        chunk = await anyio.to_thread.run_sync(os.read, fd, _CHUNK_BYTES, abandon_on_cancel=True)
        if not chunk:
            return
        held += chunk


def _write_all(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]
