"""Answers of the query service as a program reads them."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class WireModel(BaseModel):
    # New fields of a newer service are no error for an older client.
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)


class Scope(WireModel):
    tenant_id: str
    project_id: str
    principal: str
    groups: tuple[str, ...]


class Leg(WireModel):
    leg: str
    collection: str | None
    state: Literal["ok", "fallback", "skipped", "timed_out", "unavailable"]
    index_revision: int | None
    count: int
    latency_ms: float
    reason: str | None


class Citation(WireModel):
    """What a candidate rests on: a place in a collection, or (``fact_id`` is set) a graph fact."""

    chunk_id: uuid.UUID | None
    source_id: str | None
    source_version: str | None
    path: str | None
    lines: tuple[int, int] | None
    collection: str | None
    index_revision: int | None
    embedding_profile_version: str | None
    trust_tier: str
    score: float
    signals: dict[str, float]
    fact_id: uuid.UUID | None = None
    domain: str | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    recorded_at: datetime | None = None
    principal: str | None = None


class Candidate(WireModel):
    type: Literal["chunk", "fact"] = "chunk"
    text: str
    title: str
    kind: str
    language: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)
    citation: Citation
    explain: dict[str, Any] | None = None


class ExplainedLeg(WireModel):
    leg: str
    state: str
    index_revision: int | None
    rank: int | None
    signal: float | None
    weakest_signal: float | None
    reason: str | None


class ExplainedChunk(WireModel):
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


class Answer(WireModel):
    """``confidence`` and ``low_support`` are None from a service that does not tell them."""

    query_id: uuid.UUID
    scope: Scope
    as_of: datetime
    degraded: bool
    rerank: str
    confidence: float | None = None
    low_support: bool | None = None
    legs: tuple[Leg, ...]
    candidates: tuple[Candidate, ...]
    explained_chunk: ExplainedChunk | None = None


class GraphFact(WireModel):
    """A fact. ``valid_from`` and ``valid_to`` are the half-open window in force; None is unbounded."""

    fact_id: uuid.UUID
    tenant_id: str
    project_id: str
    namespace: str
    domain: str
    subject: str
    subject_type: str | None
    predicate: str
    object: str
    object_type: str | None
    valid_from: datetime | None
    valid_from_precision: str | None
    valid_to: datetime | None
    valid_to_precision: str | None
    stated_to: datetime | None
    superseded_by: uuid.UUID | None
    contradicts: tuple[uuid.UUID, ...]
    observed_at: datetime
    recorded_at: datetime
    closed_at: datetime | None
    closing: str | None
    closed_by: str | None
    confidence: float
    trust_tier: str
    verified: bool
    source_id: str | None
    source_version: str | None
    principal: str
    client: str | None
    model: str | None
    session_id: str | None
    collection_id: uuid.UUID | None
    chunk_id: uuid.UUID | None
    rule: str | None
    lineage: tuple[uuid.UUID, ...]
    suggestion: str | None
    confirmed_by: str | None


class FactPage(WireModel):
    """Facts, and the cursor of the next page; None on the last."""

    facts: tuple[GraphFact, ...]
    next_cursor: str | None
    contradictions_truncated: bool = False
    scope: Scope
    as_of: datetime | None
    as_known_at: datetime


class GraphNode(WireModel):
    """An entity. ``names`` are its spellings, ``distance`` the facts between it and what was asked."""

    name: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    distance: int


class GraphEdge(WireModel):
    """A fact between two nodes, by their names."""

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    fact: GraphFact


class NodePath(WireModel):
    """The facts that lead to a node, in order."""

    node: str
    facts: tuple[uuid.UUID, ...]


class Subgraph(WireModel):
    """``truncated`` when there is more than the limits let through; ``cut`` names where."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    paths: tuple[NodePath, ...]
    truncated: bool
    cut: tuple[str, ...]
    scope: Scope
    as_of: datetime | None
    as_known_at: datetime


class FactPath(WireModel):
    hops: int
    facts: tuple[GraphFact, ...]


class FactPaths(WireModel):
    """The shortest paths; none when there is none so short."""

    paths: tuple[FactPath, ...]
    truncated: bool
    scope: Scope
    as_of: datetime | None
    as_known_at: datetime


class FactHistory(WireModel):
    """Every telling about ``entity``, oldest validity first; ``truncated`` when there are more.

    ``closing`` and ``closed_at`` of a fact say why and when the belief in it ended.
    """

    entity: str
    facts: tuple[GraphFact, ...]
    scope: Scope
    as_known_at: datetime
    truncated: bool


class DecidedSuggestion(WireModel):
    fact_id: uuid.UUID
    suggestion: Literal["confirmed", "rejected"]


class ClosedFact(WireModel):
    fact_id: uuid.UUID
    reason: str


class Violation(WireModel):
    """What the ontology says against ``facts`` of the facts sent."""

    message: str
    facts: int


class WrittenFacts(WireModel):
    """What became of a batch; ``fact_ids`` are those of its facts, in their order.

    ``ended`` counts those of the unchanged that were retracted or corrected since.
    """

    fact_ids: tuple[uuid.UUID, ...]
    added: int
    restated: int
    outdated: int
    unchanged: int
    ended: int = 0
    closed: tuple[ClosedFact, ...]
    suggested: int
    inference_truncated: bool
    violations: tuple[Violation, ...]
