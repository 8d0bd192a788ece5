"""Errors as problem+json (RFC 9457): one table from the error tree to a status."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from knowledge import errors

logger = logging.getLogger(__name__)

STATUS: Final[Mapping[type[Exception], tuple[int, str]]] = {
    errors.Unauthenticated: (401, "unauthenticated"),
    errors.Forbidden: (403, "forbidden"),
    errors.NotFound: (404, "not-found"),
    errors.Conflict: (409, "conflict"),
    errors.RevisionCollected: (410, "revision-collected"),
    errors.InvalidInput: (422, "invalid-input"),
    errors.QueueFull: (429, "queue-full"),
    errors.Unavailable: (503, "unavailable"),
    TimeoutError: (504, "timed-out"),
}
TITLES: Final = {
    400: "Bad request",
    401: "Unauthenticated",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    410: "Gone",
    413: "Content too large",
    415: "Unsupported media type",
    422: "Invalid input",
    429: "Too many requests",
    500: "Internal error",
    503: "Unavailable",
    504: "Timed out",
}


def problem(
    status: int,
    kind: str,
    detail: str,
    *,
    errors_: list[dict[str, str]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    body: dict[str, Any] = {
        "type": f"urn:knowledge:problem:{kind}",
        "title": TITLES.get(status, "Error"),
        "status": status,
        "detail": detail,
    }
    if errors_:
        body["errors"] = errors_
    return JSONResponse(
        body, status, headers=dict(headers or {}), media_type="application/problem+json"
    )


async def on_error(request: Request, error: Exception) -> Response:
    """The nearest entry of `STATUS` up the error's class tree."""
    for kind in type(error).__mro__:
        if kind in STATUS:
            status, name = STATUS[kind]
            detail = getattr(error, "message", None) or "no answer within the request's deadline"
            headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
            if isinstance(error, errors.QueueFull):
                headers["Retry-After"] = str(error.facts["retry_after_s"])
            return problem(status, name, detail, headers=headers)
    return await on_unexpected(request, error)


async def on_invalid_body(_request: Request, error: Exception) -> Response:
    """What pydantic found, field by field: never the values, which may be secrets or large."""
    assert isinstance(error, ValidationError)
    found = [
        {
            "field": ".".join(str(part) for part in item["loc"]) or "body",
            "message": _words(item["msg"]),
        }
        for item in error.errors(include_url=False, include_input=False, include_context=False)[:20]
    ]
    first = found[0]
    return problem(422, "invalid-input", f"{first['field']}: {first['message']}", errors_=found)


def _words(message: str) -> str:
    """As the rule was written, without what pydantic says of its kind."""
    return message.removeprefix("Value error, ")


async def on_http(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem(error.status_code, "http", error.detail or "error", headers=error.headers)


async def on_too_deep(_request: Request, _error: Exception) -> Response:
    """Only a caller's JSON nests: in a body, or in the parts of a token."""
    return problem(400, "http", "the request is nested too deeply")


async def on_unexpected(_request: Request, error: Exception) -> Response:
    logger.error("unexpected error", exc_info=error)
    return problem(500, "internal", "something went wrong here; it has been logged")


HANDLERS: Final[Mapping[Any, Any]] = {
    ValidationError: on_invalid_body,
    HTTPException: on_http,
    errors.KnowledgeError: on_error,
    TimeoutError: on_error,
    RecursionError: on_too_deep,
    Exception: on_unexpected,
}
