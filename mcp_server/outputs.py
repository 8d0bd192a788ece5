"""What the tools answer, as JSON Schema: the fields an agent may rely on, more may come.

An agent pays for every word of it in each of its sessions, so rows are described in a line of
their field names instead of a schema each. A field that is not ``required`` may be absent.
"""

from __future__ import annotations

from typing import Any, Final

_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer"}
_OBJECT: Final = {"type": "object"}
_NULLABLE: Final = {"type": ["string", "null"]}


def _object(required: str, /, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required.split()}


def _rows(fields: str) -> dict[str, Any]:
    return {"type": "array", "items": _OBJECT, "description": fields}


_FACTS: Final = _rows(
    "factId subject predicate object validFrom validTo confidence trustTier verified sessionId"
    " observedAt"
)
_ENTITIES: Final = _rows("name type via(vector|name|both)")
_MODE: Final = {"mode": {"enum": ["hybrid", "names"]}, "modeReason": _NULLABLE}

SEARCH: Final = _object(
    "candidates legs degraded",
    candidates=_rows(
        "text title metadata(of a turn: speaker session time) citation(collection path lines sourceId sourceVersion chunkId|factId"
        " indexRevision embeddingProfileVersion trustTier score)"
    ),
    legs=_rows("Only those not ok: leg collection state reason"),
    degraded={"type": "boolean"},
    confidence={"type": "number"},
    lowSupport={"type": "boolean"},
    scope=_OBJECT,
    notice=_TEXT,
)
UPSERT: Final = _object(
    "counts",
    counts={**_OBJECT, "description": "added closed unchanged refused redacted"},
    facts=_rows("index factId state"),
    closed=_rows("factId reason"),
    refused=_rows("index reason"),
)
RECALL: Final = _object(
    "facts entities notice",
    skipped=_NULLABLE,
    **_MODE,
    entities=_ENTITIES,
    facts=_FACTS,
    truncated=_COUNT,
    notice=_TEXT,
)
NODES: Final = _object(
    "entities notice",
    skipped=_NULLABLE,
    **_MODE,
    entities=_ENTITIES,
    notice=_TEXT,
)
SUBGRAPH: Final = _object(
    "facts entities notice",
    entities=_rows("name type distance"),
    facts=_FACTS,
    truncated=_COUNT,
    notice=_TEXT,
)
OFFLOAD: Final = _object("jobId state", jobId=_TEXT, state=_TEXT, extractor=_TEXT)
STATUS: Final = _object(
    "state",
    state={"enum": ["queued", "running", "done", "failed"]},
    facts={**_OBJECT, "description": "Counts."},
    reason=_NULLABLE,
)
