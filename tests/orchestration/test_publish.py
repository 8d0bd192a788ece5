"""From published to served, and what stops on the way."""

import json
import uuid
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from knowledge.indexing.consistency import compare_hybrid
from knowledge.model.collection import Collection
from knowledge.runtime import Runtime
from knowledge.storage.postgres import generations, inbox
from knowledge.storage.snapshots import read_snapshot
from tests.orchestration.conftest import (
    Publish,
    PublishTexts,
    Run,
    announce_chunks,
    failure_of,
    metadata_of,
)

KINDS = {None: "full_text, metadata", "minilm@1": "full_text, metadata, vector"}


def _head(runtime: Runtime, collection: Collection) -> int:
    return runtime.collection(collection.tenant_id, collection.slug).head_rev


def _revisions(runtime: Runtime, collection: Collection) -> list[tuple[str, int, str]]:
    with runtime.app.tenant(collection.tenant_id) as connection:
        rows = connection.execute(
            "select kind, revision, state from index_revisions where collection_id = %s"
            " order by kind, revision",
            [collection.collection_id],
        ).fetchall()
    return [(row["kind"], row["revision"], row["state"]) for row in rows]


@pytest.mark.parametrize("profile", [None, "minilm@1"])
def test_a_published_feed_is_served_after_one_run(
    runtime: Runtime,
    create_collection: Publish,
    publish_texts: PublishTexts,
    run: Run,
    profile: str | None,
) -> None:
    collection = create_collection("docs", profile)
    sequence = publish_texts(collection)

    result = run(collection.partition)

    assert result.success
    assert inbox.event_state(runtime.app, collection.tenant_id, sequence)["state"] == "served"
    snapshot = metadata_of(result, "chunk_snapshot")
    assert (snapshot["revision"], snapshot["chunks_opened"], snapshot["events"]) == (1, 5, 1)
    assert metadata_of(result, "embeddings")["texts_embedded"] == (5 if profile else 0)
    assert metadata_of(result, "hybrid_index")["items_held"] == 5
    served = metadata_of(result, "serving")
    assert (served["revision"], served["chunks_visible"]) == (1, 5)
    assert served["switched"] == KINDS[profile]
    assert "gate" not in str(served["sample"])  # ids, paths and lengths, never text


def test_a_second_run_changes_nothing(
    runtime: Runtime, create_collection: Publish, publish_texts: PublishTexts, run: Run
) -> None:
    collection = create_collection("docs")
    publish_texts(collection)
    run(collection.partition)
    before = _revisions(runtime, collection)

    again = run(collection.partition)

    assert again.success
    assert metadata_of(again, "chunk_snapshot")["clock_ticked"] is False
    assert metadata_of(again, "hybrid_index")["items_written"] == 0
    assert _revisions(runtime, collection) == before


def test_a_changed_document_opens_and_closes_one_chunk(
    runtime: Runtime, create_collection: Publish, publish_texts: PublishTexts, run: Run
) -> None:
    collection = create_collection("docs")
    publish_texts(collection, ["one page", "another page"])
    run(collection.partition)
    publish_texts(collection, ["one page", "another page, changed"])

    snapshot = metadata_of(run(collection.partition), "chunk_snapshot")

    counts = [snapshot[f"chunks_{name}"] for name in ("opened", "closed", "unchanged")]
    assert counts == [1, 1, 1]
    assert _revisions(runtime, collection) == [
        ("full_text", 1, "Retired"),
        ("full_text", 2, "Ready"),
        ("metadata", 1, "Retired"),
        ("metadata", 2, "Ready"),
    ]


def test_a_run_lets_its_lease_go_even_without_the_switch(
    runtime: Runtime, create_collection: Publish, publish_texts: PublishTexts, run: Run
) -> None:
    collection = create_collection("docs")
    publish_texts(collection)

    assert run(collection.partition, [dg.AssetKey("chunk_snapshot")]).success

    with runtime.app.tenant(collection.tenant_id) as connection:
        row = connection.execute(
            "select owner from leases where collection_id = %s", [collection.collection_id]
        ).fetchone()
    assert row == {"owner": ""}


@pytest.mark.parametrize(
    "assets", [["embeddings"], ["hybrid_index"], ["metadata_index"], ["embeddings", "hybrid_index"]]
)
def test_any_selection_of_assets_can_run_after_the_clock_ticked(
    create_collection: Publish, publish_texts: PublishTexts, run: Run, assets: list[str]
) -> None:
    collection = create_collection("docs")
    publish_texts(collection)
    run(collection.partition, [dg.AssetKey("chunk_snapshot")])

    result = run(collection.partition, [dg.AssetKey(asset) for asset in assets])

    assert result.success
    assert metadata_of(result, assets[-1])["revision"] == 1


def test_the_switch_alone_refuses_an_index_that_is_behind(
    runtime: Runtime, create_collection: Publish, publish_texts: PublishTexts, run: Run
) -> None:
    collection = create_collection("docs")
    publish_texts(collection)
    run(collection.partition, [dg.AssetKey("chunk_snapshot")])

    result = run(collection.partition, [dg.AssetKey("serving")])

    assert "materialise the index assets first" in failure_of(result)
    assert _revisions(runtime, collection) == []


@pytest.mark.parametrize("profile", [None, "minilm@1"])
def test_a_collection_never_published_materialises_with_zero_counts(
    runtime: Runtime, create_collection: Publish, run: Run, profile: str | None
) -> None:
    collection = create_collection("empty", profile)

    result = run(collection.partition)

    assert result.success
    assert metadata_of(result, "hybrid_index")["items_held"] == 0
    assert metadata_of(result, "serving")["revision"] == 0
    assert _revisions(runtime, collection) == []


def test_every_partition_can_be_materialised_whatever_its_state(
    create_collection: Publish, publish_texts: PublishTexts, run: Run
) -> None:
    pending, served, empty = (create_collection(slug) for slug in ("pending", "served", "empty"))
    publish_texts(served)
    run(served.partition)
    publish_texts(pending)

    results = [run(collection.partition) for collection in (pending, served, empty)]

    assert [result.success for result in results] == [True, True, True]
    served_at = [metadata_of(result, "serving")["revision"] for result in results]
    assert served_at == [1, 1, 0]


# --- what is refused ---------------------------------------------------------------------


def test_a_broken_checksum_rejects_the_snapshot_and_the_clock_stands_still(
    runtime: Runtime, create_collection: Publish, publish_texts: PublishTexts, run: Run
) -> None:
    collection = create_collection("docs")
    sequence = publish_texts(collection)
    (event,) = inbox.pending(runtime.app, collection)
    (file,) = read_snapshot(Path(event.payload["manifest"])).parquet_files
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))

    result = run(collection.partition)

    assert not result.success
    assert "does not have the checksum its manifest names" in failure_of(result)
    assert [event.step_key for event in result.all_events if event.is_step_failure] == [
        "chunk_snapshot"
    ]
    assert not [event for event in result.all_events if event.is_step_up_for_retry]
    assert _head(runtime, collection) == 0
    state = inbox.event_state(runtime.app, collection.tenant_id, sequence)
    assert (state["state"], state["error"]) == ("rejected", failure_of(result))


def test_a_failing_blocking_check_stops_before_the_clock_and_names_the_rows(
    runtime: Runtime, create_collection: Publish, run: Run
) -> None:
    collection = create_collection("docs")
    sequence = announce_chunks(runtime, collection, ["a good text", ""])

    result = run(collection.partition)

    assert not result.success
    assert "text_not_empty (1 rows)" in failure_of(result)
    assert _head(runtime, collection) == 0
    state = inbox.event_state(runtime.app, collection.tenant_id, sequence)
    assert state["state"] == "rejected"
    shown = {check.check_name: check for check in result.get_asset_check_evaluations()}
    assert shown["manifest_sources_valid"].passed
    assert not shown["chunks_valid"].passed
    assert shown["chunks_valid"].severity is dg.AssetCheckSeverity.ERROR
    failing_ids: Any = shown["chunks_valid"].metadata["failing_ids"].value
    (failing,) = failing_ids
    assert failing["check"] == "text_not_empty"
    assert uuid.UUID(failing["chunk_id"])
    assert "good text" not in json.dumps(failing)


def test_a_warning_is_reported_and_does_not_stop_the_run(
    runtime: Runtime, create_collection: Publish, run: Run
) -> None:
    collection = create_collection("docs")
    announce_chunks(runtime, collection, ["a good text", "ab"])

    result = run(collection.partition)

    assert result.success
    shown = {check.check_name: check for check in result.get_asset_check_evaluations()}
    assert not shown["chunks_plausible"].passed
    assert shown["chunks_plausible"].severity is dg.AssetCheckSeverity.WARN
    assert _head(runtime, collection) == 1


def test_an_item_unknown_to_postgresql_is_removed_before_the_switch(
    runtime: Runtime, create_collection: Publish, publish_texts: PublishTexts, run: Run
) -> None:
    collection = create_collection("docs")
    publish_texts(collection)
    run(collection.partition, [dg.AssetKey("chunk_snapshot"), dg.AssetKey("hybrid_index")])
    gone = _forget_a_chunk(runtime, collection)

    assets = [dg.AssetKey(name) for name in ("hybrid_index", "metadata_index", "serving")]
    result = run(collection.partition, assets)

    assert result.success
    shown = {check.check_name: check for check in result.get_asset_check_evaluations()}
    assert shown["hybrid_index_valid"].passed
    with runtime.app.tenant(collection.tenant_id) as connection:
        generation = generations.serving_generation(connection, collection)
    assert generation is not None
    held = {item.object_id for item in runtime.index.items(generation)}
    assert (len(held), gone in held) == (4, False)


def test_the_index_checks_see_an_orphan(
    runtime: Runtime, create_collection: Publish, publish_texts: PublishTexts, run: Run
) -> None:
    collection = create_collection("docs")
    publish_texts(collection)
    run(collection.partition)
    gone = _forget_a_chunk(runtime, collection)

    found = compare_hybrid(runtime, collection, whole=True)

    assert found is not None
    assert (found.expected, found.found, found.orphans) == (4, 5, (gone,))


def _forget_a_chunk(runtime: Runtime, collection: Collection) -> uuid.UUID:
    with runtime.owner.transaction() as connection:
        row = connection.execute(
            "select object_id from chunk_versions where collection_id = %s limit 1",
            [collection.collection_id],
        ).fetchone()
        assert row is not None
        for table in ("metadata_items", "chunk_versions"):
            connection.execute(f"delete from {table} where object_id = %s", [row["object_id"]])
    found: uuid.UUID = row["object_id"]
    return found
