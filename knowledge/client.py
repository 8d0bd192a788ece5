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
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from knowledge.errors import KnowledgeError, Unavailable

_EARLY_S = 30.0  # a token is renewed this long before it expires


class _Read(BaseModel):
    # New fields of a newer service are no error for an older client.
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)


class Scope(_Read):
    tenant_id: str
    project_id: str
    principal: str
    groups: tuple[str, ...]


class Leg(_Read):
    leg: str
    collection: str | None
    state: Literal["ok", "fallback", "skipped", "timed_out", "unavailable"]
    index_revision: int | None
    count: int
    latency_ms: float
    reason: str | None


class Citation(_Read):
    chunk_id: uuid.UUID
    source_id: str
    source_version: str
    path: str
    lines: tuple[int, int] | None
    collection: str
    index_revision: int
    embedding_profile_version: str | None
    trust_tier: str
    score: float
    signals: dict[str, float]


class Candidate(_Read):
    text: str
    title: str
    kind: str
    language: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)
    citation: Citation
    explain: dict[str, Any] | None = None


class ExplainedLeg(_Read):
    leg: str
    state: str
    index_revision: int | None
    rank: int | None
    signal: float | None
    weakest_signal: float | None
    reason: str | None


class ExplainedChunk(_Read):
    """Why a chunk is where it is, or why it is not found: ``outcome`` and ``reason``."""

    chunk_id: uuid.UUID
    outcome: str
    reason: str
    collection: str | None
    index_revision: int | None
    excluded_by: tuple[str, ...]
    legs: tuple[ExplainedLeg, ...]
    fusion_rank: int | None
    rerank_rank: int | None
    rank: int | None
    score: float | None


class Answer(_Read):
    query_id: uuid.UUID
    scope: Scope
    as_of: datetime
    degraded: bool
    rerank: str
    legs: tuple[Leg, ...]
    candidates: tuple[Candidate, ...]
    explained_chunk: ExplainedChunk | None = None


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

    def call(self, method: str, path: str, **arguments: Any) -> dict[str, Any]:
        """Any operation of the service; returns the decoded body."""
        if time.monotonic() > self._expires_at - _EARLY_S:
            self._authenticate()
        headers = {"Authorization": f"Bearer {self._token}"}
        return self._send(method, path, headers=headers, **arguments)

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
