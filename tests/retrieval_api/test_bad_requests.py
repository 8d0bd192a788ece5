"""What is wrong with a request is said in one problem, whatever it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from knowledge.model.scope import ADMIN, READ
from knowledge.runtime import Runtime
from tests.publication import collection_of, publish_documents
from tests.retrieval_api.conftest import CallerFactory
from tests.retrieval_api.service import BASE, Caller, assert_problem, http

TENANT = "bad-requests"


@pytest.fixture(scope="module")
def reader(runtime: Runtime, caller_factory: CallerFactory) -> Caller:
    collection = collection_of(runtime, TENANT)
    publish_documents(runtime, collection, [{"id": "a.md", "text": "a lease is renewed"}])
    return caller_factory(TENANT, scopes=(READ, ADMIN))


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"filter": {"kind": "code"}}, "filter"),
        ({"filters": {"source": "s1"}}, "filters.source"),
        ({"filters": {"source_id": "s1"}}, "filters.source_id"),
        ({"top_k": 3}, "top_k"),
        ({"topk": 3}, "topk"),
        ({"tenantId": "another"}, "tenantId"),
    ],
)
def test_an_unknown_field_is_named_and_never_ignored(
    reader: Caller, fields: dict[str, Any], named: str
) -> None:
    body = assert_problem(reader.try_search("lease", **fields), 422, named)
    assert named in [error["field"] for error in body["errors"]]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"topK": 0}, "topK"),
        ({"topK": -1}, "topK"),
        ({"topK": 10_000}, "topK"),
        ({"topK": 10**30}, "topK"),
        ({"topK": 2.5}, "topK"),
        ({"topK": None}, "topK"),
        ({"query": ""}, "query"),
        ({"query": None}, "query"),
        ({"query": 7}, "query"),
        ({"query": " \n\t"}, "query is empty"),
        ({"query": "x" * 100_000}, "100,000 characters"),
        ({"projectId": ""}, "projectId"),
        ({"collections": ["docs"] * 17}, "collections"),
        ({"collections": "docs"}, "collections"),
        ({"legs": []}, "legs"),
        ({"legs": ["keyword"]}, "legs"),
        ({"minTrust": "Everything"}, "minTrust"),
        ({"filters": {"kind": "image"}}, "filters.kind"),
        ({"filters": {"pathPrefix": "x" * 2000}}, "filters.pathPrefix"),
        ({"filters": {"tags": ["t"] * 33}}, "filters.tags"),
        ({"filters": {"updatedAfter": "yesterday"}}, "filters.updatedAfter"),
        ({"filters": []}, "filters"),
        ({"pinnedRevisions": {"docs": 0}}, "pinnedRevisions"),
        ({"pinnedRevisions": {"docs": 2**31}}, "pinnedRevisions"),
        ({"pinnedRevisions": {"docs": 10**300}}, "pinnedRevisions"),
        ({"pinnedRevisions": [7]}, "pinnedRevisions"),
        ({"pinnedRevisions": {"docs": "1"}}, "pinnedRevisions"),
        ({"pinnedRevisions": {"docs": True}}, "pinnedRevisions"),
        ({"pinnedRevisions": {"docs": 1.0}}, "pinnedRevisions"),
        ({"asOf": "0001-01-01T00:00:00+14:00"}, "asOf"),
        ({"asOf": "9999-12-31T23:59:59-14:00"}, "asOf"),
        ({"filters": {"updatedAfter": "0001-01-01T00:00:00+14:00"}}, "filters.updatedAfter"),
        ({"runId": "run-1"}, "runId"),
    ],
)
def test_a_value_out_of_range_is_named(reader: Caller, fields: dict[str, Any], named: str) -> None:
    body = {"query": "lease", "projectId": "p1", **fields}
    assert_problem(reader.post(f"{BASE}/search", body), 422, named)


@pytest.mark.parametrize(
    "fields",
    [
        {"projectId": "p\0"},
        {"collections": ["docs\0"]},
        {"filters": {"sourceId": "s\0"}},
        {"filters": {"pathPrefix": "\0"}},
        {"filters": {"language": "\0"}},
        {"filters": {"tags": ["\0"]}},
        {"pinnedRevisions": {"\0": 1}},
    ],
)
def test_a_name_with_a_nul_character_is_refused(reader: Caller, fields: dict[str, Any]) -> None:
    body = {"query": "lease", "projectId": "p1", **fields}
    assert_problem(reader.post(f"{BASE}/search", body), 422)


def test_a_query_with_a_nul_character_is_answered(reader: Caller) -> None:
    assert reader.paths("lease\0renewed") == ["a.md"]


@pytest.mark.parametrize(
    "content",
    [
        b'{"query": "\\ud800", "projectId": "p1"}',
        b'{"query": "lease", "projectId": "\\udfff"}',
        b'{"query": "lease", "projectId": "p1", "\\ud800": 1}',
        b'{"query": "lease", "projectId": "p1", "filters": {"tags": ["\\ud800"]}}',
    ],
)
def test_half_a_surrogate_pair_is_refused(reader: Caller, content: bytes) -> None:
    assert_problem(reader.post_raw(f"{BASE}/search", content), 422)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"query=lease",
        b"{",
        b'{"query": "lease",}',
        b"{'query': 'lease'}",
        b"\xff\xfe{}",
        b'{"query": "\xe9", "projectId": "p1"}',
        b'{"query": "lease", "projectId": "p1", "topK": NaN}',
        b'{"query": "lease", "projectId": "p1", "topK": Infinity}',
        b'{"query": "lease", "projectId": "p1", "topK": ' + b"9" * 5000 + b"}",
        b'{"query": "lease", "projectId": "p1", "filters": {}, "filters": {"kind": "code"}}',
        b"[" * 100_000,
        b'{"filters": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001,
    ],
)
@pytest.mark.parametrize("path", ["search", "events"])
def test_a_body_that_is_not_json_is_400(reader: Caller, path: str, content: bytes) -> None:
    assert_problem(reader.post_raw(f"{BASE}/{path}", content), 400)


@pytest.mark.parametrize("content", [b"[]", b"null", b'"query"', b"7", b"true"])
@pytest.mark.parametrize("path", ["search", "events"])
def test_a_body_that_is_not_an_object_is_422(reader: Caller, path: str, content: bytes) -> None:
    assert_problem(reader.post_raw(f"{BASE}/{path}", content), 422)


@pytest.mark.parametrize("path", [f"{BASE}/search", f"{BASE}/events", "/oauth/token"])
def test_a_body_of_more_than_a_megabyte_is_413(reader: Caller, path: str) -> None:
    assert_problem(
        reader.post_raw(path, b"x" * 1_000_001, "application/x-www-form-urlencoded"), 413
    )


def test_a_body_in_chunks_of_more_than_a_megabyte_is_413(reader: Caller) -> None:
    response = http().post(
        f"{reader.url}{BASE}/search",
        headers=reader.headers,
        content=iter([b" " * 300_000] * 5),
        timeout=20,
    )
    assert_problem(response, 413)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", f"{BASE}/search", "POST"),
        ("DELETE", f"{BASE}/search", "POST"),
        ("POST", f"{BASE}/collections", "GET, HEAD"),
        ("PUT", f"{BASE}/events", "GET, HEAD, POST"),
        ("GET", "/oauth/token", "POST"),
        ("POST", "/metrics", "GET, HEAD"),
        ("OPTIONS", f"{BASE}/search", "POST"),
    ],
)
def test_a_wrong_method_is_405_and_names_the_right_ones(
    url: str, method: str, path: str, allowed: str
) -> None:
    response = http().request(method, f"{url}{path}")
    assert_problem(response, 405)
    assert set(response.headers["allow"].split(", ")) == set(allowed.split(", "))


@pytest.mark.parametrize("path", ["/", "/factory", f"{BASE}/nothing", "/docs/x"])
def test_an_unknown_path_is_a_404_problem(url: str, path: str) -> None:
    assert_problem(http().get(f"{url}{path}"), 404)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"])
def test_head_is_get_without_a_body(url: str, path: str) -> None:
    response = http().head(f"{url}{path}")
    assert response.status_code == 200
    assert response.content == b""


@pytest.mark.parametrize("value", ["", "0", "-5", "1e3", "soon", "600001", "9" * 5000])
def test_a_deadline_that_is_no_number_of_milliseconds_is_refused(
    reader: Caller, value: str
) -> None:
    headers = {**reader.headers, "X-Request-Timeout-Ms": value}
    body = {"query": "lease", "projectId": "p1"}
    response = http().post(f"{reader.url}{BASE}/search", headers=headers, json=body)
    assert_problem(response, 422, "x-request-timeout-ms")


@pytest.mark.parametrize("after", ["-1", "x", "1.5", "9" * 30, "1 or 1=1", "\0"])
def test_a_place_in_the_events_that_is_no_number_is_refused(reader: Caller, after: str) -> None:
    assert_problem(reader.get(f"{BASE}/events", params={"after": after}), 422, "after")


@pytest.mark.parametrize(
    "path",
    ["queries/%00", "queries/x", "citations/%00", "citations/..", "collections/%00/indexes"],
)
def test_a_strange_name_in_the_path_is_a_404(reader: Caller, path: str) -> None:
    assert_problem(reader.get(f"{BASE}/{path}"), 404)


def test_a_wrong_content_type_changes_nothing_for_json(reader: Caller) -> None:
    body = json.dumps({"query": "lease", "projectId": "p1"}).encode()
    for content_type in ("application/json; charset=utf-8", "text/plain"):
        response = reader.post_raw(f"{BASE}/search", body, content_type)
        assert response.status_code == 200
