"""Arguments of the tools. Names and meanings are those of the HTTP bodies they become."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

MAX_TRIPLES: Final = 1000
MAX_TURNS: Final = 400
MAX_ENTRY_ENTITIES: Final = 8

When = Annotated[str, Field(description="ISO 8601 or a year")]
Hops = Literal[1, 2]
Graph = Annotated[str, Field(description="Memory; default main")]
Project = Annotated[str, Field(description="If the key has several")]
Session = Annotated[str, Field(description="Also that session's own facts")]


class Arguments(BaseModel):
    """Unknown arguments are refused: a misspelt filter must never widen a question."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=False, extra="forbid", frozen=True
    )

    def to_body(self) -> dict[str, Any]:
        """What was given, in wire names; an argument given as null was not given."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class Filters(Arguments):
    source_id: str | None = None
    path_prefix: str | None = None
    kind: Literal["document", "code"] | None = None
    language: str | None = None
    tags: list[str] | None = None


class KnowledgeSearch(Arguments):
    query: str = Field(description="Question, words or an identifier")
    collections: list[str] | None = Field(None, description="Default: all")
    top_k: int = Field(6, le=30)
    filters: Filters | None = None
    min_trust: (
        Literal["SourceFact", "InferredFact", "AgentObservation", "UnverifiedMemory"] | None
    ) = None
    as_of: When | None = None
    project_id: Project | None = None


_TEXT: Final = {"type": "string"}
_TRIPLES: Final[dict[str, Any]] = {
    "type": "array",
    "maxItems": MAX_TRIPLES,
    "items": {
        "type": "object",
        "properties": {
            "subject": {**_TEXT, "description": "At most 120 characters"},
            "predicate": {**_TEXT, "description": "UPPER_SNAKE_CASE"},
            "object": _TEXT,
            "subjectType": _TEXT,
            "objectType": _TEXT,
            "validFrom": _TEXT,
            "validTo": _TEXT,
            "observedAt": _TEXT,
            "confidence": {"type": "number", "maximum": 1},
        },
        "required": ["subject", "predicate", "object"],
    },
}


class _Told(Arguments):
    """Arguments that say who tells; the door fills in what an agent leaves out."""

    graph: Graph | None = None
    project_id: Project | None = None
    client: str | None = Field(None, description="Your program's name")
    model: str | None = None
    session_id: str | None = None


class UpsertTriples(_Told):
    """Triples are looked at by the API one by one: a wrong one does not lose the others."""

    triples: Annotated[list[Any], WithJsonSchema(_TRIPLES)]
    scope: Literal["shared", "session"] | None = Field(
        None, description="session: recalled with that sessionId only"
    )


class Turn(Arguments):
    role: Literal["user", "assistant", "system", "tool"]
    content: str
    time: str | None = None


class OffloadTurns(_Told):
    turns: list[Turn] = Field(max_length=MAX_TURNS)
    scope: Literal["shared", "session"] | None = None


def _of_a_job(value: str) -> str:
    """It becomes part of a path."""
    if not re.fullmatch(r"[A-Za-z0-9-]{1,64}", value):
        raise ValueError("is not an id of offload_turns")
    return value


class OffloadStatus(Arguments):
    job_id: Annotated[str, AfterValidator(_of_a_job)]


class _Recalled(Arguments):
    """Arguments that say which facts of a memory count."""

    graph: Graph | None = None
    project_id: Project | None = None
    as_of: When | None = None
    session_id: Session | None = None
    shared: bool | None = Field(None, description="false: the session's alone")


class RecallContext(_Recalled):
    query: str = Field(description="The task or question at hand")
    hops: Hops | None = None
    limit: int | None = Field(None, le=40)


class SearchNodes(_Recalled):
    query: str
    limit: int | None = Field(None, ge=3, le=10)


class QuerySubgraph(_Recalled):
    entities: list[str] = Field(max_length=MAX_ENTRY_ENTITIES)
    hops: Hops | None = None
    limit: int | None = Field(None, le=40)


def compact_schema(model: type[Arguments]) -> dict[str, Any]:
    """The model's JSON schema without titles, nulls and defaults of null, definitions inlined.

    Only the outermost object says that it takes no other fields; the inner ones refuse them too.

    An agent pays for every word of it in each of its sessions.
    """
    schema = model.model_json_schema(by_alias=True)
    definitions = schema.pop("$defs", {})
    schema.pop("description", None)
    compact = _compact(schema, definitions)
    assert isinstance(compact, dict)
    return compact


def _compact(value: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_compact(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        target = dict(definitions[value["$ref"].rpartition("/")[2]])
        for told in ("description", "additionalProperties"):
            target.pop(told, None)
        return _compact(target, definitions)
    options = [option for option in value.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        outer = {key: part for key, part in value.items() if key != "anyOf"}
        return _compact({**options[0], **outer}, definitions)
    return {
        key: (
            {name: _compact(part, definitions) for name, part in value["properties"].items()}
            if key == "properties"
            else _compact(part, definitions)
        )
        for key, part in value.items()
        if key != "title" and not (key == "default" and part is None)
    }
