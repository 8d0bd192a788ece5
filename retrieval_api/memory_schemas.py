"""Schemas of the memory's answers, which are plain dicts on the wire."""

from __future__ import annotations

from typing import Any, Final

from knowledge.model.fact import Closing
from knowledge.model.scope import TrustTier
from retrieval_api.graph_schemas import closed
from retrieval_api.schemas import ANSWER_SCHEMA

_STRING: Final = {"type": "string"}
_NULLABLE: Final = {"type": ["string", "null"]}
_TIME: Final = {"type": "string", "format": "date-time"}
_ID: Final = {"type": "string", "format": "uuid"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_SCOPE: Final = ANSWER_SCHEMA["properties"]["scope"]
_MODE: Final = {
    "mode": {"enum": ["hybrid", "names"]},
    "modeReason": _NULLABLE | {"description": "Why only names were searched."},
    "embeddingProfileVersion": _NULLABLE,
    "skipped": _NULLABLE | {"description": "Why nothing was looked for."},
}
_BASIS: Final = {
    "dropped": _COUNT | {"description": "Of another memory; more than none is a fault."},
    "notice": _STRING,
    "namespace": _STRING,
    "scope": _SCOPE,
    "asOf": _TIME,
    "asKnownAt": _TIME | {"description": "The last write that the answer knows of."},
}
_CUT: Final = {
    "truncated": _COUNT | {"description": "Facts left out for the limits."},
    "moreFacts": {"type": "boolean", "description": "Not every fact was looked at."},
    "tokens": _COUNT | {"description": "About what the answer costs an agent."},
}

MEMORY_FACT: Final[dict[str, Any]] = {
    "type": "object",
    "description": "A fact in few words: what is absent is null, and confidence 1.",
    "required": ["factId", "subject", "predicate", "object", "trustTier", "observedAt"],
    "additionalProperties": False,
    "properties": {
        "factId": _ID,
        "subject": _STRING,
        "predicate": _STRING,
        "object": _STRING,
        "validFrom": _STRING | {"description": "As exactly as it was said: 2024, 2024-05, …"},
        "validTo": _STRING,
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "trustTier": {"enum": [tier.value for tier in TrustTier]},
        "verified": {"type": "boolean"},
        "verifiedBy": _STRING,
        "observedAt": _TIME,
        "client": _STRING,
        "model": _STRING,
        "sessionId": _STRING,
        "ofSession": {"type": "boolean"},
        "sourceId": _STRING,
        "sourceVersion": _STRING,
        "contradicts": {"type": "array", "items": _ID},
    },
}
_FACTS: Final = {"type": "array", "items": {"$ref": "#/components/schemas/MemoryFact"}}


def _entities(**more: Any) -> dict[str, Any]:
    return {"type": "array", "items": closed(name=_STRING, type=_NULLABLE, **more)}


_VIA: Final = {"enum": ["vector", "name", "both"]}

MEMORY_SCHEMAS: Final[dict[str, Any]] = {
    "MemoryFact": MEMORY_FACT,
    "Recalled": closed(**_MODE, entities=_entities(via=_VIA), facts=_FACTS, **_CUT, **_BASIS),
    "FoundEntities": closed(**_MODE, entities=_entities(via=_VIA, facts=_COUNT), **_BASIS),
    "Surroundings": closed(entities=_entities(distance=_COUNT), facts=_FACTS, **_CUT, **_BASIS),
    "MemoryNames": closed(entities=_entities(), namespace=_STRING, scope=_SCOPE, asKnownAt=_TIME),
    "UpsertedFacts": closed(
        namespace=_STRING,
        counts=closed(
            added=_COUNT,
            closed=_COUNT,
            unchanged=_COUNT,
            restated=_COUNT,
            refused=_COUNT,
            redacted=_COUNT,
        ),
        facts={
            "type": "array",
            "items": closed(
                index=_COUNT,
                factId=_ID,
                state={"enum": ["added", "restated", "outdated", "unchanged", "ended"]},
            ),
        },
        closed={
            "type": "array",
            "items": closed(
                factId=_ID,
                reason={"enum": ["superseded", *(closing.value for closing in Closing)]},
            ),
        },
        refused={"type": "array", "items": closed(index=_COUNT, reason=_STRING)},
        open=closed(facts=_COUNT, entities=_COUNT),
        scope=_SCOPE,
    ),
    "PromotedFacts": closed(
        namespace=_STRING,
        promoted={"type": "array", "items": closed(**{"factId": _ID, "as": _ID})},
        scope=_SCOPE,
    ),
    "VerifiedFacts": closed(
        namespace=_STRING, verified=_COUNT, unchanged=_COUNT, verifiedBy=_STRING, scope=_SCOPE
    ),
    "ForgetReceipt": closed(
        receiptId=_ID,
        counts={"type": "object", "additionalProperties": _COUNT},
        forgottenAt=_TIME,
        namespace=_STRING,
        scope=_SCOPE,
    ),
    "OffloadJob": {
        "type": "object",
        "required": ["jobId", "state", "extractor"],
        "properties": {
            "jobId": _STRING,
            "state": {"enum": ["queued", "running", "done", "failed"]},
            "extractor": {"enum": ["spacy", "llm"]},
            "extractorReason": _NULLABLE,
            "model": _NULLABLE,
            "turns": _COUNT,
            "facts": {"type": "object", "additionalProperties": _COUNT},
            "reason": _NULLABLE,
            "queuedAt": _TIME,
            "finishedAt": {"type": ["string", "null"], "format": "date-time"},
        },
    },
}
