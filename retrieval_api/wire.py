"""Request bodies as pydantic models: unknown fields are refused, names are camelCase."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from knowledge.model.scope import TrustTier
from knowledge.retrieval.request import (
    BUILT,
    MAX_COLLECTIONS,
    MAX_TOP_K,
    Filters,
    Leg,
    RerankMode,
    SearchRequest,
)

Text = Annotated[str, StringConstraints(min_length=1, max_length=1024)]


class Wire(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=False, extra="forbid", frozen=True
    )


class FiltersBody(Wire):
    """All that are given must hold; they are part of every backend query."""

    source_id: Text | None = None
    path_prefix: Text | None = Field(None, description="Plain prefix, no wildcards.")
    kind: Literal["document", "code"] | None = None
    language: Text | None = None
    tags: list[Text] = Field(default_factory=list, max_length=32, description="All of these.")
    updated_after: datetime | None = None


class SearchBody(Wire):
    """A scoped hybrid search; only ``query`` and ``projectId`` are required."""

    query: str = Field(min_length=1, description="Words, a question or an identifier.")
    project_id: Text
    collections: list[Text] = Field(default_factory=list, max_length=MAX_COLLECTIONS)
    top_k: int = Field(10, ge=1, le=MAX_TOP_K)
    filters: FiltersBody = Field(default_factory=FiltersBody)
    min_trust: TrustTier | None = None
    as_of: datetime | None = None
    between: tuple[datetime, datetime] | None = Field(
        None, description="Time window for the temporal leg, which is not built yet."
    )
    legs: list[Leg] | None = Field(None, min_length=1, max_length=len(Leg))
    pinned_revisions: dict[Text, Annotated[int, Field(ge=1, le=2147483646)]] = Field(
        default_factory=dict, max_length=MAX_COLLECTIONS
    )
    rerank: Literal["none", "reranker"] | None = None
    explain: bool = False
    run_id: uuid.UUID | None = None

    def to_request(self, *, timeout_s: float | None) -> SearchRequest:
        rerank: RerankMode | None = {"none": "none", "reranker": "blend", None: None}[self.rerank]
        return SearchRequest(
            query=self.query,
            project_id=self.project_id,
            collections=tuple(self.collections),
            top_k=self.top_k,
            filters=Filters(
                source_id=self.filters.source_id,
                path_prefix=self.filters.path_prefix,
                kind=self.filters.kind,
                language=self.filters.language,
                tags=tuple(self.filters.tags),
                updated_after=_utc(self.filters.updated_after),
            ),
            min_trust=self.min_trust,
            legs=BUILT if self.legs is None else tuple(self.legs),
            pinned=self.pinned_revisions,
            rerank=rerank,
            explain=self.explain,
            as_of=_utc(self.as_of),
            run_id=self.run_id,
            timeout_s=timeout_s,
        )


def _utc(value: datetime | None) -> datetime | None:
    """A time without a zone is UTC."""
    return value if value is None or value.tzinfo else value.replace(tzinfo=UTC)


class EventBody(BaseModel):
    """A CloudEvent 1.0 in structured JSON mode; extension attributes are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    specversion: Literal["1.0"]
    id: Text
    source: Text
    type: Literal["ChunksPublished", "SourceDeleted", "SourceAccessChanged"]
    data: dict[str, Any]
    subject: str | None = None
    time: datetime | None = None
    datacontenttype: str | None = None
