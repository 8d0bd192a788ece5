"""What a failure inside a step becomes."""

from collections.abc import Iterator

import dagster as dg
import pytest

from knowledge.errors import InvalidSnapshot, LeaseHeld
from knowledge.indexing.tick import leased
from knowledge.runtime import Runtime
from knowledge.storage.postgres import inbox
from orchestration.defs.resources import KnowledgeHome
from orchestration.defs.steps import RETRIES, TRANSIENT, collection_step
from tests.orchestration.conftest import Publish, PublishTexts


@pytest.fixture
def opened() -> Iterator[KnowledgeHome]:
    resource = KnowledgeHome()
    yield resource
    resource.close()


def _context(instance: dg.DagsterInstance, partition: str) -> dg.AssetExecutionContext:
    return dg.build_asset_context(partition_key=partition, instance=instance)


def test_a_lease_held_by_another_run_is_left_to_the_retry_policy_and_noted(
    runtime: Runtime,
    instance: dg.DagsterInstance,
    create_collection: Publish,
    publish_texts: PublishTexts,
    opened: KnowledgeHome,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KNOWLEDGE__INDEXING__LEASE_WAIT_S", "0")
    collection = create_collection("docs")
    sequence = publish_texts(collection)
    context = _context(instance, collection.partition)
    with (
        leased(runtime, collection.tenant_id, "docs", "another run"),
        pytest.raises(LeaseHeld),
        collection_step(context, opened),
    ):
        pytest.fail("two runs hold one lease")
    state = inbox.event_state(runtime.app, collection.tenant_id, sequence)
    assert "another run is indexing" in state["error"]
    assert state["state"] == "pending"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (InvalidSnapshot("part-0 is cut short"), "part-0 is cut short"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError('division by zero')"),
    ],
)
def test_any_other_error_fails_the_step_at_once_with_its_reason(
    runtime: Runtime,
    instance: dg.DagsterInstance,
    create_collection: Publish,
    publish_texts: PublishTexts,
    opened: KnowledgeHome,
    error: Exception,
    reason: str,
) -> None:
    collection = create_collection("docs")
    sequence = publish_texts(collection)
    context = _context(instance, collection.partition)

    with pytest.raises(dg.Failure) as caught, collection_step(context, opened):
        raise error

    assert caught.value.description == reason
    assert not caught.value.allow_retries
    state = inbox.event_state(runtime.app, collection.tenant_id, sequence)
    assert state["error"] == reason


def test_only_absent_services_and_held_leases_are_tried_again() -> None:
    assert {error.__name__ for error in TRANSIENT} == {"Unavailable", "LeaseHeld"}
    assert RETRIES.max_retries == 3
    assert RETRIES.backoff is dg.Backoff.EXPONENTIAL
