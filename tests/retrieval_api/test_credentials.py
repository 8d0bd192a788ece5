"""Who asks is proven by a token of this installation, and asked of the database each time."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import httpx
import jwt
import pytest

from knowledge.home import Home
from knowledge.model.scope import ADMIN, READ
from knowledge.runtime import Runtime
from knowledge.security.tokens import TokenIssuer
from knowledge.stack.process import wait_until
from knowledge.storage.postgres import catalogue
from tests.publication import collection_of
from tests.retrieval_api.conftest import CallerFactory
from tests.retrieval_api.service import BASE, assert_problem, http

GUARDED = [
    ("POST", f"{BASE}/search"),
    ("GET", f"{BASE}/queries/6e8bc430-9c3a-11d9-9669-0800200c9a66"),
    ("GET", f"{BASE}/citations/{'0' * 64}"),
    ("GET", f"{BASE}/collections"),
    ("GET", f"{BASE}/collections/docs/indexes"),
    ("GET", f"{BASE}/events"),
    ("POST", f"{BASE}/events"),
]


def _ask(url: str, method: str, path: str, authorization: str | None) -> httpx.Response:
    headers = {} if authorization is None else {"Authorization": authorization}
    body = {"query": "lease", "projectId": "p1"} if method == "POST" else None
    return http().request(method, f"{url}{path}", headers=headers, json=body, timeout=20)


def _claims(home: Home, **changed: Any) -> dict[str, Any]:
    now = int(time.time())
    claims = {
        "iss": f"knowledge:{home.installation_id}",
        "aud": "factory.knowledge",
        "sub": "client-x",
        "tenant": "t",
        "scope": f"{READ} {ADMIN}",
        "iat": now,
        "exp": now + 600,
    }
    return {key: value for key, value in {**claims, **changed}.items() if value is not None}


def _signed(home: Home, **changed: Any) -> str:
    return jwt.encode(_claims(home, **changed), home.signing_key, algorithm="HS256")


def _part(value: object) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


@pytest.mark.parametrize(("method", "path"), GUARDED)
@pytest.mark.parametrize(
    "authorization", [None, "", "Bearer", "Basic YTpi", "Token x", "Bearer garbage"]
)
def test_without_a_token_nothing_is_answered(
    url: str, method: str, path: str, authorization: str | None
) -> None:
    response = _ask(url, method, path, authorization)
    assert_problem(response, 401, "/oauth/token")
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "knowledge:another"},
        {"iss": None},
        {"aud": "another"},
        {"aud": None},
        {"exp": None},
        {"sub": None},
        {"tenant": None},
        {"sub": 7},
        {"exp": "soon"},
        {"nbf": 9999999999},
    ],
)
def test_a_token_with_other_claims_is_refused(
    url: str, home: Home, changed: dict[str, Any]
) -> None:
    response = _ask(url, "POST", f"{BASE}/search", f"Bearer {_signed(home, **changed)}")
    assert_problem(response, 401, "not one of this installation")


def test_an_expired_token_is_refused_and_says_so(url: str, home: Home) -> None:
    token = _signed(home, exp=int(time.time()) - 1)
    assert_problem(_ask(url, "POST", f"{BASE}/search", f"Bearer {token}"), 401, "has expired")


def test_a_token_signed_with_another_key_is_refused(url: str, home: Home) -> None:
    for key in ("x" * 64, home.installation_id, ""):
        try:
            token = jwt.encode(_claims(home), key, algorithm="HS256")
        except jwt.InvalidKeyError:
            continue
        assert_problem(_ask(url, "GET", f"{BASE}/collections", f"Bearer {token}"), 401)


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", None, [], {}, 7, "RS256"])
def test_a_token_without_a_signature_is_refused(url: str, home: Home, algorithm: object) -> None:
    header, claims = _part({"alg": algorithm, "typ": "JWT"}), _part(_claims(home))
    genuine = _signed(home).rsplit(".", maxsplit=1)[1]
    for signature in ("", genuine):
        token = f"Bearer {header}.{claims}.{signature}"
        assert_problem(_ask(url, "POST", f"{BASE}/search", token), 401)


def test_a_deeply_nested_token_is_refused(url: str) -> None:
    nested = _part(b'{"a":' * 4_000)
    token = f"Bearer {nested}.{_part({})}.x"
    assert_problem(_ask(url, "POST", f"{BASE}/search", token), 401)


def test_a_token_signed_here_for_an_unknown_client_is_refused(url: str, home: Home) -> None:
    for method, path in GUARDED[1:-1]:
        assert_problem(_ask(url, method, path, f"Bearer {_signed(home)}"), 401, "revoked")


def test_a_token_of_another_tenant_does_not_make_a_client_one_of_it(
    url: str, home: Home, runtime: Runtime, tenant: str, caller_factory: CallerFactory
) -> None:
    collection_of(runtime, tenant)
    here = caller_factory(tenant)
    token = _signed(home, sub=here.client_id, tenant=f"{tenant}-eu")
    assert_problem(_ask(url, "POST", f"{BASE}/search", f"Bearer {token}"), 401, "revoked")


def test_a_token_without_the_scope_is_403_and_names_it(
    tenant: str, caller_factory: CallerFactory
) -> None:
    reader = caller_factory(tenant)
    assert_problem(reader.get(f"{BASE}/events"), 403, ADMIN)
    assert_problem(reader.post(f"{BASE}/events", {}), 403, ADMIN)
    admin = caller_factory(tenant, scopes=(ADMIN,))
    assert_problem(admin.try_search("lease"), 403, READ)
    assert_problem(admin.get(f"{BASE}/collections"), 403, READ)


def test_a_scope_that_was_taken_away_is_gone_on_the_next_request(
    url: str, home: Home, runtime: Runtime, tenant: str, caller_factory: CallerFactory
) -> None:
    reader = caller_factory(tenant)
    issuer = TokenIssuer(f"knowledge:{home.installation_id}", home.signing_key, 600)
    token = issuer.issue(client_id=reader.client_id, tenant_id=tenant, scopes=[READ, ADMIN])
    assert_problem(_ask(url, "GET", f"{BASE}/events", f"Bearer {token}"), 403, "no longer")


def test_records_of_others_are_hidden_once_the_admin_scope_is_taken_away(
    url: str, home: Home, runtime: Runtime, tenant: str, caller_factory: CallerFactory
) -> None:
    collection_of(runtime, tenant)
    asked = caller_factory(tenant).search("lease")["queryId"]
    place = f"{BASE}/queries/{asked}"
    admin = caller_factory(tenant, scopes=(READ, ADMIN))
    assert wait_until(lambda: admin.get(place).status_code == 200, 10)
    former = caller_factory(tenant)
    issuer = TokenIssuer(f"knowledge:{home.installation_id}", home.signing_key, 600)
    token = issuer.issue(client_id=former.client_id, tenant_id=tenant, scopes=[READ, ADMIN])
    assert_problem(_ask(url, "GET", place, f"Bearer {token}"), 404)


def test_a_revoked_client_is_refused_on_the_next_request(
    runtime: Runtime, tenant: str, caller_factory: CallerFactory
) -> None:
    collection_of(runtime, tenant)
    reader = caller_factory(tenant)
    reader.search("lease")
    catalogue.revoke_client(runtime.owner, reader.client_id)
    assert_problem(reader.try_search("lease"), 401, "revoked")
    assert_problem(reader.get(f"{BASE}/collections"), 401, "revoked")


# --- the token endpoint -----------------------------------------------------------------


def _token(url: str, **options: Any) -> httpx.Response:
    return http().post(f"{url}/oauth/token", timeout=20, **options)


def test_credentials_are_taken_from_the_form_too(
    url: str, tenant: str, caller_factory: CallerFactory
) -> None:
    reader = caller_factory(tenant)
    form = {
        "grant_type": "client_credentials",
        "client_id": reader.client_id,
        "client_secret": reader.secret,
        "scope": READ,
    }
    answer = _token(url, data=form)
    assert answer.json()["scope"] == READ
    assert answer.json()["token_type"] == "Bearer"
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("scope", [ADMIN, "everything", f"{READ} {ADMIN}", "\0"])
def test_a_scope_the_client_does_not_have_is_not_given(
    url: str, tenant: str, caller_factory: CallerFactory, scope: str
) -> None:
    reader = caller_factory(tenant)
    form = {"grant_type": "client_credentials", "scope": scope}
    answer = _token(url, data=form, auth=(reader.client_id, reader.secret))
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_scope")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Basic"},
        {"Authorization": "Basic %%%"},
        {"Authorization": b"Basic \xe9\xe9"},
        {"Authorization": "Basic " + base64.b64encode(b"\xff\xfe:x").decode()},
        {"Authorization": "Basic " + base64.b64encode(b"nobody:wrong").decode()},
        {"Authorization": "Basic " + base64.b64encode(b"%00:x").decode()},
        {"Authorization": "Basic " + base64.b64encode(b"x" * 5000 + b":x").decode()},
        {"Authorization": "Basic " + base64.b64encode(b"%ED%A0%80:%ED%A0%80").decode()},
        {"Authorization": "Bearer x"},
    ],
)
def test_wrong_credentials_are_401_in_the_words_of_oauth(url: str, headers: Any) -> None:
    answer = _token(url, data={"grant_type": "client_credentials"}, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"data": {"grant_type": "password"}},
        {"json": {"grant_type": "client_credentials"}},
        {"content": b"\xff\xfe", "headers": {"Content-Type": "application/x-www-form-urlencoded"}},
        {"content": b"x", "headers": {"Content-Type": "multipart/form-data"}},
        {"content": b"x", "headers": {"Content-Type": "multipart/form-data; boundary=b"}},
        {"files": {"grant_type": b"client_credentials"}},
        {"data": {f"f{number}": "x" for number in range(50)}},
    ],
)
def test_a_wrong_form_is_400(url: str, options: dict[str, Any]) -> None:
    assert _token(url, **options).status_code == 400


def test_a_revoked_client_gets_no_token(
    url: str, runtime: Runtime, tenant: str, caller_factory: CallerFactory
) -> None:
    reader = caller_factory(tenant)
    catalogue.revoke_client(runtime.owner, reader.client_id)
    form = {"grant_type": "client_credentials"}
    answer = _token(url, data=form, auth=(reader.client_id, reader.secret))
    assert answer.status_code == 401
