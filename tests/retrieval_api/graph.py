"""Facts told and asked for over HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from knowledge.model.scope import ADMIN, READ, WRITE
from tests.retrieval_api.service import BASE, Caller

GRAPH = f"{BASE}/graph"
WRITER = (READ, WRITE)
EVERYTHING = (READ, WRITE, ADMIN)


def try_tell(
    caller: Caller, *facts: Any, retract: Sequence[str] = (), key: str | None = None, **fields: Any
) -> httpx.Response:
    body = {
        "projectId": caller.project_id,
        "facts": list(facts),
        "retractions": [{"factId": fact_id} for fact_id in retract],
        **fields,
    }
    headers = {} if key is None else {"Idempotency_Key": key}
    return caller.post(f"{GRAPH}/facts", body, **headers)


def tell(caller: Caller, *facts: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    response = try_tell(caller, *facts, **options)
    assert response.status_code == httpx.codes.OK, response.text
    written: dict[str, Any] = response.json()
    return written


def tell_one(caller: Caller, fact: Mapping[str, Any]) -> str:
    """Returns the fact's id."""
    (fact_id,) = tell(caller, fact)["factIds"]
    return str(fact_id)


def try_ask(caller: Caller, operation: str, **fields: Any) -> httpx.Response:
    """``operation`` is query, expand, paths or history; ``from_`` stands for the field ``from``."""
    named = {name.rstrip("_"): value for name, value in fields.items()}
    return caller.post(f"{GRAPH}/{operation}", {"projectId": caller.project_id, **named})


def ask(caller: Caller, operation: str, **fields: Any) -> dict[str, Any]:
    response = try_ask(caller, operation, **fields)
    assert response.status_code == httpx.codes.OK, response.text
    answer: dict[str, Any] = response.json()
    return answer


def facts(caller: Caller, **fields: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ask(caller, "query", **fields)["facts"]
    return found


def objects(caller: Caller, **fields: Any) -> list[str]:
    return sorted(found["object"] for found in facts(caller, **fields))


def suggestions(caller: Caller, **fields: Any) -> list[dict[str, Any]]:
    asked = {"projectId": caller.project_id, **fields}
    response = caller.get(f"{GRAPH}/suggestions", params=asked)
    assert response.status_code == httpx.codes.OK, response.text
    found: list[dict[str, Any]] = response.json()["facts"]
    return found


def decide(caller: Caller, suggestion: str, decision: str) -> httpx.Response:
    """``decision`` is confirm or reject."""
    path = f"{GRAPH}/suggestions/{suggestion}/{decision}"
    return caller.post(path, {"projectId": caller.project_id})
