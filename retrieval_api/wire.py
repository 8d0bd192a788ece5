"""Request bodies as pydantic models: unknown fields are refused, names are camelCase."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel

from knowledge.errors import InvalidFact
from knowledge.model.fact import parse_moment
from knowledge.model.scope import TrustTier
from knowledge.retrieval.request import (
    DEFAULT_LEGS,
    MAX_COLLECTIONS,
    MAX_TOP_K,
    Filters,
    Leg,
    RerankMode,
    SearchRequest,
)


def _without_nul(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not hold the NUL character")
    return value


def _storable(value: dict[str, Any]) -> dict[str, Any]:
    """The value, when PostgreSQL can hold every string in it."""
    written = json.dumps(value, ensure_ascii=False)
    try:
        written.encode()
    except UnicodeEncodeError as error:
        raise ValueError("must not hold half a surrogate pair") from error
    if "\\u0000" in written.replace("\\\\", ""):
        raise ValueError("must not hold the NUL character")
    return value


def _in_utc(value: datetime) -> datetime:
    """A time without a zone is UTC; one that UTC cannot express is refused."""
    try:
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    except OverflowError as error:
        raise ValueError("must lie in the years 1 to 9999 of UTC") from error


def _first_instant(value: object) -> datetime:
    """Of a time as people write it: a bare number is a year, never seconds since 1970."""
    try:
        moment = parse_moment(value, "the value")
    except InvalidFact as error:
        raise ValueError(error.message) from error
    if moment is None:
        raise ValueError("a time is missing")
    return moment.at


Instant = Annotated[
    datetime,
    BeforeValidator(_first_instant),
    WithJsonSchema(
        {
            "type": ["string", "integer"],
            "description": "2024, 2024-05, 2024-05-01 or ISO 8601 with a time: its first instant.",
        }
    ),
]

Text = Annotated[
    str, StringConstraints(min_length=1, max_length=1024), AfterValidator(_without_nul)
]
Time = Annotated[datetime, AfterValidator(_in_utc)]


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


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
    updated_after: Time | None = None


class SearchBody(Wire):
    """A scoped hybrid search; ``projectId`` may be left out by a credential of one project."""

    query: str = Field(min_length=1, description="Words, a question or an identifier.")
    project_id: Text | None = None
    collections: list[Text] = Field(default_factory=list, max_length=MAX_COLLECTIONS)
    top_k: int = Field(10, ge=1, le=MAX_TOP_K)
    filters: FiltersBody = Field(default_factory=FiltersBody)
    min_trust: TrustTier | None = None
    as_of: Instant | None = None
    between: tuple[Instant, Instant] | None = Field(
        None, description="Half-open window for the temporal leg: facts that hold in it."
    )
    legs: list[Leg] | None = Field(None, min_length=1, max_length=len(Leg))
    pinned_revisions: dict[Text, Annotated[int, Field(ge=1, le=2147483646, strict=True)]] = Field(
        default_factory=dict, max_length=MAX_COLLECTIONS
    )
    rerank: RerankMode | None = None
    explain: bool = False
    explain_chunk: uuid.UUID | None = Field(
        None, description="A chunkId: the answer says what became of it, found or not."
    )
    run_id: uuid.UUID | None = None

    def to_request(self, *, project_id: str, timeout_s: float | None) -> SearchRequest:
        return SearchRequest(
            query=self.query,
            project_id=project_id,
            collections=tuple(self.collections),
            top_k=self.top_k,
            filters=Filters(
                source_id=self.filters.source_id,
                path_prefix=self.filters.path_prefix,
                kind=self.filters.kind,
                language=self.filters.language,
                tags=tuple(self.filters.tags),
                updated_after=self.filters.updated_after,
            ),
            min_trust=self.min_trust,
            legs=DEFAULT_LEGS if self.legs is None else tuple(self.legs),
            pinned=self.pinned_revisions,
            rerank=self.rerank,
            explain=self.explain,
            explain_chunk=self.explain_chunk,
            as_of=self.as_of,
            between=self.between,
            run_id=self.run_id,
            timeout_s=timeout_s,
        )


class EventBody(BaseModel):
    """A CloudEvent 1.0 in structured JSON mode; extension attributes are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    specversion: Literal["1.0"]
    id: Text
    source: Text
    type: Literal["ChunksPublished", "SourceDeleted", "SourceAccessChanged"]
    data: Annotated[dict[str, Any], AfterValidator(_storable)]
    subject: str | None = None
    time: datetime | None = None
    datacontenttype: str | None = None


class RebuildBody(Wire):
    """``embeddingProfileVersion`` absent keeps the pinned profile; null gives the model up."""

    embedding_profile_version: Text | None = Field(
        None,
        # A client that fills in defaults must not give the model up by accident.
        json_schema_extra=_without_default,
    )

    @property
    def names_profile(self) -> bool:
        return "embedding_profile_version" in self.model_fields_set
