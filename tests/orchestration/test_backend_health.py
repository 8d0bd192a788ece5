"""Weaviate goes away and comes back, and the revisions say so."""

from collections.abc import Callable, Iterator

import dagster as dg
import pytest

from knowledge.home import Home
from knowledge.model.collection import Collection
from knowledge.runtime import Runtime
from knowledge.stack.servers import ensure_servers
from knowledge.stack.weaviate import find_weaviate, stop_weaviate
from orchestration.definitions import defs
from orchestration.defs.backend.jobs import backend_health
from orchestration.defs.backend.schedules import backend_health_probe
from orchestration.defs.resources import KnowledgeHome
from tests.orchestration.conftest import Publish, Run


@pytest.fixture
def stopped_weaviate(home: Home, runtime: Runtime) -> Iterator[Callable[[], None]]:
    """Stops the server of this home when called; it runs again after the test."""

    def stop() -> None:
        server = find_weaviate(home)
        assert server is not None
        assert stop_weaviate(server.process)

    try:
        yield stop
    finally:
        ensure_servers(home, runtime.settings)


def _states(runtime: Runtime, collection: Collection) -> dict[str, str]:
    with runtime.app.tenant(collection.tenant_id) as connection:
        rows = connection.execute(
            "select kind, state from index_revisions where collection_id = %s",
            [collection.collection_id],
        ).fetchall()
    return {row["kind"]: row["state"] for row in rows}


def _events(runtime: Runtime, collection: Collection) -> list[tuple[str, object]]:
    with runtime.app.tenant(collection.tenant_id) as connection:
        rows = connection.execute(
            "select event_type, payload from outbox where tenant_id = %s order by position",
            [collection.tenant_id],
        ).fetchall()
    return [(row["event_type"], row["payload"].get("kind")) for row in rows]


def _probe(instance: dg.DagsterInstance) -> None:
    assert defs.resolve_job_def(backend_health.name).execute_in_process(instance=instance).success


def _scheduled(instance: dg.DagsterInstance) -> tuple[int, str]:
    resources = {"home": KnowledgeHome()}
    with dg.build_schedule_context(instance=instance, resources=resources) as context:
        found = backend_health_probe.evaluate_tick(context)
    return len(found.run_requests or []), found.skip_message or ""


def test_revisions_are_degraded_while_weaviate_is_away_and_ready_afterwards(
    home: Home,
    runtime: Runtime,
    instance: dg.DagsterInstance,
    create_collection: Publish,
    publish_texts: Callable[..., int],
    run: Run,
    stopped_weaviate: Callable[[], None],
) -> None:
    collection = create_collection("docs")
    publish_texts(collection)
    run(collection.partition)
    assert _scheduled(instance)[0] == 0
    before = _events(runtime, collection)

    stopped_weaviate()
    assert _scheduled(instance)[0] == 1
    _probe(instance)
    _probe(instance)
    assert _states(runtime, collection) == {"full_text": "Degraded", "metadata": "Ready"}
    degraded = [*before, ("IndexDegraded", "full_text")]
    assert _events(runtime, collection) == degraded
    runs, reason = _scheduled(instance)
    assert runs == 0
    assert "does not run" in reason

    ensure_servers(home, runtime.settings)
    assert _scheduled(instance)[0] == 1
    _probe(instance)
    assert _states(runtime, collection) == {"full_text": "Ready", "metadata": "Ready"}
    assert _events(runtime, collection) == [*degraded, ("IndexRevisionReady", "full_text")]
