"""The operations of the graph, as the OpenAPI document shows them."""

from __future__ import annotations

from typing import Any

from knowledge.model.scope import ADMIN, WRITE
from retrieval_api.graph_examples import (
    DECISION,
    EXPANSION,
    FACT_HISTORY,
    FACT_ID,
    FACT_PAGE,
    FACT_PATHS,
    FACT_QUERY,
    FACTS,
    HISTORY_OF,
    PATHS_BETWEEN,
    SUBGRAPH,
    SUGGESTION_PAGE,
    WRITTEN,
)
from retrieval_api.operation import BASE, operation

_READ_STATUSES = (401, 403, 404, 422, 503, 504)
_WRITE_STATUSES = (401, 403, 404, 409, 422, 503)


def graph_paths() -> dict[str, Any]:
    return {**_question_paths(), **_fact_paths(), **_suggestion_paths()}


def _question_paths() -> dict[str, Any]:
    return {
        f"{BASE}/graph/query": {
            "post": operation(
                "Graph",
                "queryGraph",
                "Facts by subject, predicate, object, time and trust",
                "Newest begin of validity first, in pages that are all answered as of the same time."
                " asOf and between ask when a fact holds, asKnownAt what was believed then.",
                body=("FactQueryBody", FACT_QUERY),
                answer=("FactPage", FACT_PAGE),
                statuses=_READ_STATUSES,
            )
        },
        f"{BASE}/graph/expand": {
            "post": operation(
                "Graph",
                "expandGraph",
                "What is around some entities",
                "Up to three hops. Nothing is reached through a fact that the caller may not read.",
                body=("ExpansionBody", EXPANSION),
                answer=("Subgraph", SUBGRAPH),
                statuses=_READ_STATUSES,
            )
        },
        f"{BASE}/graph/paths": {
            "post": operation(
                "Graph",
                "findPaths",
                "The shortest paths between two entities",
                "Over facts that hold at the same time; all of the shortest length, up to the limit.",
                body=("PathsBody", PATHS_BETWEEN),
                answer=("FactPaths", FACT_PATHS),
                statuses=_READ_STATUSES,
            )
        },
        f"{BASE}/graph/history": {
            "post": operation(
                "Graph",
                "readHistory",
                "Everything that was told of an entity",
                "Oldest validity first, with what is believed no longer and why.",
                body=("HistoryBody", HISTORY_OF),
                answer=("FactHistory", FACT_HISTORY),
                statuses=_READ_STATUSES,
            )
        },
    }


def _fact_paths() -> dict[str, Any]:
    return {
        f"{BASE}/graph/facts": {
            "post": operation(
                "Graph",
                "assertFacts",
                "Tell, correct and retract facts",
                "Up to 5,000 in 8,000,000 bytes, all or nothing. The same facts again change nothing;"
                " the same Idempotency-Key again, within 24 hours, answers as the first time.",
                body=("FactsBody", FACTS),
                answer=("WrittenFacts", WRITTEN),
                header=("Idempotency-Key",),
                statuses=_WRITE_STATUSES,
                scope=WRITE,
            )
        },
    }


def _suggestion_paths() -> dict[str, Any]:
    return {
        f"{BASE}/graph/suggestions": {
            "get": operation(
                "Graph",
                "listSuggestions",
                "Inferred facts that nobody has confirmed or rejected",
                "Whatever the time they hold at; newest begin of validity first.",
                answer=("FactPage", SUGGESTION_PAGE),
                query=("projectId", "limit", "cursor"),
                required=("projectId",),
                statuses=_READ_STATUSES,
            )
        },
        f"{BASE}/graph/suggestions/{{suggestionId}}/confirm": {
            "post": _decision(
                "confirmSuggestion",
                "Serve an inferred fact like any other",
                "It stays labelled as inferred. Again changes nothing; one that was rejected or"
                " withdrawn is a conflict.",
                "confirmed",
            )
        },
        f"{BASE}/graph/suggestions/{{suggestionId}}/reject": {
            "post": _decision(
                "rejectSuggestion",
                "Never suggest this again",
                "What rests on it is withdrawn. Again changes nothing; one that was confirmed or"
                " withdrawn is a conflict.",
                "rejected",
            )
        },
    }


def _decision(operation_id: str, summary: str, description: str, decision: str) -> dict[str, Any]:
    return operation(
        "Graph",
        operation_id,
        summary,
        description,
        body=("DecisionBody", DECISION),
        answer=("DecidedSuggestion", {"factId": FACT_ID, "suggestion": decision}),
        path=("suggestionId",),
        statuses=_WRITE_STATUSES,
        scope=ADMIN,
    )
