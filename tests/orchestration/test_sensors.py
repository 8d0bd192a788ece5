"""Which runs the sensor asks for."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest

from knowledge.model.collection import Collection
from knowledge.runtime import Runtime
from knowledge.storage.postgres import inbox
from orchestration.definitions import defs
from orchestration.defs.partitions import collections
from orchestration.defs.resources import PROCESS_TAG, KnowledgeHome, this_process
from orchestration.defs.snapshots.sensors import published_chunks
from tests.orchestration.conftest import Publish, PublishTexts, Run

Look = Callable[[Collection], list[dg.RunRequest]]


@pytest.fixture
def tick(instance: dg.DagsterInstance) -> Callable[[], Any]:
    def evaluate() -> Any:
        with dg.build_sensor_context(
            instance=instance, definitions=defs, resources={"home": KnowledgeHome()}
        ) as context:
            return published_chunks(context)

    return evaluate


@pytest.fixture
def look(tick: Callable[[], Any]) -> Look:
    """The runs a tick asks for, of one collection."""

    def requested(collection: Collection) -> list[dg.RunRequest]:
        found = tick().run_requests
        return [request for request in found if request.partition_key == collection.partition]

    return requested


def _record_run(
    instance: dg.DagsterInstance,
    collection: Collection,
    status: dg.DagsterRunStatus,
    **tags: str,
) -> dg.DagsterRun:
    return instance.create_run_for_job(
        defs.resolve_job_def("publish"),
        status=status,
        tags={"dagster/partition": collection.partition, **tags},
    )


def _ended_process() -> str:
    """The tag of a process that has ended, as one of this machine."""
    child = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    return json.dumps(json.loads(this_process()) | {"pid": int(child.stdout), "startedAt": 1.0})


def test_a_pending_collection_gets_exactly_one_run_and_its_partition(
    tick: Callable[[], Any], create_collection: Publish, publish_texts: PublishTexts
) -> None:
    collection, idle = create_collection("docs"), create_collection("idle")
    publish_texts(collection)
    last = publish_texts(collection, ["another text"])

    found = tick()

    mine = [r for r in found.run_requests if str(r.partition_key).startswith(collection.tenant_id)]
    assert [(r.partition_key, r.run_key) for r in mine] == [
        (collection.partition, f"{collection.partition}:{last}:0")
    ]
    added = {key for change in found.dynamic_partitions_requests for key in change.partition_keys}
    assert {collection.partition, idle.partition} <= added


def test_a_served_collection_gets_no_run(
    look: Look, create_collection: Publish, publish_texts: PublishTexts, run: Run
) -> None:
    collection = create_collection("docs")
    publish_texts(collection)
    assert run(collection.partition).success
    assert look(collection) == []


@pytest.mark.parametrize("status", ["NOT_STARTED", "STARTING", "STARTED"])
def test_no_run_is_asked_for_while_one_is_active(
    instance: dg.DagsterInstance,
    look: Look,
    create_collection: Publish,
    publish_texts: PublishTexts,
    status: str,
) -> None:
    collection = create_collection("docs")
    publish_texts(collection)
    active = _record_run(
        instance, collection, dg.DagsterRunStatus[status], **{PROCESS_TAG: this_process()}
    )
    assert look(collection) == []

    instance.report_run_failed(active)
    assert len(look(collection)) == 1


def test_a_run_whose_process_was_killed_does_not_hold_its_collection(
    instance: dg.DagsterInstance,
    look: Look,
    create_collection: Publish,
    publish_texts: PublishTexts,
) -> None:
    collection = create_collection("docs")
    publish_texts(collection)
    killed = _record_run(
        instance, collection, dg.DagsterRunStatus.STARTED, **{PROCESS_TAG: _ended_process()}
    )

    assert len(look(collection)) == 1
    record = instance.get_run_by_id(killed.run_id)
    assert record is not None
    assert record.status is dg.DagsterRunStatus.FAILURE


def test_a_run_that_ended_before_it_counted_its_attempt_does_not_lose_the_work(
    runtime: Runtime,
    instance: dg.DagsterInstance,
    look: Look,
    create_collection: Publish,
    publish_texts: PublishTexts,
) -> None:
    collection = create_collection("docs")
    sequence = publish_texts(collection)
    (first,) = look(collection)
    assert first.run_key is not None
    _record_run(
        instance, collection, dg.DagsterRunStatus.FAILURE, **{"dagster/run_key": first.run_key}
    )

    assert look(collection) == []  # Dagster would not run this key again
    _end_back_off(runtime, collection)
    (second,) = look(collection)

    assert second.run_key == f"{collection.partition}:{sequence}:1"


def test_work_that_failed_as_often_as_allowed_is_named_and_not_tried_again(
    runtime: Runtime,
    tick: Callable[[], Any],
    look: Look,
    create_collection: Publish,
    publish_texts: PublishTexts,
) -> None:
    collection = create_collection("docs")
    publish_texts(collection)
    for _ in range(runtime.settings.indexing.max_attempts):
        inbox.count_attempt(runtime.app, collection)
    _end_back_off(runtime, collection)

    assert look(collection) == []
    assert collection.partition in inbox.given_up(
        runtime.owner, max_attempts=runtime.settings.indexing.max_attempts
    )
    _settle(runtime, collection)


def test_the_partitions_are_those_of_the_collections_table(
    instance: dg.DagsterInstance, tick: Callable[[], Any], create_collection: Publish
) -> None:
    collection = create_collection("docs")
    instance.add_dynamic_partitions(str(collections.name), [collection.partition])
    added = [key for change in tick().dynamic_partitions_requests for key in change.partition_keys]
    assert collection.partition not in added


def _end_back_off(runtime: Runtime, collection: Collection) -> None:
    with runtime.app.tenant(collection.tenant_id) as connection:
        connection.execute(
            "update inbox set next_attempt_at = now() where collection_id = %s",
            [collection.collection_id],
        )


def _settle(runtime: Runtime, collection: Collection) -> None:
    """Leave nothing given up behind for the tests that share this home."""
    with runtime.app.tenant(collection.tenant_id) as connection:
        connection.execute(
            "update inbox set state = 'rejected' where collection_id = %s",
            [collection.collection_id],
        )
