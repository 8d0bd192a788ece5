"""The memory routes of the query service, over plain HTTP: nothing heavy is imported for a hook."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from knowledge.cli.memory.deadline import TimedOut, within
from knowledge.errors import InvalidConfiguration, KnowledgeError, Unavailable
from knowledge.home import Home

_LARGEST_ANSWER_BYTES: Final = 4_000_000
_KEY: Final = re.compile(r"[\x21-\x7e]{1,4096}")
_REFUSALS: Final = {
    400: "the service did not understand the request",
    401: "the key is not valid, expired or revoked: knowledge keys create",
    403: "the key does not carry the scope this needs",
    404: "the service knows no such project or graph, or has no memory routes",
    413: "the service found the request too large",
    422: "the service did not accept the request: are KNOWLEDGE_PROJECT and KNOWLEDGE_GRAPH right?",
    429: "the queue of the service is full: it is tried again with the next hook",
}


class Refused(KnowledgeError):
    """The service answered with an error; ``status`` is the HTTP status.

    The message is ours by status: the service's own may repeat what was asked.
    """

    def __init__(self, status: int) -> None:
        said = _REFUSALS.get(status, "the service answered with an error")
        super().__init__(f"{said} (HTTP {status})")
        self.status = status


@dataclass(frozen=True, slots=True)
class MemoryService:
    """Where the service is and who asks; ``project`` and ``graph`` may be left to the service.

    ``home`` is the folder of the installation whose running stack ``url`` is, None where an address
    was named. Without a running stack there is no ``url``, and nothing can be asked.
    """

    url: str | None
    key: str
    project: str | None = None
    graph: str | None = None
    home: Path | None = None

    def __post_init__(self) -> None:
        if self.url is not None and not _is_address(self.url):
            raise InvalidConfiguration("--url or KNOWLEDGE_URL must be an http or https address")
        if not _KEY.fullmatch(self.key):
            raise InvalidConfiguration("the API key holds characters no key has")

    @property
    def destination(self) -> str:
        """Who would read what is sent: tells addresses, keys, projects and graphs apart.

        An installation is the same whichever port its stack has, and while it does not run.
        """
        place = str(self.home) if self.home else str(self.url)
        told = "\n".join((place, self.key, self.project or "", self.graph or ""))
        return hashlib.sha256(told.encode()).hexdigest()[:32]

    @property
    def address(self) -> str:
        """Scheme, host and port, for people; the home where its stack does not run."""
        if self.url is None:
            return f"the service of {self.home}"
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{_port(self.url)}"

    def addressed(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body with the project and the graph it is for."""
        named = {"projectId": self.project, "graph": self.graph}
        return {**{name: value for name, value in named.items() if value}, **body}

    def post(
        self,
        route: str,
        body: Mapping[str, Any],
        *,
        timeout_s: float,
        idempotency_key: str | None = None,
    ) -> dict[str, Any]:
        """The answer to POST /factory/knowledge/memory/``route``, whole within ``timeout_s``.

        Redirects are not followed: the key goes to nobody else. Raises `Unavailable` (also for
        HTTP 5xx) and `Refused`.
        """
        if self.url is None:
            raise Unavailable(
                f"no knowledge service runs for {self.home}: set KNOWLEDGE_URL, or `knowledge up`"
            )
        url = self.url
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        if idempotency_key:
            headers["Idempotency-Key"] = idempotency_key
        content = json.dumps(body).encode()
        if timeout_s <= 0:
            raise Unavailable("no time was left to ask the service")
        try:
            status, answer = within(
                timeout_s, lambda: _exchange(url, route, content, headers, timeout_s)
            )
        except (TimedOut, TimeoutError):
            raise Unavailable(f"{self.address} did not answer in {timeout_s:.1f} s") from None
        except (OSError, HTTPException, ValueError) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
            raise Unavailable(f"{self.address} cannot be reached: {why}") from None
        if status >= 500:
            raise Unavailable(f"{self.address} is not well (HTTP {status})")
        if status not in (200, 202):
            raise Refused(status)
        return answer


def _exchange(
    url: str, route: str, content: bytes, headers: dict[str, str], timeout_s: float
) -> tuple[int, dict[str, Any]]:
    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname or "", _port(url), timeout=timeout_s)
    try:
        path = f"{parts.path.rstrip('/')}/factory/knowledge/memory/{route}"
        connection.request("POST", path, body=content, headers=headers)
        response = connection.getresponse()
        received = response.read(_LARGEST_ANSWER_BYTES)
    finally:
        connection.close()
    if response.status not in (200, 202):
        return response.status, {}
    answer = json.loads(received)
    if not isinstance(answer, dict):
        raise ValueError("the answer is not an object")
    return response.status, answer


def address_of(home: Home) -> str | None:
    """The running stack of ``home``, None where none runs: a port alone could be another's."""
    # psutil, for processes, is slow to import, and most hooks are told an address.
    from knowledge.stack.record import api_address

    try:
        return api_address(home)
    except (OSError, ValueError, KeyError):
        return None


def key_of(environ: Mapping[str, str], key_file: Path | None) -> str:
    """The personal API key: the file's first line, else KNOWLEDGE_API_KEY.

    Raises `InvalidConfiguration` where neither holds one.
    """
    key = environ.get("KNOWLEDGE_API_KEY", "")
    if key_file is not None:
        if not key_file.is_file():
            raise InvalidConfiguration("the key file is not a file")
        try:
            with key_file.open() as file:
                key = file.readline(8192)
        except (OSError, ValueError):
            raise InvalidConfiguration("the key file cannot be read") from None
    if not key.strip():
        raise InvalidConfiguration(
            "no API key: set KNOWLEDGE_API_KEY or give --key-file (knowledge keys create)"
        )
    return key.strip()


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and _port(url) > 0
    except ValueError:
        return False


def _port(url: str) -> int:
    """Raises `ValueError` for a port that cannot be."""
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)
