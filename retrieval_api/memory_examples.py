"""Examples of the memory's operations; a test validates them against their schemas."""

from __future__ import annotations

from typing import Any, Final

from knowledge.memory.wire import NOTICE
from retrieval_api.examples import ANSWER
from retrieval_api.graph_examples import FACT_ID

_SCOPE: Final = ANSWER["scope"]
_BASIS: Final[dict[str, Any]] = {
    "dropped": 0,
    "notice": NOTICE,
    "namespace": "acme|main",
    "scope": _SCOPE,
    "asOf": "2026-05-02T09:00:00Z",
    "asKnownAt": "2026-05-02T08:59:59Z",
}
_MODE: Final[dict[str, Any]] = {
    "skipped": None,
    "mode": "hybrid",
    "modeReason": None,
    "embeddingProfileVersion": "minilm@1",
}
_CARD: Final[dict[str, Any]] = {
    "factId": FACT_ID,
    "subject": "deploys",
    "predicate": "NEVER_RUN_ON",
    "object": "Fridays",
    "validFrom": "2026-03",
    "trustTier": "AgentObservation",
    "observedAt": "2026-03-04T10:12:00Z",
    "client": "claude-code",
    "model": "opus",
    "sessionId": "9f2c",
}
RECALL: Final[dict[str, Any]] = {"query": "when do we deploy", "sessionId": "9f2c"}
RECALLED: Final[dict[str, Any]] = {
    **_MODE,
    "entities": [{"name": "deploys", "type": None, "via": "both"}],
    "facts": [_CARD],
    "truncated": 0,
    "moreFacts": False,
    "tokens": 310,
    **_BASIS,
}
FIND_ENTITIES: Final[dict[str, Any]] = {"query": "deployment", "limit": 5}
FOUND_ENTITIES: Final[dict[str, Any]] = {
    **_MODE,
    "entities": [{"name": "deploys", "type": None, "via": "vector", "facts": 1}],
    **_BASIS,
}
AROUND: Final[dict[str, Any]] = {"entities": ["deploys"], "hops": 1}
SURROUNDINGS: Final[dict[str, Any]] = {
    "entities": [
        {"name": "deploys", "type": None, "distance": 0},
        {"name": "Fridays", "type": None, "distance": 1},
    ],
    "facts": [_CARD],
    "truncated": 0,
    "moreFacts": False,
    "tokens": 290,
    **_BASIS,
}
NAMES: Final[dict[str, Any]] = {
    "entities": [{"name": "deploys", "type": None}],
    "namespace": "acme|main",
    "scope": _SCOPE,
    "asKnownAt": "2026-05-02T08:59:59Z",
}
UPSERT: Final[dict[str, Any]] = {
    "triples": [
        {
            "subject": "deploys",
            "predicate": "NEVER_RUN_ON",
            "object": "Fridays",
            "validFrom": "2026-03",
        }
    ],
    "client": "claude-code",
    "model": "opus",
    "sessionId": "9f2c",
}
UPSERTED: Final[dict[str, Any]] = {
    "namespace": "acme|main",
    "counts": {
        "added": 1,
        "closed": 0,
        "unchanged": 0,
        "restated": 0,
        "refused": 0,
        "redacted": 0,
    },
    "facts": [{"index": 0, "factId": FACT_ID, "state": "added"}],
    "closed": [],
    "refused": [],
    "open": {"facts": 118, "entities": 97},
    "scope": _SCOPE,
}
OFFLOAD: Final[dict[str, Any]] = {
    "turns": [{"role": "user", "content": "We never deploy on Fridays."}],
    "client": "claude-code",
    "sessionId": "9f2c",
}
JOB: Final[dict[str, Any]] = {
    "jobId": "4f7d2f7c9a3c4d699669080020000c66",
    "state": "queued",
    "turns": 1,
    "extractor": "spacy",
    "extractorReason": "no language model is configured: set memory.extraction.api_base and model",
    "model": None,
    "facts": {
        "extracted": 0,
        "dropped": 0,
        "added": 0,
        "unchanged": 0,
        "closed": 0,
        "refused": 0,
    },
    "reason": None,
    "queuedAt": "2026-05-02T09:00:00Z",
    "finishedAt": None,
}
PROMOTE: Final[dict[str, Any]] = {"sessionId": "9f2c"}
PROMOTED: Final[dict[str, Any]] = {
    "namespace": "acme|main",
    "promoted": [{"factId": FACT_ID, "as": "7c1d6f0e-52a6-5d8e-9d55-0a3a1f6f2c11"}],
    "scope": _SCOPE,
}
VERIFY: Final[dict[str, Any]] = {"factIds": [FACT_ID], "verified": True}
VERIFIED: Final[dict[str, Any]] = {
    "namespace": "acme|main",
    "verified": 1,
    "unchanged": 0,
    "verifiedBy": "client-1",
    "scope": _SCOPE,
}
FORGET: Final[dict[str, Any]] = {"entity": "deploys"}
RECEIPT: Final[dict[str, Any]] = {
    "receiptId": "0e6f1a52-9c3a-5d69-9669-0800200c9a66",
    "counts": {
        "facts": 1,
        "tellings": 2,
        "premises": 0,
        "vectors": 2,
        "merges": 0,
        "citations": 0,
    },
    "forgottenAt": "2026-05-02T09:00:00Z",
    "namespace": "acme|main",
    "scope": _SCOPE,
}
