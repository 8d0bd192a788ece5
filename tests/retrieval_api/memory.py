"""Agent memory as a client tells and asks it over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx

from knowledge.stack.process import wait_until
from tests.retrieval_api.service import BASE, Caller

MEMORY = f"{BASE}/memory"

Triple = tuple[str, str, str]


def try_call(
    caller: Caller, operation: str, *, key: str | None = None, **body: Any
) -> httpx.Response:
    headers = {} if key is None else {"Idempotency_Key": key}
    return caller.post(f"{MEMORY}/{operation}", body, **headers)


def call(caller: Caller, operation: str, **body: Any) -> dict[str, Any]:
    response = try_call(caller, operation, **body)
    assert response.status_code == httpx.codes.OK, response.text
    answer: dict[str, Any] = response.json()
    return answer


def triples(*told: Triple) -> list[dict[str, Any]]:
    return [{"subject": s, "predicate": p, "object": o} for s, p, o in told]


def tell(caller: Caller, *told: Triple, **more: Any) -> dict[str, Any]:
    body = {"client": "tests", "sessionId": "s1", "triples": triples(*told), **more}
    return call(caller, "upsert", **body)


def said(answer: dict[str, Any]) -> set[Triple]:
    return {(f["subject"], f["predicate"], f["object"]) for f in answer["facts"]}


def names(answer: dict[str, Any]) -> list[str]:
    return [entity["name"] for entity in answer["entities"]]


def ids(written: dict[str, Any]) -> list[str]:
    return [fact["factId"] for fact in written["facts"]]


def recall(caller: Caller, query: str, **more: Any) -> set[Triple]:
    return said(call(caller, "recall", query=query, **more))


def wait_for_vectors(caller: Caller, **more: Any) -> None:
    """Until the names that were told before are found by meaning too."""
    tell(caller, ("a lorry", "OWNED_BY", "nobody at all"), **more)

    def is_found() -> bool:
        return "a lorry" in names(call(caller, "search", query="truck", **more))

    assert wait_until(is_found, 20)


def refusals(written: dict[str, Any]) -> Sequence[str]:
    return [refused["reason"] for refused in written["refused"]]
