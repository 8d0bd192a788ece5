"""Examples of the graph's operations; a test validates them against their schemas."""

from __future__ import annotations

from typing import Any, Final

from knowledge.graph.wire import NOTICE
from retrieval_api.examples import ANSWER

FACT_ID: Final = "0e6f1a52-9c3a-5d69-9669-0800200c9a66"

FACT_QUERY: Final[dict[str, Any]] = {
    "projectId": "p1",
    "domains": ["architecture"],
    "subject": "billing",
    "predicate": "OWNED_BY",
    "asOf": "2025-06",
    "minTrust": "SourceFact",
}
EXPANSION: Final[dict[str, Any]] = {
    "projectId": "p1",
    "entities": ["billing"],
    "hops": 2,
    "direction": "out",
    "predicates": ["DEPENDS_ON", "OWNED_BY"],
}
PATHS_BETWEEN: Final[dict[str, Any]] = {"projectId": "p1", "from": "billing", "to": "Ada Lovelace"}
HISTORY_OF: Final[dict[str, Any]] = {"projectId": "p1", "entity": "billing"}
DECISION: Final[dict[str, Any]] = {"projectId": "p1"}
FACTS: Final[dict[str, Any]] = {
    "projectId": "p1",
    "facts": [
        {
            "subject": "billing",
            "subjectType": "service",
            "predicate": "OWNED_BY",
            "object": "team-payments",
            "domain": "architecture",
            "validFrom": "2025-03",
            "sourceId": "catalogue",
            "sourceVersion": "a1b2c3d",
        }
    ],
    "retractions": [{"factId": "7c1d6f0e-52a6-5d8e-9d55-0a3a1f6f2c11"}],
}
GRAPH_FACT: Final[dict[str, Any]] = {
    "factId": FACT_ID,
    "tenantId": "acme",
    "projectId": "p1",
    "namespace": "default",
    "domain": "architecture",
    "subject": "billing",
    "subjectType": "service",
    "predicate": "OWNED_BY",
    "object": "team-payments",
    "objectType": None,
    "validFrom": "2025-03-01T00:00:00Z",
    "validFromPrecision": "month",
    "validTo": None,
    "validToPrecision": None,
    "statedTo": None,
    "supersededBy": None,
    "contradicts": [],
    "observedAt": "2025-03-02T08:00:00Z",
    "recordedAt": "2025-03-02T08:00:00Z",
    "closedAt": None,
    "closing": None,
    "closedBy": None,
    "confidence": 1.0,
    "trustTier": "SourceFact",
    "verified": False,
    "sourceId": "catalogue",
    "sourceVersion": "a1b2c3d",
    "principal": "client-1f",
    "client": None,
    "model": None,
    "sessionId": None,
    "collectionId": None,
    "chunkId": None,
    "rule": None,
    "lineage": [],
    "suggestion": None,
    "confirmedBy": None,
}
_ASKED: Final[dict[str, Any]] = {
    "scope": ANSWER["scope"],
    "asOf": "2025-06-01T00:00:00Z",
    "asKnownAt": "2026-05-01T00:00:00Z",
    "notice": NOTICE,
}
FACT_PAGE: Final[dict[str, Any]] = {
    "facts": [GRAPH_FACT],
    "nextCursor": None,
    "contradictionsTruncated": False,
    **_ASKED,
}
SUGGESTION_PAGE: Final[dict[str, Any]] = {
    **FACT_PAGE,
    "asOf": None,
    "facts": [
        {
            **GRAPH_FACT,
            "subject": "team-payments",
            "subjectType": None,
            "predicate": "OWNS",
            "object": "billing",
            "objectType": "service",
            "trustTier": "InferredFact",
            "sourceId": None,
            "sourceVersion": None,
            "principal": "inference",
            "rule": "inverse",
            "lineage": [FACT_ID],
            "suggestion": "suggested",
        }
    ],
}
SUBGRAPH: Final[dict[str, Any]] = {
    "nodes": [
        {"name": "billing", "names": ["billing"], "types": ["service"], "distance": 0},
        {"name": "team-payments", "names": ["team-payments"], "types": [], "distance": 1},
    ],
    "edges": [{"from": "billing", "to": "team-payments", "fact": GRAPH_FACT}],
    "paths": [{"node": "team-payments", "facts": [FACT_ID]}],
    "truncated": False,
    "cut": [],
    **_ASKED,
}
FACT_PATHS: Final[dict[str, Any]] = {
    "paths": [{"hops": 1, "facts": [GRAPH_FACT]}],
    "truncated": False,
    **_ASKED,
}
FACT_HISTORY: Final[dict[str, Any]] = {
    "entity": "billing",
    "facts": [GRAPH_FACT],
    "scope": ANSWER["scope"],
    "asKnownAt": "2026-05-01T00:00:00Z",
    "truncated": False,
    "notice": NOTICE,
}
WRITTEN: Final[dict[str, Any]] = {
    "factIds": [FACT_ID],
    "added": 1,
    "restated": 0,
    "outdated": 0,
    "unchanged": 0,
    "ended": 0,
    "closed": [{"factId": "7c1d6f0e-52a6-5d8e-9d55-0a3a1f6f2c11", "reason": "retracted"}],
    "suggested": 1,
    "inferenceTruncated": False,
    "violations": [],
}
