"""An installation that goes over to another backend: nothing is asked of the wrong one."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import pytest

from knowledge.cli.searching import named_or_temporary_caller, opened_searcher
from knowledge.home import Home
from knowledge.model.collection import Collection
from knowledge.model.scope import Caller
from knowledge.retrieval.answer import Answer
from knowledge.retrieval.request import BUILT, SearchRequest
from knowledge.runtime import Runtime, index_location
from knowledge.stack.servers import current_addresses
from knowledge.storage.pgvector.index import PgvectorIndex
from tests.publication import collection_of, index, publish_documents


def _generations(runtime: Runtime, collection: Collection) -> dict[str, str]:
    """The state of the newest generation of each backend."""
    with runtime.app.tenant(collection.tenant_id) as connection:
        rows = connection.execute(
            "select distinct on (backend) backend, state from generations"
            " where collection_id = %s order by backend, created_at desc",
            [collection.collection_id],
        ).fetchall()
    return {row["backend"]: row["state"] for row in rows}


def _ask(runtime: Runtime, tenant: str) -> tuple[dict[str, str], dict[str, str]]:
    """State and reason of each leg that is built; the answer is whole whatever they are."""
    request = SearchRequest("lease 4", "p1")

    async def search(caller: Caller) -> Answer:
        async with opened_searcher(runtime, caller, request) as searcher:
            return await searcher.search(caller, request)

    with named_or_temporary_caller(runtime, tenant, "p1", None) as caller:
        answer = asyncio.run(search(caller))
    assert answer.chunks[0].citation.path == "4"
    reports = [report for report in answer.legs if report.leg in BUILT]
    return (
        {report.leg.value: report.state.value for report in reports},
        {report.leg.value: report.reason or "" for report in reports},
    )


def test_the_next_run_builds_the_index_in_the_new_backend_and_serves_from_it(
    runtime: Runtime, tenant: str
) -> None:
    collection = collection_of(runtime, tenant)
    publish_documents(runtime, collection, [{"id": str(n), "text": f"lease {n}"} for n in range(9)])
    assert _generations(runtime, collection)["weaviate"] == "serving"
    settings = runtime.settings.model_copy(update={"vector_backend": "pgvector"})
    moved = replace(runtime, settings=settings, index=PgvectorIndex(runtime.app))
    found, reasons = _ask(moved, tenant)
    assert found == {"vector": "skipped", "fullText": "fallback", "metadata": "ok"}
    assert "indexed in weaviate, this installation uses pgvector" in reasons["fullText"]
    assert "knowledge rebuild" in reasons["fullText"]
    index(moved, collection)
    assert _ask(moved, tenant)[0]["fullText"] == "ok"
    made = _generations(runtime, collection)
    assert (made["pgvector"], made["weaviate"]) == ("serving", "retired")
    with runtime.app.tenant(tenant) as connection:
        rows = connection.execute("select path, words from hybrid_items").fetchall()
    assert len(rows) == 9


@pytest.mark.parametrize(
    ("backend", "version"),
    [("weaviate", r"1\.\d+\.\d+"), ("pgvector", r"PostgreSQL 18\.\d+ / pgvector 0\..+")],
)
def test_a_backend_that_answers_tells_its_version(
    home: Home, runtime: Runtime, backend: str, version: str
) -> None:
    servers = current_addresses(home, runtime.settings)
    assert servers is not None
    location = replace(index_location(home, runtime.settings, servers), backend=backend)
    assert re.fullmatch(version, location.probe(runtime.app))
