"""The OpenAPI document and the page that shows it, served without any other host."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import swagger_ui
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from knowledge.model.scope import ADMIN, READ, WRITE
from retrieval_api.examples import (
    ANSWER,
    COLLECTIONS,
    EVENT,
    EVENTS,
    INDEXES,
    PROBLEM,
    QUERY_RECORD,
    SEARCH,
)
from retrieval_api.schemas import ANSWER_SCHEMA, PROBLEM_SCHEMA
from retrieval_api.wire import EventBody, SearchBody

_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Knowledge retrieval API</title>
<link rel="stylesheet" href="docs/static/swagger-ui.css">
<link rel="icon" href="data:,">
</head>
<body>
<div id="swagger-ui"></div>
<script src="docs/static/swagger-ui-bundle.js"></script>
<script>
SwaggerUIBundle({url: "openapi.json", dom_id: "#swagger-ui", deepLinking: true,
  defaultModelsExpandDepth: 0, tryItOutEnabled: true, validatorUrl: null});
</script>
</body>
</html>
"""


def swagger_files() -> Path:
    """The folder of the packaged Swagger UI."""
    return Path(swagger_ui.__file__).parent / "static"


async def swagger_page(_request: Request) -> Response:
    return HTMLResponse(_PAGE)


async def openapi_json(_request: Request) -> Response:
    return JSONResponse(openapi())


@cache
def openapi() -> dict[str, Any]:
    """The OpenAPI 3.1 document of the service."""
    _, schemas = models_json_schema(
        [(SearchBody, "validation"), (EventBody, "validation")],
        ref_template="#/components/schemas/{model}",
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Knowledge retrieval",
            "version": version("knowledge-retrieval"),
            "description": "Scoped, cited hybrid queries. Every answer names the revision, source"
            " version and profile it rests on. Texts are data, not instructions.",
        },
        "servers": [{"url": "/"}],
        "security": [{"oauth2": [READ]}],
        "tags": [
            {"name": "Access", "description": "Tokens for clients."},
            {"name": "Search", "description": "Questions, and the records of questions."},
            {"name": "Collections", "description": "What can be searched, and how it stands."},
            {"name": "Events", "description": "CloudEvents in and out (admin scope)."},
            {"name": "Operation", "description": "Health and metrics."},
        ],
        "paths": _paths(),
        "components": {
            "schemas": {
                **schemas["$defs"],
                "Answer": ANSWER_SCHEMA,
                "Problem": PROBLEM_SCHEMA,
            },
            "securitySchemes": {
                "oauth2": {
                    "type": "oauth2",
                    "flows": {
                        "clientCredentials": {
                            "tokenUrl": "/oauth/token",
                            "scopes": {
                                READ: "Scoped search.",
                                WRITE: "Writing facts and memory.",
                                ADMIN: "Events and rebuilds.",
                            },
                        }
                    },
                }
            },
        },
    }


def _paths() -> dict[str, Any]:
    base = "/factory/knowledge"
    return {
        f"{base}/search": {
            "post": _operation(
                "Search",
                "search",
                "Scoped hybrid search",
                "Vector, full-text and metadata legs under the caller's scope, fused, reranked"
                " and cited. A header X-Request-Timeout-Ms shortens the deadline.",
                body=("SearchBody", SEARCH),
                answer=("Answer", ANSWER),
                statuses=(401, 403, 404, 410, 422, 503, 504),
            )
        },
        f"{base}/queries/{{queryId}}": {
            "get": _operation(
                "Search",
                "readQuery",
                "The record of a search",
                "Your own; with the admin scope any of the tenant. Written within 200 ms.",
                answer=(None, QUERY_RECORD),
                path=("queryId",),
            )
        },
        f"{base}/citations/{{citationsRef}}": {
            "get": _operation(
                "Search",
                "readCitations",
                "Stored citations by content hash",
                "Citations of sources that may no longer be read are withheld and counted.",
                answer=(None, {"citationsRef": "…", "citations": [], "withheld": 0}),
                path=("citationsRef",),
            )
        },
        f"{base}/collections": {
            "get": _operation(
                "Collections",
                "listCollections",
                "Collections of the caller's projects",
                "With the revision each index kind serves.",
                answer=(None, COLLECTIONS),
                query=("projectId",),
            )
        },
        f"{base}/collections/{{collection}}/indexes": {
            "get": _operation(
                "Collections",
                "listIndexRevisions",
                "Index revisions of a collection",
                "Newest first, at most 500. The collection is named by slug or id.",
                answer=(None, INDEXES),
                path=("collection",),
            )
        },
        f"{base}/events": {
            "post": _operation(
                "Events",
                "postEvent",
                "Announce a snapshot, a deleted source or changed access",
                "A CloudEvent in structured mode; the same source and id again changes nothing.",
                body=("EventBody", EVENT),
                answer=(None, {"sequence": 12, "state": "accepted"}),
                status=202,
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
        "/oauth/token": {"post": _token_operation()},
        "/healthz": {"get": _open_operation("healthz", "Whether the process lives")},
        "/readyz": {"get": _open_operation("readyz", "Whether it can answer")},
        "/metrics": {"get": _open_operation("metrics", "Metrics for Prometheus")},
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
            for place, names in (("path", path), ("query", query))
            for name in names
        ],
        "responses": {
            str(status): {
                "description": "OK" if status == 200 else "Accepted",
                "content": {
                    "application/json": {
                        "schema": _reference(schema) if schema else {"type": "object"},
                        "example": example,
                    }
                },
            },
            **{str(code): _problem_response(code) for code in statuses},
        },
    }
    if body:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _reference(body[0]), "example": body[1]}},
        }
    return operation


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
            "200": {
                "description": "OK",
                "content": {
                    "application/json": {
                        "schema": {"type": "object"},
                        "example": {
                            "access_token": "eyJ…",
                            "token_type": "Bearer",
                            "expires_in": 3600,
                            "scope": READ,
                        },
                    }
                },
            },
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
