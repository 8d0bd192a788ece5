"""Tools over HTTP for one user: their key, an API that may move or go away, names to fall back on."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import httpx

from knowledge.errors import KnowledgeError, Unauthenticated, Unavailable
from mcp_server.address import Address, Credential, known_as
from mcp_server.door import ApiUnreachable, NoAnswer, ask, request
from mcp_server.known_names import KnownNames, Place, Snapshot
from mcp_server.server import Context
from mcp_server.tools import BASE, Tool

logger = logging.getLogger(__name__)

REFRESH_S: Final = 60.0
REFRESH_TIMEOUT_S: Final = 10.0
MAX_NAMES: Final = {"recall_context": 8, "search_graph_nodes": 10}
NAMES_PATH: Final = f"{BASE}/memory/names"
MEMORY: Final = f"{BASE}/memory/"


class Remote:
    """Performs tools by calling the API."""

    def __init__(
        self,
        address: Address,
        credential: Credential,
        names: KnownNames,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address = address
        self._credential = credential
        self._names = names
        self._clock = clock
        self._clients: dict[str, httpx.AsyncClient] = {}
        self._refreshed: dict[Place, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def perform(self, _context: Context, tool: Tool, body: dict[str, Any]) -> dict[str, Any]:
        """What the API answers; by names known from before where it does not answer. Raises as
        `ask`."""
        key = self._credential.read()
        place = Place.of(self._address.label, known_as(key), body)
        try:
            url = self._address.find()
            answer = await ask(self._client(url), f"Bearer {key}", tool, body)
        except Unauthenticated:
            self._names.forget(place)
            raise
        except (ApiUnreachable, NoAnswer) as error:
            return self._by_names(tool, body, place, error)
        if tool.path.startswith(MEMORY) and tool.method == "POST":
            self._refresh_soon(url, key, place)
        return answer

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for client in self._clients.values():
            await client.aclose()

    def _client(self, url: str) -> httpx.AsyncClient:
        if url not in self._clients:
            is_here = urlsplit(url).hostname in ("127.0.0.1", "::1", "localhost")
            # A proxy named by the environment does not reach this machine; and on it nothing is
            # encrypted, so that the certificates of the world need not be read.
            self._clients[url] = httpx.AsyncClient(
                base_url=url, trust_env=not is_here, verify=not is_here
            )
        return self._clients[url]

    def _by_names(
        self, tool: Tool, body: dict[str, Any], place: Place, error: ApiUnreachable | NoAnswer
    ) -> dict[str, Any]:
        known = self._names.find(place) if tool.has_names else None
        if known is not None and _is_answered_by(known, body):
            from mcp_server.name_search import NameSearch  # loads numpy, which few sessions need

            most = MAX_NAMES[tool.name]
            limit = min(body.get("limit", most), most)
            return NameSearch(known).answer(body["query"], limit, why=_why(error))
        line = self._address.away if str(error) == ApiUnreachable.__doc__ else str(error)
        is_repeatable = tool.writes and tool.idempotent
        again = "; sending the same again changes nothing twice" if is_repeatable else ""
        raise Unavailable(f"{line}{again}") from error

    def _refresh_soon(self, url: str, key: str, place: Place) -> None:
        """Take the memory's names anew in the background, at most once in `REFRESH_S`."""
        now = self._clock()
        if now - self._refreshed.get(place, -REFRESH_S) < REFRESH_S:
            return
        self._refreshed[place] = now
        task = asyncio.create_task(self._refresh(url, key, place))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _refresh(self, url: str, key: str, place: Place) -> None:
        asked = {"graph": place.graph}
        if place.project_id is not None:
            asked["projectId"] = place.project_id
        try:
            answer = await request(
                self._client(url),
                "GET",
                f"{NAMES_PATH}?{urlencode(asked)}",
                f"Bearer {key}",
                body={},
                timeout_s=REFRESH_TIMEOUT_S,
            )
            await asyncio.to_thread(self._names.keep, place, Snapshot.of(answer))
        except KnowledgeError as error:
            logger.info("names were not taken", extra={"reason": error.message})
        except (KeyError, TypeError):
            logger.warning("what the API gave for names is none")


def _why(error: ApiUnreachable | NoAnswer) -> str:
    if isinstance(error, NoAnswer):
        return f"the API gave no answer within {error.seconds:g} s"
    return "the API cannot be reached"


def _is_answered_by(known: Snapshot, body: dict[str, Any]) -> bool:
    """Whether the question is about the shared names of today, of the memory that is known."""
    graph = str(body.get("graph", ""))
    is_known = "|" not in graph or graph == known.namespace
    return is_known and body.get("shared") is not False and "asOf" not in body
