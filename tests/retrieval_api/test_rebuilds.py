"""Rebuilds over HTTP: asked for by administrators, idempotent, looked at, cancelled, built under load."""

from __future__ import annotations

import threading
import time
import uuid
from typing import Any

import httpx
import pytest

from knowledge.indexing.rebuilding import rebuild
from knowledge.model.collection import Collection
from knowledge.model.scope import ADMIN, READ
from knowledge.runtime import Runtime
from knowledge.storage.postgres import rebuilds
from tests.publication import collection_of, publish_documents
from tests.retrieval_api.conftest import CallerFactory
from tests.retrieval_api.service import BASE, Caller, assert_problem, http

DOCUMENTS = [{"id": f"d{n}", "text": f"lease number {n}"} for n in range(12)]
REBUILD = f"{BASE}/collections/docs/indexes/rebuild"


@pytest.fixture
def collection(runtime: Runtime, tenant: str) -> Collection:
    made = collection_of(runtime, tenant)
    publish_documents(runtime, made, DOCUMENTS)
    return made


@pytest.fixture
def admin(caller_factory: CallerFactory, collection: Collection) -> Caller:
    return caller_factory(collection.tenant_id, scopes=(READ, ADMIN))


def _ask(who: Caller, body: Any = None, *, key: str | None = None) -> httpx.Response:
    headers = who.headers | ({"Idempotency-Key": key} if key else {})
    options = {"json": body} if body is not None else {}
    return http().post(f"{who.url}{REBUILD}", headers=headers, **options)


def _build(runtime: Runtime, asked: dict[str, Any], collection: Collection) -> None:
    found = rebuilds.find(runtime.app, collection.tenant_id, uuid.UUID(asked["rebuildId"]))
    rebuild(runtime, found, owner=f"run-{asked['rebuildId']}")


def test_a_rebuild_is_accepted_shown_and_served(
    admin: Caller, runtime: Runtime, collection: Collection
) -> None:
    response = _ask(admin, key="one")
    assert response.status_code == httpx.codes.ACCEPTED, response.text
    asked = response.json()
    assert (asked["state"], asked["requestedBy"]) == ("requested", admin.client_id)
    _build(runtime, asked, collection)
    path = f"{BASE}/rebuilds/{asked['rebuildId']}"
    shown = admin.get(path).json()
    assert (shown["state"], shown["revision"]) == ("switched", 2)
    assert _ask(admin, key="one").json() == shown  # the same key, the same rebuild
    assert _ask(admin, key="two").json()["rebuildId"] != asked["rebuildId"]
    revision = {c["citation"]["indexRevision"] for c in admin.search("lease")["candidates"]}
    assert revision == {2}


def test_a_rebuild_can_be_cancelled_once(admin: Caller) -> None:
    asked = _ask(admin, {"embeddingProfileVersion": "minilm@1"}).json()
    assert asked["embeddingProfileVersion"] == "minilm@1"
    assert_problem(_ask(admin, {"embeddingProfileVersion": None}), 409, "cancel it")
    path = f"{BASE}/rebuilds/{asked['rebuildId']}/cancel"
    assert admin.post(path, {}).json()["state"] == "cancelled"
    assert_problem(admin.post(path, {}), 409, "has ended already")


def test_what_cannot_be_built_is_refused_with_one_line(
    admin: Caller, caller_factory: CallerFactory, runtime: Runtime, collection: Collection
) -> None:
    assert_problem(_ask(admin, {"embeddingProfileVersion": "bge@1"}), 422, "use one of minilm@1")
    assert_problem(_ask(admin, {"profile": "minilm@1"}), 422)
    assert_problem(_ask(admin, key="k" * 201), 422, "Idempotency-Key")
    collection_of(runtime, collection.tenant_id, "empty")
    path = f"{BASE}/collections/empty/indexes/rebuild"
    assert_problem(admin.post(path, {}), 409, "publish something first")


def test_only_an_administrator_of_the_tenant_and_project_sees_a_rebuild(
    admin: Caller, caller_factory: CallerFactory, collection: Collection, runtime: Runtime
) -> None:
    reader = caller_factory(collection.tenant_id)
    assert_problem(_ask(reader), 403)
    asked = _ask(admin).json()
    path = f"{BASE}/rebuilds/{asked['rebuildId']}"
    other_tenant = f"{collection.tenant_id}-x"
    collection_of(runtime, other_tenant, "mine")
    strangers = (
        caller_factory(other_tenant, scopes=(READ, ADMIN)),
        caller_factory(collection.tenant_id, projects=("p2",), scopes=(READ, ADMIN)),
    )
    for stranger in strangers:
        unknown = assert_problem(stranger.get(f"{BASE}/rebuilds/{uuid.UUID(int=1)}"), 404)
        refused = assert_problem(stranger.get(path), 404)
        assert refused["detail"].split()[:-1] == unknown["detail"].split()[:-1]
        assert_problem(stranger.post(f"{path}/cancel", {}), 404)
        assert_problem(_ask(stranger), 404, "there is no collection docs")
    assert_problem(admin.get(f"{BASE}/rebuilds/no-id"), 404, "there is no rebuild no-id")


def test_a_rebuild_to_another_profile_fails_no_search_and_mixes_no_profiles(
    admin: Caller, runtime: Runtime, collection: Collection
) -> None:
    answers: list[httpx.Response] = []
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            answers.append(admin.try_search("lease number", topK=50))
            time.sleep(0.02)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        asked = _ask(admin, {"embeddingProfileVersion": "minilm@1"}).json()
        found = rebuilds.find(runtime.app, collection.tenant_id, uuid.UUID(asked["rebuildId"]))

        def publish_beside(_line: str) -> None:
            if len(_texts(admin)) == len(DOCUMENTS):
                fresh = [{"id": "fresh", "text": "a fresh lease"}]
                publish_documents(runtime, collection, fresh, mode="delta")
                assert "a fresh lease" in _texts(admin)

        rebuild(runtime, found, owner="run-p", progress=publish_beside)
        assert "a fresh lease" in _texts(admin)
    finally:
        stop.set()
        asking.join()
    answers.append(admin.try_search("lease number", topK=50))
    assert {answer.status_code for answer in answers} == {200}
    profiles = []
    for answer in answers:
        body = answer.json()
        assert not body["degraded"], body["legs"]
        assert len(body["candidates"]) >= len(DOCUMENTS)
        (profile,) = {c["citation"]["embeddingProfileVersion"] for c in body["candidates"]}
        profiles.append(profile)
    assert profiles[0] is None
    assert profiles[-1] == "minilm@1"


def _texts(who: Caller) -> set[str]:
    return {c["text"] for c in who.search("lease", topK=50)["candidates"]}
