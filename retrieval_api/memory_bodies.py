"""Bodies of the memory's operations; triples themselves are read by `knowledge.memory.writing`."""

from __future__ import annotations

import uuid
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StrictBool, WithJsonSchema

from knowledge.memory.care import Chosen
from knowledge.memory.plan import MemoryScope
from knowledge.memory.questions import (
    MAX_ENTRIES,
    MAX_FACTS,
    MAX_QUERY_CHARS,
    MAX_TOKENS,
    Bounds,
    NameQuestion,
    RecallQuestion,
    SubgraphQuestion,
)
from knowledge.memory.writing import MAX_NAME_CHARS, MAX_TRIPLES, Told
from retrieval_api.graph_bodies import Count, Name, StrictBody
from retrieval_api.wire import Instant, Text

MAX_CHOSEN: Final = 1_000
MAX_TURNS: Final = 400

Query = Annotated[
    str,
    WithJsonSchema({"type": "string", "maxLength": MAX_QUERY_CHARS}),
]


class _MemoryBody(StrictBody):
    """Which memory is meant. Without ``projectId`` the only project of the credential."""

    project_id: Text | None = None
    graph: Text | None = Field(None, description='"main" where none is named.')


class _QuestionBody(_MemoryBody):
    """Which facts count: without ``asOf`` those that hold now."""

    as_of: Instant | None = None
    session_id: Text | None = Field(None, description="Also facts of that session only.")
    shared: StrictBool = Field(True, description="False: only facts of the session.")

    def scope(self) -> MemoryScope:
        return MemoryScope(self.project_id, self.graph, self.session_id, self.shared)


class _BoundedBody(_QuestionBody):
    hops: Count = Field(1, description="1 or 2.")
    limit: Count = Field(MAX_FACTS, description="Facts at most.")
    max_tokens: Count = MAX_TOKENS

    def bounds(self) -> Bounds:
        return Bounds(self.hops, self.limit, self.max_tokens)


class RecallBody(_BoundedBody):
    """What is known about what a text speaks of."""

    query: Query

    def to_question(self) -> RecallQuestion:
        return RecallQuestion(self.query, self.scope(), self.as_of, self.bounds())


class NamesBody(_QuestionBody):
    """Which entities a text may speak of."""

    query: Query
    limit: Count = Field(5, description="From 3 to 10.")

    def to_question(self) -> NameQuestion:
        return NameQuestion(self.query, self.scope(), self.as_of, self.limit)


class SurroundingsBody(_BoundedBody):
    """The facts around entities."""

    entities: list[Name] = Field(min_length=1, max_length=MAX_ENTRIES)

    def to_question(self) -> SubgraphQuestion:
        return SubgraphQuestion(tuple(self.entities), self.scope(), self.as_of, self.bounds())


class NamesQuery(_MemoryBody):
    """The query string of the names that a caller may read."""

    session_id: Text | None = None

    def scope(self) -> MemoryScope:
        return MemoryScope(self.project_id, self.graph, self.session_id)


_END = {"type": "string", "maxLength": MAX_NAME_CHARS}
_MOMENT = {"type": ["string", "null"], "description": "2024, 2024-05, 2024-05-01 or ISO 8601."}
TRIPLE_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["subject", "predicate", "object"],
    "properties": {
        "subject": _END,
        "subjectType": {"type": ["string", "null"]},
        "predicate": {"type": "string", "description": "UPPER_SNAKE_CASE, such as DEPENDS_ON."},
        "object": _END,
        "objectType": {"type": ["string", "null"]},
        "validFrom": _MOMENT,
        "validTo": _MOMENT,
        "observedAt": _MOMENT,
        "confidence": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
    },
}


class _TellerBody(_MemoryBody):
    """Who tells, in which session. ``scope: session`` keeps it to questions naming the session."""

    client: Name
    session_id: Name
    model: Name | None = None
    scope: Literal["shared", "session"] = "shared"


class UpsertBody(_TellerBody):
    """Facts that an agent observed. Each is written or refused by itself, with the reason."""

    triples: list[Any] = Field(
        min_length=1, max_length=MAX_TRIPLES, json_schema_extra={"items": TRIPLE_SCHEMA}
    )

    def told(self, namespace: str, key: str | None) -> Told:
        return Told(
            namespace=namespace,
            triples=self.triples,
            client=self.client,
            session_id=self.session_id,
            model=self.model,
            is_of_session=self.scope == "session",
            key=key,
        )


class TurnBody(StrictBody):
    role: Literal["user", "assistant", "system", "tool"]
    content: str
    time: Instant | None = None


class OffloadBody(_TellerBody):
    """Older turns of a conversation, to be read for facts and dropped."""

    turns: list[TurnBody] = Field(min_length=1, max_length=MAX_TURNS)


class _ChosenBody(_MemoryBody):
    fact_ids: list[uuid.UUID] = Field(default_factory=list, max_length=MAX_CHOSEN)
    session_id: Text | None = Field(None, description="Facts of that session only.")


class PromoteBody(_ChosenBody):
    """Facts of one session to share with every session."""

    def chosen(self) -> Chosen:
        return Chosen(tuple(self.fact_ids), session=self.session_id)


class ForgetBody(_ChosenBody):
    """Facts to forget: these, those with an entity, what was told in a session, or all."""

    session_id: Text | None = Field(
        None, description="What was told in it, and in no other session as well."
    )
    entity: Name | None = None
    everything: StrictBool = False

    def chosen(self) -> Chosen:
        return Chosen(tuple(self.fact_ids), self.entity, self.session_id, self.everything)


class VerifyBody(_MemoryBody):
    """Facts that a person says are right."""

    fact_ids: list[uuid.UUID] = Field(min_length=1, max_length=MAX_CHOSEN)
    verified: Literal[True]
