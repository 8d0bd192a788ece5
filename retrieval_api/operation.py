"""One operation of the OpenAPI document, from its parts."""

from __future__ import annotations

from typing import Any, Final

from knowledge.model.scope import READ
from retrieval_api.examples import PROBLEM

BASE: Final = "/factory/knowledge"


def operation(
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
    required: tuple[str, ...] = (),
    body_required: bool = True,
    status: int = 200,
    statuses: tuple[int, ...] = (401, 403, 404, 422, 503),
    scope: str = READ,
) -> dict[str, Any]:
    schema, example = answer
    made: dict[str, Any] = {
        "tags": [tag],
        "operationId": operation_id,
        "summary": summary,
        "description": description,
        "security": [{"oauth2": [scope]}],
        "parameters": [
            {
                "name": name,
                "in": place,
                "required": place == "path" or name in required,
                "schema": {"type": "string"},
            }
            for place, names in (("path", path), ("query", query), ("header", header))
            for name in names
        ],
        "responses": {
            str(status): json_response(
                "OK" if status == 200 else "Accepted",
                reference(schema) if schema else {"type": "object"},
                example,
            ),
            **{str(code): _problem_response(code) for code in statuses},
        },
    }
    if body:
        content = {"schema": reference(body[0]), "example": body[1]}
        made["requestBody"] = {
            "required": body_required,
            "content": {"application/json": content},
        }
        made["responses"] |= {str(code): _problem_response(code) for code in (400, 413)}
    return made


def json_response(description: str, schema: dict[str, Any], example: Any) -> dict[str, Any]:
    content = {"schema": schema, "example": example}
    return {"description": description, "content": {"application/json": content}}


def _problem_response(status: int) -> dict[str, Any]:
    return {
        "description": PROBLEM[status]["title"],
        "content": {
            "application/problem+json": {
                "schema": reference("Problem"),
                "example": PROBLEM[status],
            }
        },
    }


def reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}
