"""Random hostile requests, the same ones each time: no failure, no hang, no foreign word."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest

from knowledge.model.scope import ADMIN, READ
from knowledge.runtime import Runtime
from tests.publication import collection_of, publish_documents
from tests.retrieval_api.conftest import CallerFactory
from tests.retrieval_api.service import BASE, Caller, http

ROUNDS = 400
SECRET = "xyzzysecret"
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 100, 101, 2**31, 2**63, 10**40, 0.5, -0.0, 1e308, "", " ", "docs",
    "other", "theirs", "p1", "p2", "*", "%", "_", "\\", "'", '"', "' or '1'='1", "; drop table x",
    "../../etc/passwd", "\0", "\ud800", "\udfff", "\U0010ffff", "a" * 2000, "group:ops", "user:*",
    "2026-01-01", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "NaN", SECRET,
    [], [[]], ["docs"], ["theirs"], ["*"], ["docs"] * 17, {}, {"docs": 1}, {"theirs": 1},
    {"docs": 0}, {"docs": 10**20}, {"": 1}, {"a": {"b": {"c": []}}}, ["vector"], ["fullText"],
    "InferredFact", "none", "code", "document", "6e8bc430-9c3a-11d9-9669-0800200c9a66",
]  # fmt: skip
FIELDS = [
    "query", "projectId", "collections", "topK", "filters", "minTrust", "asOf", "between", "legs",
    "pinnedRevisions", "rerank", "explain", "runId", "tenantId", "acl", "groups", "sources",
]  # fmt: skip
FILTERS = ["sourceId", "pathPrefix", "kind", "language", "tags", "updatedAfter", "acl", "project"]


@pytest.fixture(scope="module")
def reader(runtime: Runtime, caller_factory: CallerFactory) -> Caller:
    docs = collection_of(runtime, "hostile")
    other = collection_of(runtime, "hostile", "other", project_id="p2")
    theirs = collection_of(runtime, "hostile-eu", "theirs")
    publish_documents(runtime, docs, [{"id": "a.md", "text": "a lease is renewed"}])
    hidden = [{"id": f"{SECRET}.md", "text": f"a lease {SECRET}", "tags": [SECRET]}]
    publish_documents(runtime, docs, hidden, source=SECRET, acl=("group:ops",))
    publish_documents(runtime, docs, [{**hidden[0], "acl": ["group:ops"]}], source="s3")
    publish_documents(runtime, other, hidden)
    publish_documents(runtime, theirs, hidden)
    return caller_factory("hostile", scopes=(READ, ADMIN))


def _body(chance: random.Random) -> dict[str, Any]:
    body: dict[str, Any] = {"query": f"lease {SECRET}", "projectId": "p1"}
    for _ in range(chance.randint(0, 3)):
        field = chance.choice(FIELDS)
        if field == "filters" and chance.random() < 0.8:
            body[field] = {
                chance.choice(FILTERS): chance.choice(VALUES) for _ in range(chance.randint(1, 2))
            }
        else:
            body[field] = chance.choice(VALUES)
    return body


def _mutilated(chance: random.Random, content: bytes) -> bytes:
    kind = chance.randrange(6)
    at = chance.randrange(len(content) + 1)
    if kind == 0:
        return content[:at]
    if kind == 1:
        return content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :]
    if kind == 2:
        return content[:at] + b"[" * chance.randint(1, 3000) + content[at:]
    return content


def test_hostile_searches_are_answered_or_refused(reader: Caller) -> None:
    chance = random.Random(11)
    statuses: dict[int, int] = {}
    for _ in range(ROUNDS):
        sent = _mutilated(chance, json.dumps(_body(chance)).encode())
        started = time.monotonic()
        response = reader.post_raw(f"{BASE}/search", sent)
        assert time.monotonic() - started < 5, sent
        assert response.status_code in (200, 400, 403, 404, 410, 422), (sent, response.text)
        if response.status_code == 200:
            assert response.json()["foreignDropped"] == 0, sent
            assert SECRET not in json.dumps(response.json()["candidates"]), sent
        statuses[response.status_code] = statuses.get(response.status_code, 0) + 1
    assert statuses[200] > ROUNDS // 10
    assert statuses[422] > ROUNDS // 10


def test_hostile_events_and_paths_are_answered_or_refused(reader: Caller) -> None:
    chance = random.Random(12)
    kinds = ["ChunksPublished", "SourceDeleted", "SourceAccessChanged", "Nothing"]
    names = ["tenantId", "collectionId", "sourceId", "acl", "manifest", "mode", "chunkCount", "x"]
    for number in range(ROUNDS // 2):
        data = {chance.choice(names): chance.choice(VALUES) for _ in range(4)}
        if chance.random() < 0.7:
            data |= {"tenantId": "hostile", "collectionId": "docs"}
        event = {
            "specversion": "1.0",
            "id": f"{number}",
            "source": "urn:test",
            "type": chance.choice(kinds),
            "data": data,
        }
        response = reader.post_raw(f"{BASE}/events", json.dumps(event).encode())
        assert response.status_code in (202, 400, 404, 409, 422), (event, response.text)
        name = str(chance.choice(VALUES)).encode("utf-8", "replace").hex("%")
        place = chance.choice(["queries", "citations", "collections"])
        path = f"{BASE}/{place}/%{name}" + ("/indexes" if place == "collections" else "")
        assert reader.get(path).status_code in (200, 307, 400, 404), path
    assert SECRET not in json.dumps(reader.search("lease", topK=100)["candidates"])


def test_hostile_headers_are_answered_or_refused(reader: Caller) -> None:
    chance = random.Random(13)
    for _ in range(ROUNDS // 4):
        noise = bytes(chance.choice(b"abcXYZ019.-_=:,; \xe9\xff") for _ in range(60)).strip()
        token = reader.token.encode()
        at = chance.randrange(len(token))
        cut = chance.choice([b"Bearer " + noise, noise, b"Bearer " + token[:at] + noise[:3]])
        headers = {
            b"Authorization": cut.strip(),
            b"X-Request-Timeout-Ms": noise,
            b"Content-Type": noise,
        }
        response = http().post(f"{reader.url}{BASE}/search", headers=headers, content=b"{}")
        assert response.status_code in (400, 401), (headers, response.text)
        response = http().post(f"{reader.url}/oauth/token", headers=headers, content=noise)
        assert response.status_code in (400, 401), (headers, response.text)
    assert http().get(f"{reader.url}/readyz").json()["status"] == "ok"
