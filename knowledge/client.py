"""A client of the query service for Python programs.

::

    with KnowledgeClient("http://127.0.0.1:8080", client_id, client_secret) as client:
        answer = client.search("who cancels a booking", project_id="p1", collections=["docs"])
        for candidate in answer.candidates:
            print(candidate.citation.path, candidate.citation.score)
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

import httpx

from knowledge.client_answers import (
    Answer,
    Candidate,
    Citation,
    DecidedSuggestion,
    FactHistory,
    FactPage,
    FactPaths,
    GraphFact,
    Subgraph,
    WrittenFacts,
)
from knowledge.errors import KnowledgeError, Unavailable

__all__ = [
    "Answer",
    "Candidate",
    "Citation",
    "DecidedSuggestion",
    "FactHistory",
    "FactPage",
    "FactPaths",
    "GraphFact",
    "KnowledgeClient",
    "RequestRefused",
    "Subgraph",
    "WrittenFacts",
]

_GRAPH = "/factory/knowledge/graph"
_EARLY_S = 30.0  # a token is renewed this long before it expires


class RequestRefused(KnowledgeError):
    """The service refused the request.

    ``status`` is the HTTP status, ``problem`` the problem+json body.
    """

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        super().__init__(str(problem.get("detail") or f"HTTP status {status}"))
        self.status = status
        self.problem = problem


class KnowledgeClient:
    """One connection pool and one token, renewed when it is about to expire. Not thread-safe."""

    def __init__(
        self, url: str, client_id: str, client_secret: str, *, timeout_s: float = 10
    ) -> None:
        is_here = urlsplit(url).hostname in ("127.0.0.1", "::1", "localhost")
        # A proxy named by the environment does not reach this machine.
        self._http = httpx.Client(base_url=url, timeout=timeout_s, trust_env=not is_here)
        self._credentials = (client_id, client_secret)
        self._token = ""
        self._expires_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def search(
        self,
        query: str,
        *,
        project_id: str,
        collections: list[str] | None = None,
        top_k: int = 10,
        filters: dict[str, Any] | None = None,
        pinned_revisions: dict[str, int] | None = None,
        explain_chunk: uuid.UUID | str | None = None,
        **options: Any,
    ) -> Answer:
        """Search; ``explain_chunk`` asks what became of a chunk, ``options`` are further fields of the request in their wire names.

        Raises `RequestRefused` with the service's problem, `Unavailable`.
        """
        body = {
            "query": query,
            "projectId": project_id,
            "collections": collections or [],
            "topK": top_k,
            "filters": filters or {},
            "pinnedRevisions": pinned_revisions or {},
            **options,
        }
        if explain_chunk is not None:
            body["explainChunk"] = str(explain_chunk)
        return Answer.model_validate(self.call("POST", "/factory/knowledge/search", json=body))

    def query_facts(self, *, project_id: str, limit: int = 100, **options: Any) -> FactPage:
        """Facts by ``subject``, ``predicate``, ``object`` and the other fields of the request.

        ``options`` are in wire names (``asOf``, ``minTrust``, …); ``cursor`` asks for the next
        page. Raises as `search` does.
        """
        body = {"projectId": project_id, "limit": limit, **options}
        return FactPage.model_validate(self.call("POST", f"{_GRAPH}/query", json=body))

    def expand(
        self, entities: Sequence[str], *, project_id: str, hops: int = 1, **options: Any
    ) -> Subgraph:
        """What is up to ``hops`` (1 to 3) facts away from the entities. Raises as `search` does."""
        body = {"projectId": project_id, "entities": list(entities), "hops": hops, **options}
        return Subgraph.model_validate(self.call("POST", f"{_GRAPH}/expand", json=body))

    def paths(
        self, source: str, target: str, *, project_id: str, max_hops: int = 4, **options: Any
    ) -> FactPaths:
        """The shortest paths from one entity to another, of at most ``max_hops`` (1 to 6) facts.

        Raises as `search` does.
        """
        body = {
            "projectId": project_id,
            "from": source,
            "to": target,
            "maxHops": max_hops,
            **options,
        }
        return FactPaths.model_validate(self.call("POST", f"{_GRAPH}/paths", json=body))

    def history(self, entity: str, *, project_id: str, **options: Any) -> FactHistory:
        """Everything that was told of an entity, what is believed no longer too.

        ``options`` are ``predicate``, ``domains`` and ``limit``. Raises as `search` does.
        """
        body = {"projectId": project_id, "entity": entity, **options}
        return FactHistory.model_validate(self.call("POST", f"{_GRAPH}/history", json=body))

    def suggestions(
        self, *, project_id: str, limit: int = 100, cursor: str | None = None
    ) -> FactPage:
        """Inferred facts that nobody has confirmed or rejected. Raises as `search` does."""
        asked: dict[str, Any] = {"projectId": project_id, "limit": limit}
        if cursor is not None:
            asked["cursor"] = cursor
        return FactPage.model_validate(self.call("GET", f"{_GRAPH}/suggestions", params=asked))

    def confirm(self, suggestion: uuid.UUID | str, *, project_id: str) -> DecidedSuggestion:
        """Serve a suggestion like any fact; for administrators. Raises as `search` does."""
        return self._decide(suggestion, "confirm", project_id)

    def reject(self, suggestion: uuid.UUID | str, *, project_id: str) -> DecidedSuggestion:
        """Never suggest this again; for administrators. Raises as `search` does."""
        return self._decide(suggestion, "reject", project_id)

    def assert_facts(
        self,
        facts: Iterable[Mapping[str, Any]],
        *,
        project_id: str,
        retract: Iterable[uuid.UUID | str] = (),
        idempotency_key: str | None = None,
    ) -> WrittenFacts:
        """Write facts (wire names, at most 5,000 a call) and retract others, all or nothing.

        Sending the same again changes nothing; with a key it also answers as the first time.
        Raises as `search` does.
        """
        body = {
            "projectId": project_id,
            "facts": [dict(fact) for fact in facts],
            "retractions": [{"factId": str(fact_id)} for fact_id in retract],
        }
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        written = self.call("POST", f"{_GRAPH}/facts", json=body, headers=headers)
        return WrittenFacts.model_validate(written)

    def call(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, **arguments: Any
    ) -> dict[str, Any]:
        """Any operation of the service; returns the decoded body."""
        if time.monotonic() > self._expires_at - _EARLY_S:
            self._authenticate()
        headers = {**(headers or {}), "Authorization": f"Bearer {self._token}"}
        return self._send(method, path, headers=headers, **arguments)

    def _decide(
        self, suggestion: uuid.UUID | str, decision: str, project_id: str
    ) -> DecidedSuggestion:
        path = f"{_GRAPH}/suggestions/{quote(str(suggestion), safe='')}/{decision}"
        decided = self.call("POST", path, json={"projectId": project_id})
        return DecidedSuggestion.model_validate(decided)

    def _authenticate(self) -> None:
        form = {"grant_type": "client_credentials"}
        token = self._send("POST", "/oauth/token", auth=self._credentials, data=form)
        self._token = token["access_token"]
        self._expires_at = time.monotonic() + float(token["expires_in"])

    def _send(self, method: str, path: str, **arguments: Any) -> dict[str, Any]:
        try:
            response = self._http.request(method, path, **arguments)
            body: dict[str, Any] = response.json()
        except (httpx.HTTPError, ValueError) as error:
            raise Unavailable(f"the query service cannot be reached: {error}") from error
        if response.is_error:
            raise RequestRefused(response.status_code, body)
        return body
