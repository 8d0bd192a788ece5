"""Schemas of the graph's answers, which are plain dicts on the wire."""

from __future__ import annotations

from typing import Any, Final

from knowledge.model.fact import Closing, Domain, Precision
from knowledge.model.scope import TrustTier
from retrieval_api.schemas import ANSWER_SCHEMA

_STRING: Final = {"type": "string"}
_NULLABLE: Final = {"type": ["string", "null"]}
_TIME: Final = {"type": "string", "format": "date-time"}
_TIME_OR_NULL: Final = {"type": ["string", "null"], "format": "date-time"}
_ID: Final = {"type": "string", "format": "uuid"}
_ID_OR_NULL: Final = {"type": ["string", "null"], "format": "uuid"}
_IDS: Final = {"type": "array", "items": _ID}
_COUNT: Final = {"type": "integer", "minimum": 0}
_PRECISION: Final = {"enum": [*(precision.value for precision in Precision), None]}
_SCOPE: Final = ANSWER_SCHEMA["properties"]["scope"]
_FACT: Final = {"$ref": "#/components/schemas/GraphFact"}
_FACTS: Final = {"type": "array", "items": _FACT}


def closed(**properties: Any) -> dict[str, Any]:
    """An object with exactly these properties."""
    return {
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "additionalProperties": False,
    }


GRAPH_FACT: Final = closed(
    factId=_ID,
    tenantId=_STRING,
    projectId=_STRING,
    namespace=_STRING,
    domain={"enum": [domain.value for domain in Domain]},
    subject=_STRING,
    subjectType=_NULLABLE,
    predicate=_STRING,
    object=_STRING,
    objectType=_NULLABLE,
    validFrom=_TIME_OR_NULL | {"description": "Start of the half-open window in force."},
    validFromPrecision=_PRECISION,
    validTo=_TIME_OR_NULL | {"description": "Its end, which is not part of it."},
    validToPrecision=_PRECISION,
    statedTo=_TIME_OR_NULL | {"description": "The end that was stated."},
    supersededBy=_ID_OR_NULL | {"description": "The fact that ended the window earlier."},
    contradicts=_IDS,
    observedAt=_TIME,
    recordedAt=_TIME,
    closedAt=_TIME_OR_NULL | {"description": "When the belief ended."},
    closing={"enum": [*(closing.value for closing in Closing), None]},
    closedBy=_NULLABLE
    | {"description": "The fact that corrected it, or who retracted or rejected it."},
    confidence={"type": "number", "minimum": 0, "maximum": 1},
    trustTier={"enum": [tier.value for tier in TrustTier]},
    verified={"type": "boolean"},
    sourceId=_NULLABLE,
    sourceVersion=_NULLABLE,
    principal=_STRING | {"description": "The client that wrote it."},
    client=_NULLABLE,
    model=_NULLABLE,
    sessionId=_NULLABLE,
    collectionId=_ID_OR_NULL,
    chunkId=_ID_OR_NULL,
    rule=_NULLABLE | {"description": "What inferred it."},
    lineage=_IDS | {"description": "The facts that an inferred one rests on."},
    suggestion={"enum": ["suggested", "confirmed", None]},
    confirmedBy=_NULLABLE,
)
_ASKED: Final[dict[str, Any]] = {
    "scope": _SCOPE,
    "asOf": _TIME_OR_NULL | {"description": "Null when only a window was asked for."},
    "asKnownAt": _TIME,
    "notice": _STRING,
}
FACT_PAGE: Final = closed(
    facts=_FACTS,
    nextCursor=_NULLABLE | {"description": "Null on the last page."},
    contradictionsTruncated={
        "type": "boolean",
        "description": "Facts contradict more others than are listed.",
    },
    **_ASKED,
)
SUBGRAPH: Final = closed(
    nodes={
        "type": "array",
        "items": closed(
            name=_STRING,
            names={"type": "array", "items": _STRING, "description": "Spellings met."},
            types={"type": "array", "items": _STRING},
            distance=_COUNT,
        ),
    },
    edges={
        "type": "array",
        "items": closed(**{"from": _STRING, "to": _STRING, "fact": _FACT}),
    },
    paths={
        "type": "array",
        "items": closed(node=_STRING, facts=_IDS),
        "description": "For every node that was reached the facts that lead to it, in order.",
    },
    truncated={"type": "boolean", "description": "There is more than the limits let through."},
    cut={
        "type": "array",
        "items": _STRING,
        "description": "Nodes with more facts than were followed.",
    },
    **_ASKED,
)
FACT_PATHS: Final = closed(
    paths={"type": "array", "items": closed(hops=_COUNT, facts=_FACTS)},
    truncated={"type": "boolean"},
    **_ASKED,
)
FACT_HISTORY: Final = closed(
    entity=_STRING,
    facts=_FACTS,
    scope=_SCOPE,
    asKnownAt=_TIME,
    truncated={"type": "boolean"},
    notice=_STRING,
)
WRITTEN: Final = closed(
    factIds=_IDS | {"description": "Of the facts sent, in their order."},
    added=_COUNT | {"description": "Facts that were not believed before."},
    restated=_COUNT | {"description": "Known facts told anew."},
    outdated=_COUNT | {"description": "Tellings older than one that is known."},
    unchanged=_COUNT,
    ended=_COUNT | {"description": "Of the unchanged, those retracted or corrected since."},
    closed={
        "type": "array",
        "items": closed(
            factId=_ID, reason={"enum": ["superseded", *(closing.value for closing in Closing)]}
        ),
    },
    suggested=_COUNT | {"description": "Facts inferred from these."},
    inferenceTruncated={"type": "boolean"},
    violations={
        "type": "array",
        "items": closed(message=_STRING, facts=_COUNT),
        "description": "What the ontology says against the facts, which are written all the same.",
    },
)
DECIDED: Final = closed(factId=_ID, suggestion={"enum": ["confirmed", "rejected"]})

GRAPH_SCHEMAS: Final = {
    "GraphFact": GRAPH_FACT,
    "FactPage": FACT_PAGE,
    "Subgraph": SUBGRAPH,
    "FactPaths": FACT_PATHS,
    "FactHistory": FACT_HISTORY,
    "WrittenFacts": WRITTEN,
    "DecidedSuggestion": DECIDED,
}
