"""Servers and models that go away and come back: the answer says so, nothing is silently thinner."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from knowledge.home import Home
from knowledge.runtime import Runtime, open_runtime
from knowledge.settings import load_settings
from knowledge.stack.postgres import find_postgres, stop_postgres
from knowledge.stack.process import wait_until
from knowledge.stack.servers import ensure_servers
from knowledge.stack.weaviate import find_weaviate, stop_weaviate
from tests.publication import collection_of, publish_documents
from tests.retrieval_api.service import BASE, Caller, assert_problem, caller, http, legs, serving

TENANT = "degraded"
TEXTS = {
    "lease.md": "The lease is renewed every ten seconds.",
    "clock.md": "The clock of a collection ticks once a run.",
    "secret.md": "The lease of nobody.",
}
FALLEN = {"vector": "unavailable", "fullText": "fallback", "metadata": "ok"}
WHOLE = {"vector": "ok", "fullText": "ok", "metadata": "ok"}


@dataclass(frozen=True)
class Site:
    """A home of this module's own, whose servers may be stopped."""

    home: Home
    runtime: Runtime
    reader: Caller


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    home = Home(Path(tempfile.mkdtemp(prefix="kd-", dir="/tmp")))
    try:
        with open_runtime(home) as runtime:
            collection = collection_of(runtime, TENANT, profile="minilm@1")
            documents: list[dict[str, Any]] = [{"id": k, "text": v} for k, v in TEXTS.items()]
            documents[-1]["acl"] = []
            publish_documents(runtime, collection, documents)
            with serving(home, runtime) as url:
                yield Site(home, runtime, caller(url, runtime, TENANT))
    finally:
        shutil.rmtree(home.root, ignore_errors=True)


@contextmanager
def _weaviate_stopped(site: Site) -> Iterator[None]:
    server = find_weaviate(site.home)
    assert server is not None
    stop_weaviate(server.process)
    try:
        yield
    finally:
        ensure_servers(site.home, load_settings(site.home, {}))


def _is_whole(site: Site) -> bool:
    return legs(site.reader.search("lease renewed")) == WHOLE


def test_with_weaviate_stopped_words_are_answered_from_postgres_and_come_back_by_themselves(
    site: Site,
) -> None:
    before = site.reader.search("lease renewed")
    assert legs(before) == WHOLE
    with _weaviate_stopped(site):
        answer = site.reader.search("lease renewed")
        assert answer["degraded"] is True
        assert legs(answer) == FALLEN
        assert [c["citation"]["path"] for c in answer["candidates"]][:1] == ["lease.md"]
        assert "secret.md" not in site.reader.paths("lease")
        assert site.reader.paths("lease clock", filters={"pathPrefix": "clock"}) == ["clock.md"]
        for leg in answer["legs"][:2]:
            assert "Weaviate" in leg["reason"]
        assert http().get(f"{site.reader.url}/readyz").status_code == 200
    assert wait_until(lambda: _is_whole(site), 20)
    after = site.reader.search("lease renewed")
    assert after["degraded"] is False
    assert after["candidates"] == before["candidates"]


def test_with_weaviate_hanging_the_answer_comes_within_the_deadline(site: Site) -> None:
    server = find_weaviate(site.home)
    assert server is not None
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        started = time.monotonic()
        answer = site.reader.search("lease renewed")
        assert time.monotonic() - started < 2.5
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    assert answer["degraded"] is True
    assert legs(answer) == {**FALLEN, "vector": "timed_out"}
    assert answer["candidates"][0]["citation"]["path"] == "lease.md"
    assert wait_until(lambda: _is_whole(site), 20)


def test_a_service_that_starts_without_weaviate_answers_and_proves_it_later(site: Site) -> None:
    with _weaviate_stopped(site), serving(site.home, site.runtime, wait=False) as url:
        reader = caller(url, site.runtime, TENANT)
        answer = reader.search("lease renewed")
        assert legs(answer) == FALLEN
        assert http().get(f"{url}/readyz").json()["index"] != "ok"
        ensure_servers(site.home, load_settings(site.home, {}))
        assert wait_until(lambda: legs(reader.search("lease renewed")) == WHOLE, 30)
    assert wait_until(lambda: _is_whole(site), 20)


def test_without_its_model_a_collection_is_answered_from_words_and_says_so(site: Site) -> None:
    with serving(site.home, site.runtime, models=Path(os.devnull)) as url:
        answer = caller(url, site.runtime, TENANT).search("lease renewed")
    assert answer["degraded"] is True
    assert legs(answer) == {"vector": "unavailable", "fullText": "ok", "metadata": "ok"}
    assert answer["candidates"][0]["citation"]["path"] == "lease.md"
    [vector] = [leg for leg in answer["legs"] if leg["leg"] == "vector"]
    assert vector["reason"]


def test_without_postgres_there_is_no_answer_until_it_is_back(site: Site) -> None:
    server = find_postgres(site.home)
    assert server is not None
    stop_postgres(server)
    try:
        for _ in range(3):
            started = time.monotonic()
            assert_problem(site.reader.try_search("lease"), 503, "PostgreSQL cannot be reached")
            assert_problem(site.reader.get(f"{BASE}/collections"), 503)
            assert time.monotonic() - started < 5
        assert http().get(f"{site.reader.url}/readyz").status_code == 503
        assert http().get(f"{site.reader.url}/healthz").status_code == 200
    finally:
        ensure_servers(site.home, load_settings(site.home, {}))
    assert wait_until(lambda: site.reader.try_search("lease").status_code == 200, 10)
    assert wait_until(lambda: _is_whole(site), 20)


def test_records_wait_for_a_database_that_comes_back(site: Site) -> None:
    answer = site.reader.search("lease")
    path = f"{BASE}/queries/{answer['queryId']}"
    assert wait_until(lambda: site.reader.get(path).status_code == 200, 10)
