"""A search as the pipeline understands it; the edges translate their wire forms into this."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal

from knowledge.model.scope import TrustTier

MAX_TOP_K: Final = 100
MAX_COLLECTIONS: Final = 16


class Leg(StrEnum):
    """Wire names of the retrieval methods."""

    VECTOR = "vector"
    FULL_TEXT = "fullText"
    METADATA = "metadata"
    SYMBOL = "symbol"
    GRAPH = "graph"
    TEMPORAL = "temporal"


BUILT: Final = (Leg.VECTOR, Leg.FULL_TEXT, Leg.METADATA)
"""The legs that look for chunks, each in every collection."""

DEFAULT_LEGS: Final = (*BUILT, Leg.GRAPH, Leg.TEMPORAL)
"""All that exist; the leg symbol is answered as skipped, with the reason."""


RerankMode = Literal["reranker", "none"]


@dataclass(frozen=True, slots=True)
class Filters:
    """Restrictions inside every backend query; all that are given must hold."""

    source_id: str | None = None
    path_prefix: str | None = None
    kind: Literal["document", "code"] | None = None
    language: str | None = None
    tags: tuple[str, ...] = ()
    updated_after: datetime | None = None


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """``collections`` empty means all of the project. ``pinned`` maps a collection (as the caller
    named it) to a revision. ``explain_chunk`` asks what became of one chunk. ``as_of`` is when facts must
    hold (None: now), ``between`` a half-open window for the temporal leg."""

    query: str
    project_id: str
    collections: tuple[str, ...] = ()
    top_k: int = 10
    filters: Filters = Filters()
    min_trust: TrustTier | None = None
    legs: tuple[Leg, ...] = DEFAULT_LEGS
    pinned: Mapping[str, int] = field(default_factory=dict)
    rerank: RerankMode | None = None
    explain: bool = False
    explain_chunk: uuid.UUID | None = None
    as_of: datetime | None = None
    between: tuple[datetime, datetime] | None = None
    run_id: uuid.UUID | None = None
    timeout_s: float | None = None
