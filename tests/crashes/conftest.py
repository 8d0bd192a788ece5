"""Processes that are killed at a named place, beside readers that go on asking."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from knowledge.crash_points import VARIABLE
from knowledge.home import Home
from knowledge.model.collection import Collection
from knowledge.retrieval.answer import Answer
from knowledge.retrieval.request import SearchRequest
from knowledge.runtime import Runtime
from tests.asking import Asker, asking, caller_of
from tests.storage.conftest import Backend, on_servers

ROOT = Path(__file__).parents[2]
KEEPING_TWO = {
    "KNOWLEDGE__INDEXING__LEASE_TTL_S": "1.5",  # a killed writer's lease is soon over
    "KNOWLEDGE__INDEXING__KEEP_REVISIONS": "2",
    "KNOWLEDGE__INDEXING__KEEP_DAYS": "0",
    "KNOWLEDGE__RETRIEVAL__REQUEST_TIMEOUT_S": "0.1",
}

Work = Callable[..., int]


@dataclass(frozen=True)
class Site:
    """One backend on the worker's servers, as the product opens it."""

    name: str
    runtime: Runtime
    backend: Backend
    work: Work


@pytest.fixture(scope="session", params=["weaviate", "pgvector"])
def site(request: pytest.FixtureRequest, home: Home, runtime: Runtime) -> Iterator[Site]:
    """Both backends on servers; one in this process's memory cannot outlive a process."""
    name = request.param
    made = on_servers(name, home.installation_id)(home, runtime)
    environment = {**os.environ, **KEEPING_TWO, "KNOWLEDGE_HOME": str(home.root)}
    environment["KNOWLEDGE_VECTOR_BACKEND"] = name

    def work(step: str, collection: Collection, *, crash_at: str | None = None) -> int:
        extra = {VARIABLE: crash_at} if crash_at else {}
        done = subprocess.run(
            [
                *(sys.executable, "-m", "tests.crashes.worker"),
                *(step, collection.tenant_id, collection.slug),
            ],
            cwd=ROOT,
            env=environment | extra,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        return done.returncode

    yield Site(name, replace(runtime, index=made.index), made, work)
    made.index.close()


@dataclass
class Reader:
    """What a reader saw: answers in order, and the first error."""

    answers: list[Answer] = field(default_factory=list)
    error: BaseException | None = None

    def seen(self) -> list[tuple[int, frozenset[str]]]:
        """Revision and texts of each answer."""
        found = []
        for answer in self.answers:
            assert not answer.degraded, answer.legs
            (revision,) = {leg.index_revision for leg in answer.legs if leg.index_revision}
            found.append((revision, frozenset(c.text for c in answer.candidates)))
        return found


@pytest.fixture
def reading(site: Site) -> Callable[[Collection], object]:
    """Ask again and again, in a thread, for as long as the block lasts."""

    @contextmanager
    def read(collection: Collection, query: str = "lease") -> Iterator[Reader]:
        reader, stop = Reader(), threading.Event()
        caller = caller_of(site.runtime, collection.tenant_id, groups=("x",))
        request = SearchRequest(
            query, "p1", collections=(collection.slug,), top_k=100, rerank="none"
        )

        def ask(asker: Asker) -> None:
            while True:
                reader.answers.append(asker.ask(caller, request))
                if stop.wait(0.02):
                    return

        def run() -> None:
            try:
                with asking(site.runtime, site.backend.search()) as asker:
                    ask(asker)
            except BaseException as error:
                reader.error = error

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield reader
        finally:
            stop.set()
            thread.join()
        if reader.error is not None:
            raise reader.error

    return read
