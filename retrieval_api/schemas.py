"""Schemas of answers, which are plain dicts on the wire."""

from __future__ import annotations

from typing import Any, Final

from knowledge.model.scope import TrustTier
from knowledge.retrieval.answer import LegState, Outcome
from knowledge.retrieval.request import BUILT, Leg
from knowledge.storage.postgres.rebuilds import RebuildState

_STRING: Final = {"type": "string"}
_NULLABLE: Final = {"type": ["string", "null"]}
_TIME_OR_NULL: Final = {"type": ["string", "null"], "format": "date-time"}


def _object(required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required.split(), "properties": properties}


CITATION: Final = _object(
    "chunkId sourceId sourceVersion path collection indexRevision trustTier score signals",
    chunkId={
        "type": ["string", "null"],
        "format": "uuid",
        "description": "Of a fact: the chunk that says it, if any.",
    },
    sourceId=_NULLABLE,
    sourceVersion={"type": ["string", "null"], "description": "Commit or content hash."},
    path={"type": ["string", "null"], "description": "Null for a fact, as all of where it is."},
    lines={
        "type": ["array", "null"],
        "items": {"type": "integer"},
        "description": "First and last line, from 1.",
    },
    collection=_NULLABLE,
    indexRevision={"type": ["integer", "null"]},
    embeddingProfileVersion=_NULLABLE,
    factId={"type": "string", "format": "uuid", "description": "Of a fact only, as are the next."},
    domain=_STRING,
    validFrom=_TIME_OR_NULL,
    validTo=_TIME_OR_NULL,
    recordedAt={"type": "string", "format": "date-time"},
    principal=_STRING,
    trustTier={"enum": [tier.value for tier in TrustTier]},
    score={
        "type": "number",
        "minimum": 0,
        "maximum": 1,
        "description": "Never rises down the list.",
    },
    signals={
        "type": "object",
        "description": "Raw scores by leg.",
        "additionalProperties": {"type": "number"},
    },
)
CANDIDATE: Final = _object(
    "type text title kind citation",
    type={"enum": ["chunk", "fact"]},
    text=_STRING,
    title=_STRING,
    kind={"enum": ["document", "code", "fact"]},
    language=_NULLABLE,
    tags={"type": "array", "items": _STRING},
    metadata={"type": "object"},
    citation=CITATION,
    explain=_object(
        "ranks fusion rerank prior",
        ranks={"type": "object", "additionalProperties": {"type": "integer"}},
        fusion={"type": "number"},
        rerank={"type": ["number", "null"]},
        prior={
            "type": "number",
            "description": "What it owes to a time or speaker that the query names; part of rerank.",
        },
    ),
)
LEG: Final = _object(
    "leg collection state indexRevision count latencyMs reason",
    leg={"enum": [leg.value for leg in Leg]},
    collection=_NULLABLE,
    state={"enum": [state.value for state in LegState]},
    indexRevision={"type": ["integer", "null"]},
    count={"type": "integer"},
    latencyMs={"type": "number"},
    reason=_NULLABLE,
)
EXPLAINED_CHUNK: Final = _object(
    "chunkId outcome reason collection indexRevision excludedBy legs fusionRank rerankRank rank"
    " score",
    chunkId={"type": "string", "format": "uuid"},
    outcome={"enum": [outcome.value for outcome in Outcome]},
    reason=_STRING,
    collection=_NULLABLE,
    indexRevision={"type": ["integer", "null"], "description": "The revision that was read."},
    excludedBy={
        "type": "array",
        "items": _STRING,
        "description": "Fields of the request that leave it out.",
    },
    legs={
        "type": "array",
        "items": _object(
            "leg state indexRevision rank signal weakestSignal reason",
            leg={"enum": [leg.value for leg in BUILT]},
            state={"enum": [state.value for state in LegState]},
            indexRevision={"type": ["integer", "null"]},
            rank={"type": ["integer", "null"]},
            signal={"type": ["number", "null"], "description": "Its raw score in this leg."},
            weakestSignal={
                "type": ["number", "null"],
                "description": "That of the weakest hit the leg ranks.",
            },
            reason=_NULLABLE,
        ),
    },
    fusionRank={"type": ["integer", "null"]},
    rerankRank={"type": ["integer", "null"]},
    rank={"type": ["integer", "null"], "description": "Place in the final order, from 1."},
    score={"type": ["number", "null"]},
)
ANSWER_SCHEMA: Final = _object(
    "queryId scope asOf degraded rerank confidence lowSupport legs candidates",
    queryId={"type": "string", "format": "uuid"},
    scope=_object(
        "tenantId projectId principal groups",
        tenantId=_STRING,
        projectId=_STRING,
        principal=_STRING,
        groups={"type": "array", "items": _STRING},
    ),
    asOf={"type": "string", "format": "date-time"},
    degraded={"type": "boolean", "description": "A leg is missing or another stands in for it."},
    rerank={"enum": ["reranker", "none"]},
    confidence={
        "type": "number",
        "minimum": 0,
        "maximum": 1,
        "description": "How well what was found supports an answer, from raw scores. A question"
        " whose answer was nearly said, but was not, cannot be told.",
    },
    lowSupport={"type": "boolean", "description": "The confidence is below .5."},
    legs={"type": "array", "items": LEG},
    candidates={"type": "array", "items": CANDIDATE},
    foreignDropped={
        "type": "integer",
        "description": "Hits outside the scope that a backend returned: never sent.",
    },
    notice=_STRING,
    explainedChunk=EXPLAINED_CHUNK,
)
PROBLEM_SCHEMA: Final = _object(
    "type title status detail",
    type=_STRING,
    title=_STRING,
    status={"type": "integer"},
    detail={"type": "string", "description": "What is wrong and what to do."},
    errors={
        "type": "array",
        "items": _object("field message", field=_STRING, message=_STRING),
    },
)
REBUILD_SCHEMA: Final = _object(
    "rebuildId collection collectionId state reason embeddingProfileVersion requestedBy requestedAt"
    " startedAt finishedAt attempts failedAttempts itemsWritten revision error",
    rebuildId={"type": "string", "format": "uuid"},
    collection=_STRING,
    collectionId={"type": "string", "format": "uuid"},
    state={"enum": [state.value for state in RebuildState]},
    reason={"enum": ["requested", "profile", "dead_rows"]},
    embeddingProfileVersion=_NULLABLE,
    requestedBy=_STRING,
    requestedAt={"type": "string", "format": "date-time"},
    startedAt=_TIME_OR_NULL,
    finishedAt=_TIME_OR_NULL,
    attempts={"type": "integer", "description": "How often it was taken up."},
    failedAttempts={"type": "integer", "description": "Of them, those that count as failed."},
    itemsWritten={"type": "integer", "description": "Items embedded or written so far."},
    revision={"type": ["integer", "null"], "description": "The one that serves from it."},
    error={"type": ["string", "null"], "description": "Why the last attempt failed."},
)
