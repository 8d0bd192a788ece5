"""The real job on a real home: PostgreSQL, Weaviate and a Dagster instance in PostgreSQL."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import dagster as dg
import pytest

from knowledge.home import Home
from knowledge.model.chunk import Chunk
from knowledge.model.collection import Collection
from knowledge.publishing.announcing import Announcement, announce
from knowledge.publishing.publish import PublishRequest, publish
from knowledge.runtime import Runtime
from knowledge.stack.dagster_instance import DATABASE_VARIABLE, write_instance_config
from knowledge.storage.postgres import catalogue
from knowledge.storage.snapshot_writer import SnapshotWriter
from knowledge.storage.snapshots import SnapshotSource
from orchestration.definitions import defs
from orchestration.defs.partitions import collections

Publish = Callable[..., Collection]
PublishTexts = Callable[..., int]
Run = Callable[..., dg.ExecuteInProcessResult]
TEXTS = ("cancelling a booking", "paying late", "the red gate", "opening hours", "lost luggage")


@pytest.fixture(autouse=True)
def _this_home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOWLEDGE_HOME", str(home.root))
    monkeypatch.setenv("DAGSTER_HOME", str(home.dagster_dir))


@pytest.fixture(scope="session")
def instance(home: Home, runtime: Runtime) -> Iterator[dg.DagsterInstance]:
    write_instance_config(home)
    os.environ[DATABASE_VARIABLE] = runtime.urls.dagster_url
    with dg.DagsterInstance.from_config(str(home.dagster_dir)) as opened:
        yield opened


@pytest.fixture
def create_collection(runtime: Runtime, tenant: str) -> Publish:
    def create(slug: str, profile: str | None = None) -> Collection:
        return catalogue.create_collection(
            runtime.app, tenant, "p1", slug, embedding_profile=profile
        )

    return create


@pytest.fixture
def publish_texts(runtime: Runtime, tmp_path: Path) -> PublishTexts:
    """Publish a feed of one document a text; returns the event's sequence."""

    def publish_texts(collection: Collection, texts: Sequence[str] = TEXTS) -> int:
        feed = tmp_path / "feed.jsonl"
        rows = [{"id": f"d{n}", "title": f"Page {n}", "text": text} for n, text in enumerate(texts)]
        feed.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return publish(runtime, collection, PublishRequest([feed], "p1")).sequence

    return publish_texts


@pytest.fixture
def run(instance: dg.DagsterInstance) -> Run:
    """Run the job ``publish`` (or some of its assets) for a partition, quietly."""

    def execute(
        partition: str, assets: Sequence[dg.AssetKey] | None = None
    ) -> dg.ExecuteInProcessResult:
        instance.add_dynamic_partitions(str(collections.name), [partition])
        return defs.resolve_job_def("publish").execute_in_process(
            instance=instance,
            partition_key=partition,
            asset_selection=assets,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            raise_on_error=False,
        )

    return execute


def announce_chunks(
    runtime: Runtime,
    collection: Collection,
    texts: Sequence[str],
    *,
    paths: Sequence[str] | None = None,
) -> int:
    """Announce a snapshot that the publisher itself would not write; returns its sequence."""
    with SnapshotWriter(
        runtime.home.snapshots_dir,
        tenant_id=collection.tenant_id,
        project_id="p1",
        collection=collection.slug,
        mode="full",
    ) as writer:
        for number, text in enumerate(texts):
            path = paths[number] if paths else f"{number}.md"
            writer.add("s", "v1", Chunk(path, "0", "Title", text))
        source = SnapshotSource(source_id="s", source_version="v1", chunk_count=0)
        snapshot = writer.finish([source], {})
    return announce(runtime.app, collection, Announcement(snapshot))


def metadata_of(result: dg.ExecuteInProcessResult, asset: str) -> dict[str, object]:
    """The metadata a materialisation of the run carries, as plain values."""
    (found,) = [
        event
        for event in result.get_asset_materialization_events()
        if event.asset_key == dg.AssetKey(asset)
    ]
    metadata = found.step_materialization_data.materialization.metadata
    return {name: entry.value for name, entry in metadata.items()}


def failure_of(result: dg.ExecuteInProcessResult) -> str:
    """What the one failed step says."""
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    failure = failed.step_failure_data.user_failure_data
    assert failure is not None
    assert failure.description is not None
    return failure.description
