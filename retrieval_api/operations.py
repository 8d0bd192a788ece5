"""The operations of the OpenAPI document, one table a tag."""

from __future__ import annotations

from typing import Any, Final

from knowledge.model.scope import ADMIN, READ
from retrieval_api.examples import (
    ANSWER,
    COLLECTIONS,
    EVENT,
    EVENTS,
    INDEXES,
    PROBLEM,
    QUERY_RECORD,
    REBUILD,
    SEARCH,
    TOKEN,
)

BASE: Final = "/factory/knowledge"


def paths() -> dict[str, Any]:
    """The paths object: every route of the service but those that serve the document itself."""
    return {
        **_search_paths(),
        **_collection_paths(),
        **_rebuild_paths(),
        **_event_paths(),
        "/oauth/token": {"post": _token_operation()},
        "/healthz": {"get": _open_operation("healthz", "Whether the process lives")},
        "/readyz": {"get": _open_operation("readyz", "Whether it can answer")},
        "/metrics": {"get": _open_operation("metrics", "Metrics for Prometheus")},
    }


def _search_paths() -> dict[str, Any]:
    return {
        f"{BASE}/search": {
            "post": _operation(
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
            "get": _operation(
                "Search",
                "readQuery",
                "The record of a search",
                "Your own; with the admin scope any of the tenant. Written within 200 ms.",
                answer=(None, QUERY_RECORD),
                path=("queryId",),
            )
        },
        f"{BASE}/citations/{{citationsRef}}": {
            "get": _operation(
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
            "get": _operation(
                "Collections",
                "listCollections",
                "Collections of the caller's projects",
                "With the revision each index kind serves.",
                answer=(None, COLLECTIONS),
                query=("projectId",),
            )
        },
        f"{BASE}/collections/{{collection}}/indexes": {
            "get": _operation(
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
            "post": _operation(
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
            "get": _operation(
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
            "post": _operation(
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
            "post": _operation(
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
            "get": _operation(
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


def _operation(
    tag: str,
    operation_id: str,
    summary: str,
    description: str,
    *,
    answer: tuple[str | None, Any],
    body: tuple[str, Any] | None = None,
    path: tuple[str, ...] = (),
    query: tuple[str, ...] = (),
    header: tuple[str, ...] = (),
    body_required: bool = True,
    status: int = 200,
    statuses: tuple[int, ...] = (401, 403, 404, 422, 503),
    scope: str = READ,
) -> dict[str, Any]:
    schema, example = answer
    operation: dict[str, Any] = {
        "tags": [tag],
        "operationId": operation_id,
        "summary": summary,
        "description": description,
        "security": [{"oauth2": [scope]}],
        "parameters": [
            {"name": name, "in": place, "required": place == "path", "schema": {"type": "string"}}
            for place, names in (("path", path), ("query", query), ("header", header))
            for name in names
        ],
        "responses": {
            str(status): _json_response(
                "OK" if status == 200 else "Accepted",
                _reference(schema) if schema else {"type": "object"},
                example,
            ),
            **{str(code): _problem_response(code) for code in statuses},
        },
    }
    if body:
        content = {"schema": _reference(body[0]), "example": body[1]}
        operation["requestBody"] = {
            "required": body_required,
            "content": {"application/json": content},
        }
        operation["responses"] |= {str(code): _problem_response(code) for code in (400, 413)}
    return operation


def _json_response(description: str, schema: dict[str, Any], example: Any) -> dict[str, Any]:
    content = {"schema": schema, "example": example}
    return {"description": description, "content": {"application/json": content}}


def _problem_response(status: int) -> dict[str, Any]:
    return {
        "description": PROBLEM[status]["title"],
        "content": {
            "application/problem+json": {
                "schema": _reference("Problem"),
                "example": PROBLEM[status],
            }
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
            "200": _json_response("OK", {"type": "object"}, TOKEN),
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


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}
