"""Which check stops what, and where an operator sees it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from knowledge.model.chunk import ChunkVersion
from knowledge.model.collection import Collection
from knowledge.model.revision import OPEN
from knowledge.runtime import Runtime
from knowledge.storage.postgres import chunk_versions, generations, revisions
from orchestration.definitions import defs
from orchestration.defs.checks.schedules import nightly_checks
from orchestration.defs.partitions import collections
from orchestration.defs.resources import KnowledgeHome
from tests.orchestration.conftest import (
    TEXTS,
    Publish,
    PublishTexts,
    Run,
    announce_chunks,
    failure_of,
)

Check = Callable[[Collection], dg.ExecuteInProcessResult]
QUIET: dict[str, Any] = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
INDEX = [dg.AssetKey(name) for name in ("hybrid_index", "metadata_index", "serving")]


@pytest.fixture
def check(instance: dg.DagsterInstance) -> Check:
    """Run the job ``check_collections`` for a collection."""

    def execute(collection: Collection) -> dg.ExecuteInProcessResult:
        instance.add_dynamic_partitions(str(collections.name), [collection.partition])
        return defs.resolve_job_def("check_collections").execute_in_process(
            instance=instance,
            partition_key=collection.partition,
            run_config=QUIET,
            raise_on_error=False,
        )

    return execute


@pytest.fixture
def served(create_collection: Publish, publish_texts: PublishTexts, run: Run) -> Collection:
    """A collection with vectors that serves revision 1."""
    collection = create_collection("docs", "minilm@1")
    publish_texts(collection)
    assert run(collection.partition).success
    return collection


def _shown(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetCheckEvaluation]:
    return {found.check_name: found for found in result.get_asset_check_evaluations()}


def _failing(result: dg.ExecuteInProcessResult) -> set[str]:
    return {name for name, found in _shown(result).items() if not found.passed}


def _serving(runtime: Runtime, collection: Collection) -> set[int]:
    found = revisions.serving_revisions(runtime.app, collection)
    return {revision.revision for revision in found}


def _spoil_vectors(runtime: Runtime, collection: Collection) -> None:
    """Make the first number of every cached vector NaN."""
    for path in (runtime.home.vectors_dir / collection.tenant_id).rglob("*.parquet"):
        table = pq.read_table(path)
        vectors = np.array(table["vector"].to_pylist(), dtype=np.float32)
        vectors[:, 0] = np.nan
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
        pq.write_table(pa.table({"text_hash": table["text_hash"], "vector": column}), path)


def _version(runtime: Runtime, collection: Collection, *, is_open: bool = True) -> ChunkVersion:
    today = runtime.collection(collection.tenant_id, collection.slug)
    held = chunk_versions.versions_held(runtime.app, today, created=1, upto=today.head_rev)
    return next(
        version for batch in held for version in batch if (version.to_rev == OPEN) is is_open
    )


def _write(runtime: Runtime, collection: Collection, version: ChunkVersion) -> None:
    """Put a version into the serving generation behind its back."""
    vectors = runtime.vectors(collection.tenant_id, "minilm@1").get([version.text_hash])
    with runtime.app.tenant(collection.tenant_id) as connection:
        generation = generations.serving_generation(connection, collection)
    assert generation is not None
    runtime.index.upsert(generation, [version], vectors)


# --- before the switch -------------------------------------------------------------------


def test_a_publish_shows_the_checks_of_vectors_and_index_and_none_of_the_whole(
    create_collection: Publish, publish_texts: PublishTexts, run: Run
) -> None:
    collection = create_collection("docs", "minilm@1")
    publish_texts(collection)
    result = run(collection.partition)
    assert result.success
    shown = _shown(result)
    assert {"embeddings_valid", "hybrid_index_valid"} < shown.keys()
    assert not [name for name in shown if name.startswith(("whole_", "all_", "collection_"))]
    assert _failing(result) == set()
    metadata = shown["hybrid_index_valid"].metadata
    assert "item_count_equals_postgresql" in str(metadata["checks"].value)
    assert metadata["looked_at"].value == [collection.partition]


def test_a_nan_in_the_cache_stops_the_run_before_the_index_is_written(
    runtime: Runtime, create_collection: Publish, publish_texts: PublishTexts, run: Run
) -> None:
    collection = create_collection("docs", "minilm@1")
    publish_texts(collection)
    run(collection.partition, [dg.AssetKey("chunk_snapshot"), dg.AssetKey("embeddings")])
    _spoil_vectors(runtime, collection)

    result = run(collection.partition)

    assert not result.success
    assert _failing(result) == {"embeddings_valid"}
    shown = _shown(result)["embeddings_valid"]
    assert shown.description == "cached_vector_is_finite: 5 rows"
    failing: Any = shown.metadata["failing_ids"].value
    assert {row["check"] for row in failing} == {"cached_vector_is_finite"}
    assert all(uuid.UUID(row["chunk_id"]) and row["file_name"] for row in failing)
    assert "fails cached_vector_is_finite (5 rows): remove the files" in failure_of(result)
    assert not [event for event in result.all_events if event.is_step_up_for_retry]
    assert "hybrid_index" not in {e.step_key for e in result.all_events if e.is_step_success}
    assert _serving(runtime, collection) == set()


def test_a_nan_in_the_cache_is_refused_also_where_no_check_ran(
    runtime: Runtime, create_collection: Publish, publish_texts: PublishTexts, run: Run
) -> None:
    collection = create_collection("docs", "minilm@1")
    publish_texts(collection)
    run(collection.partition, [dg.AssetKey("chunk_snapshot"), dg.AssetKey("embeddings")])
    _spoil_vectors(runtime, collection)

    result = run(collection.partition, INDEX)

    assert "holds a vector that is not finite: remove the file" in failure_of(result)
    assert _serving(runtime, collection) == set()


def test_an_empty_path_rejects_the_snapshot_and_names_the_chunk(
    runtime: Runtime, create_collection: Publish, run: Run
) -> None:
    collection = create_collection("docs")
    announce_chunks(runtime, collection, ["a good text", "another"], paths=["a.md", ""])
    result = run(collection.partition)
    assert "path_not_empty (1 rows)" in failure_of(result)
    assert _failing(result) == {"chunks_valid"}
    assert _serving(runtime, collection) == set()


def _foreign(version: ChunkVersion) -> ChunkVersion:
    return replace(version, object_id=uuid.UUID(int=7))


def _readable_by_mallory(version: ChunkVersion) -> ChunkVersion:
    return replace(version, chunk=replace(version.chunk, acl=("user:mallory",)))


def _visible_again(version: ChunkVersion) -> ChunkVersion:
    return replace(version, to_rev=OPEN)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (_readable_by_mallory, {"acl_equals_postgresql"}),
        (_visible_again, {"one_version_of_a_chunk_is_visible", "revisions_equal_postgresql"}),
    ],
)
def test_an_item_that_differs_is_seen_by_the_check_of_the_index(
    runtime: Runtime,
    served: Collection,
    publish_texts: PublishTexts,
    run: Run,
    check: Check,
    change: Callable[[ChunkVersion], ChunkVersion],
    names: set[str],
) -> None:
    publish_texts(served, ["cancelling a booking, changed", *TEXTS[1:]])
    assert run(served.partition).success
    version = _version(runtime, served, is_open=change is not _visible_again)
    _write(runtime, served, change(version))

    result = check(served)

    assert not result.success
    assert _failing(result) == {"whole_index_valid"}
    failing: Any = _shown(result)["whole_index_valid"].metadata["failing_ids"].value
    assert names <= {row["check"] for row in failing}
    assert str(version.chunk_id) in {row.get("chunk_id") for row in failing}


# --- the whole collection, each night ----------------------------------------------------


def test_a_sound_collection_passes_the_checks_of_the_whole(
    served: Collection, check: Check
) -> None:
    result = check(served)
    assert result.success
    assert _shown(result).keys() == {
        "all_embeddings_valid",
        "whole_index_valid",
        "collection_valid",
        "collection_plausible",
    }
    assert _failing(result) == set()


def test_a_lost_object_fails_the_run_and_is_named_and_the_next_run_mends_it(
    runtime: Runtime, served: Collection, run: Run, check: Check
) -> None:
    lost = _version(runtime, served).object_id
    with runtime.app.tenant(served.tenant_id) as connection:
        generation = generations.serving_generation(connection, served)
    assert generation is not None
    runtime.index.delete(generation, [lost])

    result = check(served)

    assert not result.success
    assert _failing(result) == {"whole_index_valid"}
    shown = _shown(result)["whole_index_valid"]
    assert shown.severity is dg.AssetCheckSeverity.ERROR
    failing: Any = shown.metadata["failing_ids"].value
    assert str(lost) in {row["object_id"] for row in failing if row["check"] == "no_item_is_lost"}
    assert _serving(runtime, served) == {1}
    assert run(served.partition).success
    assert check(served).success


def test_an_orphan_fails_the_run_and_is_named_and_the_next_run_removes_it(
    runtime: Runtime, served: Collection, run: Run, check: Check
) -> None:
    _write(runtime, served, _foreign(_version(runtime, served)))
    result = check(served)
    failing: Any = _shown(result)["whole_index_valid"].metadata["failing_ids"].value
    orphans = [row for row in failing if row["check"] == "no_item_is_unknown_to_postgresql"]
    assert [row["object_id"] for row in orphans] == [str(uuid.UUID(int=7))]
    assert run(served.partition).success
    assert check(served).success


def test_a_collection_can_be_checked_while_another_run_holds_its_lease(
    runtime: Runtime, served: Collection, check: Check
) -> None:
    with runtime.app.tenant(served.tenant_id) as connection:
        connection.execute(
            "update leases set owner = 'other', expires_at = now() + interval '1 hour'"
            " where collection_id = %s",
            [served.collection_id],
        )
    assert check(served).success


def test_the_schedule_asks_for_every_collection_once_a_night(
    served: Collection, instance: dg.DagsterInstance
) -> None:
    with dg.build_schedule_context(
        instance=instance,
        scheduled_execution_time=datetime(2026, 1, 2, 2, 30, tzinfo=UTC),
        resources={"home": KnowledgeHome()},
    ) as context:
        requests: Any = nightly_checks(context)
    found = {request.partition_key: request.run_key for request in requests}
    assert found[served.partition] == f"{served.partition}:2026-01-02"
