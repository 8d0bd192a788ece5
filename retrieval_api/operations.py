"""The operations of the OpenAPI document, one table a tag."""

from __future__ import annotations

from typing import Any

from knowledge.model.scope import ADMIN
from retrieval_api.examples import (
    ANSWER,
    COLLECTIONS,
    EVENT,
    EVENTS,
    INDEXES,
    QUERY_RECORD,
    REBUILD,
    SEARCH,
    TOKEN,
)
from retrieval_api.graph_operations import graph_paths
from retrieval_api.memory_operations import memory_paths
from retrieval_api.operation import BASE, json_response, operation


def paths() -> dict[str, Any]:
    """The paths object: every route of the service but those that serve the document itself."""
    return {
        **_search_paths(),
        **_collection_paths(),
        **_rebuild_paths(),
        **graph_paths(),
        **memory_paths(),
        **_event_paths(),
        "/oauth/token": {"post": _token_operation()},
        "/healthz": {"get": _open_operation("healthz", "Whether the process lives")},
        "/readyz": {"get": _open_operation("readyz", "Whether it can answer")},
        "/metrics": {"get": _open_operation("metrics", "Metrics for Prometheus")},
    }


def _search_paths() -> dict[str, Any]:
    return {
        f"{BASE}/search": {
            "post": operation(
                "Search",
                "search",
                "Scoped hybrid search",
                "Vector, full-text and metadata legs under the caller's scope, fused, reranked"
                " and cited. A header X-Request-Timeout-Ms shortens the deadline. explainChunk names a"
                " chunk by its chunkId: explainedChunk says where it stands or why it is not found;"
                " one that the caller may not read is not_found, like one that does not exist.",
                body=("SearchBody", SEARCH),
                answer=("Answer", ANSWER),
                statuses=(401, 403, 404, 410, 422, 503, 504),
            )
        },
        f"{BASE}/queries/{{queryId}}": {
            "get": operation(
                "Search",
                "readQuery",
                "The record of a search",
                "Your own; with the admin scope any of the tenant. Written within 200 ms.",
                answer=(None, QUERY_RECORD),
                path=("queryId",),
            )
        },
        f"{BASE}/citations/{{citationsRef}}": {
            "get": operation(
                "Search",
                "readCitations",
                "Stored citations by content hash",
                "Citations of sources that may no longer be read are withheld and counted.",
                answer=(None, {"citationsRef": "…", "citations": [], "withheld": 0}),
                path=("citationsRef",),
            )
        },
    }


def _collection_paths() -> dict[str, Any]:
    return {
        f"{BASE}/collections": {
            "get": operation(
                "Collections",
                "listCollections",
                "Collections of the caller's projects",
                "With the revision each index kind serves.",
                answer=(None, COLLECTIONS),
                query=("projectId",),
            )
        },
        f"{BASE}/collections/{{collection}}/indexes": {
            "get": operation(
                "Collections",
                "listIndexRevisions",
                "Index revisions of a collection",
                "Newest first, at most 500. The collection is named by slug or id.",
                answer=(None, INDEXES),
                path=("collection",),
            )
        },
    }


def _rebuild_paths() -> dict[str, Any]:
    return {
        f"{BASE}/collections/{{collection}}/indexes/rebuild": {
            "post": operation(
                "Rebuilds",
                "rebuildIndexes",
                "Build a collection's vector and full-text index anew",
                "With the pinned embedding profile, or the one named (null: no model). The old index"
                " serves until queries switch. The same Idempotency-Key again answers with the"
                " first rebuild; one to another profile that is at work is a conflict.",
                body=("RebuildBody", {"embeddingProfileVersion": "minilm@1"}),
                body_required=False,
                answer=("Rebuild", REBUILD),
                path=("collection",),
                header=("Idempotency-Key",),
                status=202,
                statuses=(401, 403, 404, 409, 422, 503),
                scope=ADMIN,
            )
        },
        f"{BASE}/rebuilds/{{rebuildId}}": {
            "get": operation(
                "Rebuilds",
                "readRebuild",
                "A rebuild as it stands",
                "Requested, building, switched (with the revision that serves), failed or cancelled.",
                answer=("Rebuild", REBUILD),
                path=("rebuildId",),
                scope=ADMIN,
            )
        },
        f"{BASE}/rebuilds/{{rebuildId}}/cancel": {
            "post": operation(
                "Rebuilds",
                "cancelRebuild",
                "Cancel a rebuild",
                "What served goes on serving, with its profile. One that has ended is a conflict.",
                answer=("Rebuild", {**REBUILD, "state": "cancelled"}),
                path=("rebuildId",),
                statuses=(401, 403, 404, 409, 503),
                scope=ADMIN,
            )
        },
    }


def _event_paths() -> dict[str, Any]:
    return {
        f"{BASE}/events": {
            "post": operation(
                "Events",
                "postEvent",
                "Announce a snapshot, a deleted source or changed access",
                "A CloudEvent in structured mode; the same source and id again changes nothing.",
                body=("EventBody", EVENT),
                answer=(None, {"sequence": 12, "state": "accepted"}),
                status=202,
                statuses=(401, 403, 404, 409, 422, 503),
                scope=ADMIN,
            ),
            "get": operation(
                "Events",
                "listEvents",
                "Events of the tenant",
                "Those after a sequence number, oldest first, at most 500.",
                answer=(None, EVENTS),
                query=("after",),
                scope=ADMIN,
            ),
        },
    }


def _token_operation() -> dict[str, Any]:
    return {
        "tags": ["Access"],
        "operationId": "issueToken",
        "summary": "An access token for client credentials",
        "description": "OAuth 2.0, RFC 6749 section 4.4; credentials by HTTP basic or in the form.",
        "security": [],
        "requestBody": {
            "required": True,
            "content": {
                "application/x-www-form-urlencoded": {
                    "schema": {
                        "type": "object",
                        "required": ["grant_type"],
                        "properties": {
                            "grant_type": {"const": "client_credentials"},
                            "client_id": {"type": "string"},
                            "client_secret": {"type": "string"},
                            "scope": {"type": "string"},
                        },
                    }
                }
            },
        },
        "responses": {
            "200": json_response("OK", {"type": "object"}, TOKEN),
            "400": {"description": "The grant type or scope is not valid"},
            "401": {"description": "Unknown client or wrong secret"},
        },
    }


def _open_operation(operation_id: str, summary: str) -> dict[str, Any]:
    return {
        "tags": ["Operation"],
        "operationId": operation_id,
        "summary": summary,
        "security": [],
        "responses": {"200": {"description": "OK"}},
    }
