"""Personal API keys over HTTP: proven by their hash, never more than their row allows today."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import httpx
import pytest

from knowledge.errors import Unauthenticated
from knowledge.model.scope import ADMIN, OAUTH_SCOPES, READ
from knowledge.runtime import Runtime
from knowledge.security.keys import ApiKey, draw_key, parse_key
from knowledge.storage.postgres import catalogue, keys
from knowledge.storage.postgres.database import AsyncDatabase
from retrieval_api.key_verifier import REMEMBERED_S, KeyVerifier
from tests.publication import collection_of, publish_documents
from tests.retrieval_api.service import BASE, assert_problem, http


def make(runtime: Runtime, tenant: str, **options: Any) -> ApiKey:
    options = {"name": "ada", "scopes": OAUTH_SCOPES, **options}
    key, _ = keys.create_key(runtime.owner, tenant, "p1", **options)
    return key


def ask(url: str, key: str, method: str = "POST", path: str = f"{BASE}/search", **more: Any) -> Any:
    headers = {"Authorization": f"Bearer {key}"}
    if method == "POST":
        more = {"json": {"query": "lease"}, **more}
    return http().request(method, f"{url}{path}", headers=headers, **more)


def test_a_key_is_used_like_a_token_and_needs_no_project(
    url: str, runtime: Runtime, tenant: str
) -> None:
    publish_documents(runtime, collection_of(runtime, tenant), [{"id": "a", "text": "a lease"}])
    key = make(runtime, tenant, groups=("eng",))
    answer = ask(url, key.text).json()
    assert [c["citation"]["path"] for c in answer["candidates"]] == ["a"]
    assert answer["scope"] == {
        "tenantId": tenant,
        "projectId": "p1",
        "principal": key.client_id,
        "groups": ["eng"],
    }
    assert ask(url, key.text, "GET", f"{BASE}/collections").json()["collections"]


def test_a_credential_of_several_projects_must_say_which(
    url: str, runtime: Runtime, tenant: str, caller_factory: Any
) -> None:
    several = caller_factory(tenant, projects=("p1", "p2"))
    problem = assert_problem(several.post(f"{BASE}/search", {"query": "lease"}), 422, "p1, p2")
    assert problem["detail"].startswith("projectId: ")


@pytest.mark.parametrize("change", ["secret", "client", "case", "longer", "shorter", "empty"])
def test_a_key_that_is_not_whole_is_refused(
    url: str, runtime: Runtime, tenant: str, change: str
) -> None:
    key = make(runtime, tenant)
    assert ask(url, key.text).status_code == httpx.codes.OK
    wrong = {
        "secret": ApiKey(key.client_id, draw_key().secret).text,
        "client": ApiKey(draw_key().client_id, key.secret).text,
        "case": key.text.swapcase().replace("KK_KEY", "kk_key"),
        "longer": f"{key.text}x",
        "shorter": key.text[:-1],
        "empty": "kk_",
    }[change]
    response = ask(url, wrong)
    assert_problem(response, 401, "knowledge keys create")
    assert response.headers["www-authenticate"] == "Bearer"


def test_a_key_gets_no_token(url: str, runtime: Runtime, tenant: str) -> None:
    key = make(runtime, tenant)
    for secret in (key.secret, key.text):
        answer = http().post(
            f"{url}/oauth/token",
            data={"grant_type": "client_credentials"},
            auth=(key.client_id, secret),
        )
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")


def test_a_clients_secret_is_no_key(url: str, runtime: Runtime, tenant: str) -> None:
    client_id, secret = catalogue.create_client(
        runtime.owner, tenant, projects=("p1",), groups=(), scopes=(READ,)
    )
    assert_problem(ask(url, f"kk_{client_id}_{secret}"), 401)


def test_a_key_does_what_its_scopes_say(url: str, runtime: Runtime, tenant: str) -> None:
    key = make(runtime, tenant, scopes=(READ,))
    assert ask(url, key.text).status_code == httpx.codes.OK
    assert_problem(ask(url, key.text, "GET", f"{BASE}/events"), 403, ADMIN)


def test_an_expired_key_is_refused_and_says_since_when(
    url: str, runtime: Runtime, tenant: str
) -> None:
    late = make(runtime, tenant, days=1)
    with runtime.owner.transaction() as connection:
        connection.execute(
            "update clients set expires_at = '2024-05-01Z' where client_id = %s", [late.client_id]
        )
    assert_problem(ask(url, late.text), 401, "expired on 2024-05-01")


def test_a_revoked_key_is_refused_on_every_route_at_once(
    url: str, runtime: Runtime, tenant: str
) -> None:
    collection_of(runtime, tenant)
    key = make(runtime, tenant)
    assert ask(url, key.text).status_code == httpx.codes.OK  # it is remembered from here on
    keys.revoke_key(runtime.owner, key.client_id)
    asked = 0
    for path, methods in http().get(f"{url}/openapi.json").json()["paths"].items():
        for method, operation in methods.items():
            if not operation.get("security"):
                continue
            response = _as_documented(url, key.text, method.upper(), path, operation)
            assert_problem(response, 401, "revoked")
            asked += 1
    assert asked >= 18


def _as_documented(
    url: str, key: str, method: str, path: str, operation: dict[str, Any]
) -> httpx.Response:
    """The operation's own example, which its body's model takes."""
    query = {}
    for parameter in operation["parameters"]:
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", _value(parameter["name"]))
        elif parameter["in"] == "query" and parameter["required"]:
            query[parameter["name"]] = "p1"
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    response: httpx.Response = ask(
        url, key, method, path, params=query, **({"json": content["example"]} if content else {})
    )
    return response


def _value(name: str) -> str:
    known = {"collection": "docs", "citations_ref": "0" * 64, "citationsRef": "0" * 64}
    return known.get(name, str(uuid.uuid4()))


# --- what is remembered -----------------------------------------------------------------


def test_a_proven_key_is_remembered_for_a_minute_by_its_hash(runtime: Runtime, tenant: str) -> None:
    now = 0.0
    key = make(runtime, tenant)

    async def verify() -> None:
        nonlocal now
        database = AsyncDatabase(runtime.urls.app_url)
        await database.open()
        try:
            verifier = KeyVerifier(database, clock=lambda: now)
            assert (await verifier.verify(key.text)).client_id == key.client_id
            held = repr(verifier.__dict__)
            assert key.secret not in held
            keys.revoke_key(runtime.owner, key.client_id)
            now = REMEMBERED_S - 1
            await verifier.verify(key.text)  # the plan of the request refuses it all the same
            now = REMEMBERED_S
            with pytest.raises(Unauthenticated):
                await verifier.verify(key.text)
        finally:
            await database.close()

    asyncio.run(verify())


def test_a_key_is_written_and_read_back() -> None:
    for _ in range(200):
        key = draw_key()
        assert parse_key(key.text) == key
        assert key.secret not in repr(key)
    for text in ("", "kk_", "kk_key-x_y", "kk_client-0123456789abcdef_" + "a" * 43, "é" * 60):
        assert parse_key(text) is None
