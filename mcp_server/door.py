"""One call of the HTTP API with the caller's credential, and its failures as one clear line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import httpx

from knowledge.errors import KnowledgeError, Unauthenticated, Unavailable
from mcp_server.tools import Tool

MAX_PROBLEM_CHARS: Final = 2000
CONNECT_TIMEOUT_S: Final = 2.0


class ApiUnreachable(Unavailable):
    """The knowledge service cannot be reached."""


class NoAnswer(Unavailable):
    """The knowledge service was reached and gave no answer in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the knowledge service gave no answer within {seconds:g} s")
        self.seconds = seconds


class Refused(KnowledgeError):
    """The API refused the call; the message is its own line. ``status`` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


async def ask(
    client: httpx.AsyncClient, authorization: str, tool: Tool, body: Mapping[str, Any]
) -> dict[str, Any]:
    """The API's answer to a tool's operation, asked as ``Authorization: {authorization}``.

    Nothing is sent twice. Raises `Refused` with the API's line, `Unauthenticated`,
    `ApiUnreachable`, and `NoAnswer` where none came in time.
    """
    path = tool.path.format_map({name: quote(str(value), safe="") for name, value in body.items()})
    return await request(
        client, tool.method, path, authorization, body=body, timeout_s=tool.timeout_s
    )


async def request(
    client: httpx.AsyncClient,
    method: str,
    path: str,
    authorization: str,
    *,
    body: Mapping[str, Any],
    timeout_s: float,
) -> dict[str, Any]:
    """Any operation that answers with a JSON object. Raises as `ask`."""
    try:
        response = await client.request(
            method,
            path,
            json=dict(body) if method == "POST" else None,
            headers={"Authorization": authorization},
            timeout=httpx.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S),
        )
    except httpx.ConnectTimeout as error:
        raise ApiUnreachable from error
    except httpx.TimeoutException as error:
        raise NoAnswer(timeout_s) from error
    except httpx.HTTPError as error:
        raise ApiUnreachable from error
    return _answer(response)


def _answer(response: httpx.Response) -> dict[str, Any]:
    try:
        answer = response.json()
    except ValueError:
        answer = None
    if response.is_success and isinstance(answer, dict):
        return answer
    line = answer.get("detail") if isinstance(answer, dict) else None
    if not isinstance(line, str):
        line = f"what answers at {response.url.copy_with(path='/')} is not the knowledge service"
        raise ApiUnreachable(f"{line}: HTTP status {response.status_code}")
    line = line[:MAX_PROBLEM_CHARS]
    if response.status_code == httpx.codes.UNAUTHORIZED:
        raise Unauthenticated(line)
    if wait_s := response.headers.get("retry-after"):
        line = f"{line}; try again in {wait_s} s"
    raise Refused(response.status_code, line)
