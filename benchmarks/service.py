"""The query service as a process of its own, and a client that asks it over HTTP."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final

import httpx
import psutil  # type: ignore[import-untyped]

from benchmarks.installation import PROJECT, Installation
from knowledge.errors import StackError
from knowledge.stack.ports import free_ports
from knowledge.stack.process import last_lines, wait_until

START_TIMEOUT_S: Final = 120.0
SEARCH: Final = "/factory/knowledge/search"


@dataclass(frozen=True, slots=True)
class Service:
    """A running service."""

    url: str
    pid: int

    def resident_bytes(self) -> int:
        return int(psutil.Process(self.pid).memory_info().rss)


@contextmanager
def serving(installation: Installation) -> Iterator[Service]:
    """The service over the installation's servers, once it asks the index."""
    port = free_ports(1)[0]
    log = installation.runtime.home.logs_dir / "api-of-benchmarks.log"
    url = f"http://127.0.0.1:{port}"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "retrieval_api", "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        if not wait_until(lambda: process.poll() is not None or _is_ready(url), START_TIMEOUT_S):
            raise StackError(f"the service is not ready after {START_TIMEOUT_S:.0f} s: {log}")
        if process.poll() is not None:
            raise StackError(f"the service ended: {last_lines(log)}")
        yield Service(url, process.pid)
    finally:
        process.terminate()
        process.wait()


def _is_ready(url: str) -> bool:
    try:
        answer = httpx.get(f"{url}/readyz", timeout=2, trust_env=False)
        return answer.is_success and answer.json()["index"] == "ok"
    except httpx.HTTPError:
        return False


@dataclass(frozen=True, slots=True)
class Asked:
    """One answered search; ``is_degraded`` when a leg was missing or stood in for another."""

    seconds: float
    is_degraded: bool


class Asker:
    """Searches one collection with a real token."""

    def __init__(self, http: httpx.AsyncClient, collection: str) -> None:
        self._http = http
        self._collection = collection

    async def ask(self, query: str) -> Asked:
        """Ask, and stop the time; decoding the answer is not part of it.

        Raises `httpx.HTTPError` without an answer.
        """
        body = {"query": query, "projectId": PROJECT, "collections": [self._collection]}
        started = time.perf_counter()
        response = await self._http.post(SEARCH, json=body)
        seconds = time.perf_counter() - started
        response.raise_for_status()
        return Asked(seconds, b'"degraded":true' in response.content)


@asynccontextmanager
async def opened_asker(
    installation: Installation,
    url: str,
    collection: str,
    *,
    transport: httpx.AsyncBaseTransport | None = None,
) -> AsyncIterator[Asker]:
    """A client with a token, over the network or (``transport``) within this process."""
    async with httpx.AsyncClient(
        base_url=url,
        timeout=30,
        trust_env=False,
        transport=transport,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
    ) as http:
        form = {"grant_type": "client_credentials"}
        token = await http.post("/oauth/token", auth=installation.client, data=form)
        token.raise_for_status()
        http.headers["Authorization"] = f"Bearer {token.json()['access_token']}"
        yield Asker(http, collection)
