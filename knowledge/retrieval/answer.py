"""What a search returns: cited candidates, and the state of every leg."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from knowledge.model.fact import Fact
from knowledge.model.scope import Scope, TrustTier
from knowledge.retrieval.request import Leg, RerankMode


class LegState(StrEnum):
    OK = "ok"
    FALLBACK = "fallback"
    SKIPPED = "skipped"
    TIMED_OUT = "timed_out"
    UNAVAILABLE = "unavailable"


LOW_SUPPORT: Final = 0.5
"""Below it an answer says that it is hardly supported."""

THINNER = (LegState.FALLBACK, LegState.TIMED_OUT, LegState.UNAVAILABLE)


@dataclass(frozen=True, slots=True)
class LegReport:
    """How one leg went in one collection. ``collection`` is None for a leg that ran in none."""

    leg: Leg
    collection: str | None
    state: LegState
    index_revision: int | None = None
    count: int = 0
    latency_ms: float = 0.0
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Citation:
    """What a candidate rests on. ``signals`` are raw leg scores; ``score`` is in 0 to 1 and
    never rises down the list."""

    chunk_id: uuid.UUID
    source_id: str
    source_version: str
    path: str
    lines: tuple[int, int] | None
    collection: str
    index_revision: int
    embedding_profile_version: str | None
    trust_tier: TrustTier
    score: float
    signals: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Explanation:
    """``ranks`` are 1-based per leg, ``fusion`` the RRF score, ``rerank`` the blend or None.

    ``prior`` is the part of the blend that the time and the speaker named in the query gave, and
    being a question took; 0 without any.
    """

    ranks: Mapping[str, int]
    fusion: float
    rerank: float | None
    prior: float = 0.0


class Outcome(StrEnum):
    """What became of a chunk that the request names."""

    RETURNED = "returned"
    BELOW_TOP_K = "below_top_k"
    NOT_A_CANDIDATE = "not_a_candidate"
    FILTERED = "filtered"
    NOT_AT_THIS_REVISION = "not_at_this_revision"
    NOT_SERVED_YET = "not_served_yet"
    NOT_FOUND = "not_found"


@dataclass(frozen=True, slots=True)
class ExplainedLeg:
    """A chunk in one leg. ``rank`` is None where the leg does not rank it, for ``reason``.

    ``signal`` is its raw score: cosine, BM25 with the frozen statistics, or the share of the
    query's weight in path, title and tags. ``weakest`` is that of the leg's weakest ranked hit.
    """

    leg: Leg
    state: LegState
    index_revision: int | None
    rank: int | None
    signal: float | None
    weakest: float | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class ExplainedChunk:
    """What became of one chunk. Of one that is not found nothing but its id is told.

    ``index_revision`` is the revision read, ``excluded_by`` the request's fields that leave it
    out. Ranks are 1-based; ``rank`` is the place in the final order, beyond top-k too.
    """

    chunk_id: uuid.UUID
    outcome: Outcome
    reason: str
    collection: str | None = None
    index_revision: int | None = None
    excluded_by: tuple[str, ...] = ()
    legs: tuple[ExplainedLeg, ...] = ()
    fusion_rank: int | None = None
    rerank_rank: int | None = None
    rank: int | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    text: str
    title: str
    kind: str
    language: str | None
    tags: tuple[str, ...]
    metadata: Mapping[str, object]
    citation: Citation
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True)
class FactCitation:
    """What a fact among the candidates rests on: itself, and who said it at which version."""

    fact: Fact
    score: float
    signals: Mapping[str, float]

    @property
    def trust_tier(self) -> TrustTier:
        return self.fact.tier


@dataclass(frozen=True, slots=True)
class FactCandidate:
    """A fact beside the chunks; ``text`` is it as a sentence."""

    text: str
    citation: FactCitation
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """``degraded`` says that a requested leg is missing or stands in for another.

    ``confidence``, in 0 to 1, says how well what was found supports an answer; it cannot tell a near
    miss. ``rerank`` is what ordered the candidates: ``reranker``, or ``none`` for the fused order.
    ``foreign_dropped`` counts hits a backend returned that the scope does not admit: never sent.
    ``explained`` is there when the request names a chunk to explain.
    """

    query_id: uuid.UUID
    scope: Scope
    as_of: datetime
    degraded: bool
    rerank: RerankMode
    confidence: float
    legs: tuple[LegReport, ...]
    candidates: tuple[Candidate | FactCandidate, ...]
    latency_ms: float
    foreign_dropped: int = 0
    indexes_used: tuple[uuid.UUID, ...] = field(default=())
    explained: ExplainedChunk | None = None

    @property
    def low_support(self) -> bool:
        return self.confidence < LOW_SUPPORT

    @property
    def chunks(self) -> tuple[Candidate, ...]:
        """The candidates that are chunks, in their order."""
        return tuple(found for found in self.candidates if isinstance(found, Candidate))
