"""Bodies of the graph's operations; facts themselves are read by `knowledge.graph.reading`."""

from __future__ import annotations

import uuid
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StrictBool, ValidationError, WithJsonSchema, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from knowledge.graph.questions import (
    EVER,
    MAX_EDGES,
    MAX_ENTITIES,
    MAX_FAN_OUT,
    MAX_HOPS,
    MAX_LIMIT,
    MAX_NODES,
    MAX_PATH_HOPS,
    MAX_PATHS,
    Direction,
    Expansion,
    FactQuestion,
    HistoryQuestion,
    PathQuestion,
    Sieve,
)
from knowledge.model.fact import (
    MAX_FACTS,
    MAX_NAME_CHARS,
    MAX_PREDICATE_CHARS,
    Domain,
)
from knowledge.model.scope import TrustTier
from retrieval_api.wire import Instant, Text, Wire

MAX_PREDICATES: Final = 64
MAX_NAMED: Final = 20
"""Unknown fields that one problem names."""


# Its length and characters are looked at by the question, in the words of the command line.
Name = Annotated[str, WithJsonSchema({"type": "string", "maxLength": MAX_NAME_CHARS})]
Predicate = Annotated[
    str,
    WithJsonSchema(
        {
            "type": "string",
            "maxLength": MAX_PREDICATE_CHARS,
            "description": "UPPER_SNAKE_CASE, or an alias that the ontology knows.",
        }
    ),
]
Count = Annotated[int, Field(strict=True)]


class StrictBody(Wire):
    """What is sent to the graph: an unknown field is told the known ones."""

    @model_validator(mode="before")
    @classmethod
    def _require_known(cls, given: object) -> object:
        if not isinstance(given, dict):
            return given
        known = [str(field.alias) for field in cls.model_fields.values()]
        unknown = sorted(str(name) for name in given.keys() - set(known))
        if unknown:
            fields = ", ".join(known)
            raise ValidationError.from_exception_data(
                cls.__name__, [_unknown_field(name, fields) for name in unknown[:MAX_NAMED]]
            )
        return given


def _unknown_field(name: str, known: str) -> InitErrorDetails:
    """In the words of the command line; a name may hold half a surrogate pair."""
    shown = name[:80].encode(errors="backslashreplace").decode()
    error = PydanticCustomError(
        "unknown_field",
        "unknown field '{field}': use {known}",
        {"field": shown, "known": known},
    )
    return InitErrorDetails(type=error, loc=(shown,), input=None)


class _SieveBody(StrictBody):
    """Which facts count. Without ``asOf`` and ``between``: those that hold now."""

    project_id: Text
    domains: list[Domain] = Field(
        default_factory=list, max_length=len(Domain), description="None is all of them."
    )
    namespace: Text | None = None
    as_of: Instant | None = None
    between: tuple[Instant, Instant] | None = Field(
        None, description="Facts that hold at some time in [from, to)."
    )
    as_known_at: Instant | None = Field(None, description="What was believed then.")
    min_trust: TrustTier | None = None
    verified: StrictBool | None = None
    source: Text | None = None
    suggestions: StrictBool = Field(
        False, description="Also inferred facts that nobody has confirmed."
    )

    def sieve(self) -> Sieve:
        return Sieve(
            domains=tuple(self.domains),
            namespace=self.namespace,
            as_of=self.as_of,
            between=self.between,
            as_known_at=self.as_known_at,
            min_trust=self.min_trust,
            verified=self.verified,
            source_id=self.source,
            suggestions=self.suggestions,
        )


class FactQueryBody(_SieveBody):
    """Facts by subject, predicate and object; names in any spelling, each is optional."""

    subject: Name | None = None
    predicate: Predicate | None = None
    object: Name | None = None
    subject_type: Text | None = None
    object_type: Text | None = None
    limit: Count = Field(100, ge=1, le=MAX_LIMIT)
    cursor: Text | None = Field(None, description="nextCursor of the same question's last page.")

    def to_question(self) -> FactQuestion:
        return FactQuestion(
            self.project_id,
            subject=self.subject,
            predicate=self.predicate,
            object=self.object,
            subject_type=self.subject_type,
            object_type=self.object_type,
            sieve=self.sieve(),
            limit=self.limit,
            cursor=self.cursor,
        )


class ExpansionBody(_SieveBody):
    """What is around some entities."""

    entities: list[Name] = Field(min_length=1, max_length=MAX_ENTITIES)
    hops: Count = Field(1, ge=1, le=MAX_HOPS)
    direction: Direction = "both"
    predicates: list[Predicate] = Field(default_factory=list, max_length=MAX_PREDICATES)
    max_nodes: Count = Field(200, ge=1, le=MAX_NODES)
    max_edges: Count = Field(500, ge=1, le=MAX_EDGES)
    fan_out: Count = Field(50, ge=1, le=MAX_FAN_OUT, description="Facts a node and direction.")

    def to_question(self) -> Expansion:
        return Expansion(
            self.project_id,
            entities=tuple(self.entities),
            hops=self.hops,
            direction=self.direction,
            predicates=tuple(self.predicates),
            sieve=self.sieve(),
            max_nodes=self.max_nodes,
            max_edges=self.max_edges,
            fan_out=self.fan_out,
        )


class PathsBody(_SieveBody):
    """The shortest chains of facts from one entity to another."""

    from_: Name = Field(alias="from")
    to: Name
    max_hops: Count = Field(4, ge=1, le=MAX_PATH_HOPS)
    direction: Direction = "both"
    limit: Count = Field(10, ge=1, le=MAX_PATHS)

    def to_question(self) -> PathQuestion:
        return PathQuestion(
            self.project_id,
            source=self.from_,
            target=self.to,
            max_hops=self.max_hops,
            direction=self.direction,
            sieve=self.sieve(),
            limit=self.limit,
        )


class HistoryBody(StrictBody):
    """Every telling about an entity, believed or not."""

    project_id: Text
    entity: Name
    predicate: Predicate | None = None
    domains: list[Domain] = Field(default_factory=list, max_length=len(Domain))
    limit: Count = Field(MAX_LIMIT, ge=1, le=MAX_LIMIT)

    def to_question(self) -> HistoryQuestion:
        return HistoryQuestion(
            self.project_id,
            entity=self.entity,
            predicate=self.predicate,
            domains=tuple(self.domains),
            limit=self.limit,
        )


class SuggestionsQuery(StrictBody):
    """Inferred facts that wait for somebody, whatever the time they hold at."""

    project_id: Text
    limit: int = Field(100, ge=1, le=MAX_LIMIT)
    cursor: Text | None = None

    def to_question(self) -> FactQuestion:
        return FactQuestion(
            self.project_id,
            sieve=Sieve(between=EVER),
            suggestions_only=True,
            limit=self.limit,
            cursor=self.cursor,
        )


class DecisionBody(StrictBody):
    """Where the suggestion is."""

    project_id: Text


class FactBody(StrictBody):
    """One fact. It needs a provenance: sourceId and sourceVersion, or client and sessionId."""

    subject: Name
    predicate: Predicate
    object: Name
    subject_type: str | None = None
    object_type: str | None = None
    domain: Domain | None = Field(None, description="Needed unless the predicate has one.")
    namespace: str | None = None
    valid_from: Instant | None = Field(None, description="Start of the half-open window.")
    valid_to: Instant | None = None
    observed_at: Instant | None = None
    confidence: float | None = Field(None, ge=0, le=1, description="1 unless given.")
    trust_tier: TrustTier | None = Field(
        None, description="Without a source at most AgentObservation."
    )
    verified: StrictBool = Field(False, description="true needs the admin scope.")
    source_id: Name | None = None
    source_version: Name | None = None
    client: Name | None = Field(None, description="The program that says it.")
    model: Name | None = None
    session_id: Name | None = None
    acl: list[str] | None = Field(
        None, description="user:NAME and group:NAME; null is everyone with the project."
    )
    collection: str | None = Field(None, description="With chunkId: the chunk that says it.")
    chunk_id: uuid.UUID | None = None
    corrects: uuid.UUID | None = Field(None, description="The factId that this one replaces.")


class RetractionBody(StrictBody):
    """A fact that is to be believed no longer."""

    fact_id: uuid.UUID


class FactsBody(StrictBody):
    """Facts to write together or not at all, at most 5,000 with the retractions."""

    project_id: Text
    facts: Annotated[
        list[Any],
        WithJsonSchema(
            {
                "type": "array",
                "items": {"$ref": "#/components/schemas/FactBody"},
                "maxItems": MAX_FACTS,
            }
        ),
    ] = Field(default_factory=list)
    retractions: list[RetractionBody] = Field(default_factory=list, max_length=MAX_FACTS)


Decision = Literal["confirmed", "rejected"]
