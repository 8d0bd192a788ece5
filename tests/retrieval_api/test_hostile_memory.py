"""Bodies that would hold up everybody else, and what is no text, by every door of a memory."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from starlette.exceptions import HTTPException

from knowledge.model.scope import READ, WRITE
from retrieval_api.bodies import MAX_VALUES, parse_json
from tests.retrieval_api.conftest import CallerFactory
from tests.retrieval_api.memory import MEMORY, tell, try_call
from tests.retrieval_api.service import BASE, Caller, assert_problem, http

MANY = MAX_VALUES + 1


@pytest.fixture
def agent(caller_factory: CallerFactory, tenant: str) -> Caller:
    return caller_factory(tenant, scopes=(READ, WRITE))


def _mcp(agent: Caller, raw: bytes) -> httpx.Response:
    headers = {**agent.headers, "Content-Type": "application/json"}
    headers["Accept"] = "application/json, text/event-stream"
    return http().post(f"{agent.url}/mcp", headers=headers, content=raw)


def _tool(name: str, arguments: bytes) -> bytes:
    params = b'{"name":"%s","arguments":%s}' % (name.encode(), arguments)
    return b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s}' % params


@pytest.mark.parametrize("value", [b"[]", b"{}", b"1", b"1.5", b'""', b'"\\"["', b'{"a":1}'])
def test_a_body_of_very_many_values_is_refused_unread(value: bytes) -> None:
    with pytest.raises(HTTPException, match=f"more than {MAX_VALUES:,} values") as refused:
        parse_json(b"[" + value + (b"," + value) * MANY + b"no json")
    assert refused.value.status_code == 400


@pytest.mark.parametrize("text", ["[{,", '"[],', "\\[]{},", '\\"[],', "\u2222[],"])
def test_what_stands_in_a_text_is_no_value(text: str) -> None:
    body = {"turns": [text * MANY, text], "more": [text] * 100}
    assert parse_json(json.dumps(body).encode()) == body
    assert parse_json(json.dumps(body, ensure_ascii=False, indent=1).encode()) == body


def test_as_many_facts_as_are_allowed_are_read_with_all_their_fields() -> None:
    fact = {f"field {number}": "x" for number in range(22)} | {"acl": ["group:a"] * 8}
    body = {"projectId": "p1", "facts": [fact] * 5_000}
    assert parse_json(json.dumps(body).encode()) == body


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_json_in_another_encoding_is_refused(encoding: str) -> None:
    with pytest.raises(HTTPException, match="not valid JSON"):
        parse_json('{"query": "lease"}'.encode(encoding))
    assert parse_json(b'\xef\xbb\xbf{"query": "lease"}') == {"query": "lease"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{MEMORY}/recall", b'{"query":[%s]}'),
        (f"{MEMORY}/upsert", b'{"client":"c","sessionId":"s","triples":[%s]}'),
        (f"{MEMORY}/offload", b'{"client":"c","sessionId":"s","turns":[%s]}'),
        (f"{BASE}/graph/facts", b'{"projectId":"p1","facts":[%s]}'),
    ],
)
def test_empty_lists_by_the_hundred_thousand_are_refused(
    agent: Caller, path: str, body: bytes
) -> None:
    lists = b"[]" + b",[]" * (MAX_VALUES // 2)
    assert_problem(agent.post_raw(path, body % lists), 400, "values")
    assert tell(agent, ("a", "USES", "b"))["counts"]["added"] == 1


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (b'{"triples":[%s]}' % b",".join([b"[]"] * MAX_VALUES), "values"),
        (b'{"triples":[{"subject":"a","predicate":"P","object":"b","confidence":NaN}]}', "NaN"),
        (b'{"triples":[{"subject":"a","predicate":"P","object":"b","confidence":1e999}]}', "large"),
        (b'{"query":"a","shared":false,"sessionId":"s","shared":true}', "same key twice"),
    ],
)
def test_what_http_refuses_is_refused_over_mcp(
    agent: Caller, arguments: bytes, reason: str
) -> None:
    response = _mcp(agent, _tool("recall_context", arguments))
    assert response.status_code == 400
    answer = response.json()
    assert (answer["jsonrpc"], answer["id"], answer["error"]["code"]) == ("2.0", None, -32700)
    assert reason in answer["error"]["message"]
    assert "\n" not in answer["error"]["message"]


def test_a_long_text_is_told_over_mcp(agent: Caller) -> None:
    turns = [{"role": "user", "content": "x[1], y{2}, " * 30_000}]
    arguments = {"turns": turns, "client": "c", "sessionId": "s"}
    response = _mcp(agent, _tool("offload_turns", json.dumps(arguments).encode()))
    assert response.status_code == 200, response.text
    assert not response.json()["result"].get("isError"), response.text


@pytest.mark.parametrize("operation", ["recall", "search"])
@pytest.mark.parametrize("query", ["\ud800", "who owns a\udfffb", "\ude00\ud83d"])
def test_half_a_character_is_no_query(agent: Caller, operation: str, query: str) -> None:
    assert_problem(try_call(agent, operation, query=query), 422, "query", "surrogate")


def test_a_character_that_json_writes_in_halves_is_one(agent: Caller) -> None:
    response: Any = agent.post_raw(f"{MEMORY}/recall", rb'{"query": "who owns \ud83d\ude00"}')
    assert response.status_code == 200, response.text
