"""The answer to ``initialize``, given before the MCP SDK is loaded.

Loading the SDK takes most of a second, and on a busy machine more; agents give a server little
time for its first answer. What is said here is what the SDK says (a test holds the two together),
and only to requests that it would answer so: everything else waits for it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final

from mcp_server.identity import DISTRIBUTION, INSTRUCTIONS, NAME, TITLE

VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Of the protocol, those that begin with ``initialize``."""


@dataclass(frozen=True, slots=True)
class FirstWords:
    """What came in first, and the id of the request in its first line that was answered already."""

    read: bytes
    answered: int | str | None = None


def early_answer(read: bytes) -> tuple[FirstWords, bytes]:
    """What came, and the line to answer with: empty where the answer is the SDK's to give."""
    request = _initialize(read.partition(b"\n")[0])
    if request is None:
        return FirstWords(read), b""
    answer = {
        "jsonrpc": "2.0",
        "id": request["id"],
        "result": {
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": NAME, "title": TITLE, "version": version(DISTRIBUTION)},
            "instructions": INSTRUCTIONS,
        },
    }
    written = json.dumps(answer, ensure_ascii=False).encode() + b"\n"
    return FirstWords(read, request["id"]), written


def _initialize(line: bytes) -> dict[str, Any] | None:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(request, dict) or set(request) != {"jsonrpc", "id", "method", "params"}:
        return None
    params = request["params"]
    is_plain = (
        request["jsonrpc"] == "2.0"
        and request["method"] == "initialize"
        and type(request["id"]) in (int, str)
        and isinstance(params, dict)
        and params.get("protocolVersion") in VERSIONS
        and _is_capable(params.get("capabilities"))
        and _is_named(params.get("clientInfo"))
    )
    return request if is_plain else None


def _is_capable(capabilities: object) -> bool:
    """Capabilities as programs send them: objects, of switches and further objects."""
    return isinstance(capabilities, dict) and all(
        isinstance(parts, dict) and all(isinstance(part, bool | dict) for part in parts.values())
        for parts in capabilities.values()
    )


def _is_named(info: object) -> bool:
    return isinstance(info, dict) and all(
        isinstance(info.get(part), str) for part in ("name", "version")
    )
