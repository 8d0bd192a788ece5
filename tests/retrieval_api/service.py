"""The real service on a port of its own, and callers that use it as anybody would."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from knowledge.home import Home
from knowledge.model.scope import READ
from knowledge.runtime import Runtime
from knowledge.stack.cache import cache_folder
from knowledge.stack.process import wait_until
from knowledge.stack.weaviate import weaviate_api_key
from knowledge.storage.postgres import catalogue

BASE = "/factory/knowledge"


@cache
def http() -> httpx.Client:
    """One client for all tests: a new one reads the certificates of the world each time."""
    return httpx.Client(verify=False, timeout=20, trust_env=False)


@contextmanager
def serving(
    home: Home,
    runtime: Runtime,
    *,
    models: Path | None = None,
    wait: bool = True,
    exit_code: int = 0,
    environ: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """The service over the servers of ``home``; gives its URL, with ``wait`` once it asks the index.

    ``environ`` are the variables that its settings are read from.
    """
    config = {
        "home": str(home.root),
        "app_url": runtime.urls.app_url,
        "weaviate": _weaviate(home),
        "cache": str(models or cache_folder()),
        "environ": dict(environ or {}),
    }
    log = home.logs_dir / "api-of-tests.log"
    with (
        log.open("ab") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "tests.retrieval_api.service_process"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(config) + "\n")
        process.stdin.flush()
        url = f"http://127.0.0.1:{process.stdout.readline().strip()}"
        try:
            assert wait_until(lambda: is_answering(url), 30), log.read_text()[-3000:]
            assert not wait or wait_until(lambda: is_index_asked(url), 60), log.read_text()[-3000:]
            yield url
        finally:
            process.stdin.close()
            assert process.wait(30) == exit_code


def _weaviate(home: Home) -> list[str]:
    """The address of the server as it was when it last ran, empty where there is none."""
    shown = json.loads((home.run_dir / "servers.json").read_text())
    if "weaviate_url" not in shown:
        return []
    return [shown["weaviate_url"], shown["weaviate_grpc"], weaviate_api_key(home)]


def is_answering(url: str) -> bool:
    try:
        return http().get(f"{url}/healthz").status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def is_index_asked(url: str) -> bool:
    return bool(http().get(f"{url}/readyz").json()["index"] == "ok")


@dataclass(frozen=True)
class Caller:
    """One client with its token: what it asks over HTTP."""

    url: str
    client_id: str
    secret: str
    token: str
    project_id: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def get(self, path: str, **options: Any) -> httpx.Response:
        return http().get(f"{self.url}{path}", headers=self.headers, **options)

    def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        """``headers`` are named with ``_`` for ``-``. Strings may hold what UTF-8 does not."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return http().post(
            f"{self.url}{path}",
            headers={**self.headers, "Content-Type": "application/json", **named},
            content=json.dumps(body).encode(),
        )

    def post_raw(
        self, path: str, content: bytes, content_type: str = "application/json"
    ) -> httpx.Response:
        headers = {**self.headers, "Content-Type": content_type}
        return http().post(f"{self.url}{path}", headers=headers, content=content)

    def try_search(self, query: str, **fields: Any) -> httpx.Response:
        body = {"query": query, "projectId": self.project_id, **fields}
        return self.post(f"{BASE}/search", body)

    def search(self, query: str, **fields: Any) -> dict[str, Any]:
        response = self.try_search(query, **fields)
        assert response.status_code == httpx.codes.OK, response.text
        answer: dict[str, Any] = response.json()
        assert answer["foreignDropped"] == 0
        return answer

    def paths(self, query: str, **fields: Any) -> list[str]:
        """The cited paths, in order."""
        fields = {"topK": 100, **fields}
        return [c["citation"]["path"] for c in self.search(query, **fields)["candidates"]]


def caller(
    url: str,
    runtime: Runtime,
    tenant_id: str,
    *,
    projects: Sequence[str] = ("p1",),
    groups: Sequence[str] = (),
    scopes: Sequence[str] = (READ,),
) -> Caller:
    """A new client of the tenant, with a token from the token endpoint."""
    client_id, secret = catalogue.create_client(
        runtime.owner, tenant_id, projects=projects, groups=groups, scopes=scopes
    )
    return Caller(url, client_id, secret, token_of(url, client_id, secret), projects[0])


def token_of(url: str, client_id: str, secret: str) -> str:
    response = http().post(
        f"{url}/oauth/token",
        data={"grant_type": "client_credentials"},
        auth=(client_id, secret),
    )
    assert response.status_code == httpx.codes.OK, response.text
    return str(response.json()["access_token"])


def legs(answer: dict[str, Any]) -> dict[str, str]:
    """Leg to state, of the legs that exist in one collection."""
    return {leg["leg"]: leg["state"] for leg in answer["legs"] if leg["collection"]}


def assert_problem(response: httpx.Response, status: int, *words: str) -> dict[str, Any]:
    """The response is problem+json with this status and these words in its detail."""
    assert response.status_code == status, response.text[:500]
    assert response.headers["content-type"] == "application/problem+json", response.text[:500]
    body: dict[str, Any] = response.json()
    assert body["status"] == status
    assert body["title"] and body["type"].startswith("urn:knowledge:problem:")
    for word in words:
        assert word in body["detail"], body
    return body
