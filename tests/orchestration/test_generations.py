"""Rebuilds and garbage collection from Dagster: jobs, the sensor, the schedule."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest

from knowledge.home import Home
from knowledge.indexing.rebuild_requests import cancel_rebuild, request_rebuild
from knowledge.model.collection import Collection
from knowledge.runtime import Runtime
from knowledge.storage.postgres import inbox, rebuilds, revisions
from knowledge.storage.postgres.rebuilds import Rebuild, RebuildState
from orchestration.definitions import defs
from orchestration.defs.generations.schedules import garbage_collection
from orchestration.defs.generations.sensors import rebuild_requests
from orchestration.defs.partitions import collections
from orchestration.defs.resources import KnowledgeHome
from orchestration.defs.snapshots.sensors import published_chunks
from orchestration.run import main
from tests.orchestration.conftest import Publish, PublishTexts, Run, metadata_of

Execute = Callable[..., dg.ExecuteInProcessResult]


@pytest.fixture
def execute(instance: dg.DagsterInstance) -> Execute:
    """Run a job for a partition, quietly."""

    def run(job: str, partition: str, **config: str) -> dg.ExecuteInProcessResult:
        instance.add_dynamic_partitions(str(collections.name), [partition])
        run_config: dict[str, Any] = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
        if config:
            run_config["ops"] = {"rebuild_generation": {"config": config}}
        return defs.resolve_job_def(job).execute_in_process(
            instance=instance, partition_key=partition, run_config=run_config, raise_on_error=False
        )

    return run


@pytest.fixture
def served(create_collection: Publish, publish_texts: PublishTexts, run: Run) -> Collection:
    """A collection that serves revision 1 from words alone."""
    collection = create_collection("docs")
    publish_texts(collection)
    assert run(collection.partition).success
    return collection


def _asked(runtime: Runtime, collection: Collection, profile: str | None = None) -> Rebuild:
    asked = request_rebuild(
        runtime.app, collection, profile=profile, reason="requested", requested_by="test"
    )
    assert asked is not None
    return asked


def _revisions(runtime: Runtime, collection: Collection) -> set[int]:
    return {r.revision for r in revisions.serving_revisions(runtime.app, collection)}


def test_a_rebuild_launched_by_hand_changes_the_profile_and_shows_in_the_lineage(
    runtime: Runtime, served: Collection, execute: Execute
) -> None:
    result = execute("rebuild", served.partition, embedding_profile="minilm@1")
    assert result.success
    assert _revisions(runtime, served) == {2}
    events = result.get_asset_materialization_events()
    assert [event.asset_key for event in events] == [
        dg.AssetKey(asset) for asset in ("hybrid_index", "serving")
    ]
    assert {event.partition for event in events} == {served.partition}
    shown = {check.check_name: check for check in result.get_asset_check_evaluations()}
    assert shown["hybrid_index_valid"].passed
    assert shown["hybrid_index_valid"].partition == served.partition
    assert runtime.collection(served.tenant_id, "docs").embedding_profile == "minilm@1"


def test_an_unknown_profile_fails_the_run_with_one_line(
    runtime: Runtime, served: Collection, execute: Execute
) -> None:
    result = execute("rebuild", served.partition, embedding_profile="bge@1")
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    failure = failed.step_failure_data.user_failure_data
    assert failure is not None
    assert failure.description == "unknown embedding profile 'bge@1': use one of minilm@1"
    assert _revisions(runtime, served) == {1}


def test_a_rebuild_that_was_asked_for_gets_one_run_and_publishes_go_on_beside_it(
    runtime: Runtime,
    instance: dg.DagsterInstance,
    served: Collection,
    execute: Execute,
    publish_texts: PublishTexts,
) -> None:
    asked = _asked(runtime, served)
    (request,) = _requests(rebuild_requests, instance, served)
    assert request.run_key == f"{asked.rebuild_id}:0"
    stillborn = instance.create_run_for_job(
        defs.resolve_job_def("rebuild"),
        status=dg.DagsterRunStatus.NOT_STARTED,
        tags={"dagster/partition": served.partition, "dagster/run_key": str(request.run_key)},
    )
    instance.report_run_failed(stillborn)
    assert _requests(rebuild_requests, instance, served) == []  # the key was run: counted
    assert rebuilds.find(runtime.app, served.tenant_id, asked.rebuild_id).claims == 1
    instance.create_run_for_job(
        defs.resolve_job_def("rebuild"),
        status=dg.DagsterRunStatus.NOT_STARTED,
        tags={"dagster/partition": served.partition},
    )
    assert _requests(rebuild_requests, instance, served) == []
    publish_texts(served, ["a fresh text"])
    assert len(_requests(published_chunks, instance, served)) == 1


def _requests(
    sensor: Any, instance: dg.DagsterInstance, collection: Collection
) -> list[dg.RunRequest]:
    with dg.build_sensor_context(
        instance=instance, definitions=defs, resources={"home": KnowledgeHome()}
    ) as context:
        found = sensor(context)
    requests = getattr(found, "run_requests", None) or []
    return [request for request in requests if request.partition_key == collection.partition]


def test_a_cancelled_rebuild_ends_its_run_quietly(
    runtime: Runtime, served: Collection, execute: Execute
) -> None:
    asked = _asked(runtime, served)
    cancel_rebuild(runtime.app, served, asked)
    result = execute("rebuild", served.partition, rebuild_id=str(asked.rebuild_id))
    assert result.success
    assert _revisions(runtime, served) == {1}


def test_the_command_rebuilds_where_no_daemon_runs(
    home: Home, runtime: Runtime, served: Collection, instance: dg.DagsterInstance
) -> None:
    asked = _asked(runtime, served)
    place = ["--home", str(home.root), "--partition", served.partition]
    assert main([*place, "--job", "rebuild", "--rebuild", str(asked.rebuild_id)]) == 0
    found = rebuilds.find(runtime.app, served.tenant_id, asked.rebuild_id)
    assert found.state is RebuildState.SWITCHED
    assert main([*place, "--job", "rebuild", "--rebuild", str(uuid.uuid4())]) == 1


def test_garbage_collection_is_due_where_history_is_kept_no_longer(
    runtime: Runtime,
    instance: dg.DagsterInstance,
    served: Collection,
    execute: Execute,
    run: Run,
    publish_texts: PublishTexts,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sequence = publish_texts(served, ["only one"])
    assert run(served.partition).success
    assert inbox.event_state(runtime.app, served.tenant_id, sequence)["state"] == "served"
    assert served.partition not in _due(instance)
    monkeypatch.setenv("KNOWLEDGE__INDEXING__KEEP_REVISIONS", "1")
    monkeypatch.setenv("KNOWLEDGE__INDEXING__KEEP_DAYS", "0")
    assert served.partition in _due(instance)
    result = execute("collect", served.partition)
    assert result.success
    found = metadata_of(result, "collected_revisions")
    assert (found["oldest_revision_kept"], found["chunk_versions_deleted"]) == (2, 5)
    assert served.partition not in _due(instance)


def _due(instance: dg.DagsterInstance) -> set[str | None]:
    with dg.build_schedule_context(
        instance=instance, resources={"home": KnowledgeHome()}
    ) as context:
        found = garbage_collection(context)
    return {request.partition_key for request in found} if isinstance(found, list) else set()
