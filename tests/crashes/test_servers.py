"""Servers killed with SIGKILL while they are written and asked, and what is so afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from knowledge.errors import IndexUnavailable
from knowledge.home import Home
from knowledge.model.collection import Collection
from knowledge.runtime import Runtime, open_runtime
from knowledge.settings import load_settings
from knowledge.stack.postgres import find_postgres
from knowledge.stack.process import ProcessId, wait_until
from knowledge.stack.servers import ensure_servers
from knowledge.stack.weaviate import find_weaviate
from knowledge.storage.postgres import generations, inbox
from tests.crashes.conftest import KEEPING_TWO, ROOT
from tests.crashes.state import state_of
from tests.publication import announce_documents, collection_of, index
from tests.retrieval_api.service import BASE, caller, legs, serving

TENANT = "killed"
MANY = [{"id": f"d{n}", "text": f"lease number{n} of many"} for n in range(6000)]

NOTICED = {
    "weaviate": ("IndexUnavailable",),
    "postgres": ("DatabaseUnavailable", "LeaseLost"),  # back before it was missed, the lease over
}


@dataclass(frozen=True)
class Site:
    """A home of this module's own, whose servers may be killed."""

    home: Home
    runtime: Runtime

    def start_work(self, collection: Collection) -> subprocess.Popen[str]:
        arguments = ("publish", collection.tenant_id, collection.slug)
        return subprocess.Popen(
            [sys.executable, "-m", "tests.crashes.worker", *arguments],
            cwd=ROOT,
            env={**os.environ, **KEEPING_TWO, "KNOWLEDGE_HOME": str(self.home.root)},
            stderr=subprocess.PIPE,
            text=True,
        )

    def kill(self, server: ProcessId) -> None:
        """The server and its children, at once; then start it as a supervisor would."""
        family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
        for process in family:
            process.send_signal(signal.SIGKILL)
        psutil.wait_procs(family, timeout=10)
        ensure_servers(self.home, load_settings(self.home, {}))


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    home = Home(Path(tempfile.mkdtemp(prefix="kx-", dir="/tmp")))
    try:
        with open_runtime(home) as runtime:
            yield Site(home, runtime)
    finally:
        shutil.rmtree(home.root, ignore_errors=True)


def _announced(site: Site, slug: str) -> Collection:
    collection = collection_of(site.runtime, TENANT, slug)
    announce_documents(site.runtime, collection, MANY)
    return collection


def _items(site: Site, collection: Collection) -> int:
    """How many items the collection's unfinished index holds."""
    with site.runtime.app.tenant(TENANT) as connection:
        building = generations.generations_in(
            connection, collection, backend="weaviate", states=["building"]
        )
    try:
        return sum(map(site.runtime.index.count, building))
    except IndexUnavailable:  # its storage is being made at this moment
        return 0


def _is_taken(site: Site, collection: Collection) -> bool:
    """Whether a run has begun with the announced snapshot."""
    (event,) = inbox.pending(site.runtime.app, collection) or (None,)
    return event is None or event.attempts > 0


@pytest.mark.parametrize("server", ["weaviate", "postgres"])
def test_a_server_killed_during_an_import_costs_a_second_run_and_nothing_else(
    site: Site, server: str
) -> None:
    disturbed, twin = _announced(site, f"docs-{server}"), _announced(site, f"twin-{server}")
    with site.start_work(disturbed) as worker:
        if server == "weaviate":
            assert wait_until(lambda: _items(site, disturbed) > 0, 60)
            found = find_weaviate(site.home)
            assert found is not None
            site.kill(found.process)
        else:
            assert wait_until(lambda: _is_taken(site, disturbed), 60)
            postgres = find_postgres(site.home)
            assert postgres is not None
            site.kill(postgres)
        _, error = worker.communicate(timeout=120)
    assert worker.returncode == 1, error
    assert any(name in error for name in NOTICED[server]), error
    with site.start_work(disturbed) as again:
        _, error = again.communicate(timeout=120)
    assert again.returncode == 0, error
    index(site.runtime, twin)
    assert state_of(site.runtime, disturbed) == state_of(site.runtime, twin)
    assert len(state_of(site.runtime, disturbed)["index"]) == len(MANY)


def test_a_killed_service_answers_the_same_when_it_is_back_and_keeps_its_records(
    site: Site,
) -> None:
    collection = collection_of(site.runtime, TENANT, "asked")
    announce_documents(site.runtime, collection, MANY[:50])
    index(site.runtime, collection)
    others = set(psutil.Process().children())
    with serving(site.home, site.runtime, exit_code=-signal.SIGKILL) as url:
        reader = caller(url, site.runtime, TENANT)
        before = [reader.search(f"number{n}", collections=["asked"]) for n in range(10)]
        path = f"{BASE}/queries/{before[-1]['queryId']}"
        assert wait_until(lambda: reader.get(path).status_code == 200, 10)
        (service,) = set(psutil.Process().children()) - others
        service.send_signal(signal.SIGKILL)
    with serving(site.home, site.runtime) as url:
        reader = caller(url, site.runtime, TENANT)
        for number, answer in enumerate(before):
            again = reader.search(f"number{number}", collections=["asked"])
            assert legs(again) == legs(answer)
            assert again["candidates"] == answer["candidates"]
        for answer in before:  # records of another client: its own are its own
            assert reader.get(f"{BASE}/queries/{answer['queryId']}").status_code == 404
    with site.runtime.app.tenant(TENANT) as connection:
        rows = connection.execute("select query_id::text as id from retrieval_queries").fetchall()
    assert {answer["queryId"] for answer in before} <= {row["id"] for row in rows}
