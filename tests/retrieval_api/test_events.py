"""Events in: what they name is checked, and the same event again changes nothing. Events out."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest

from knowledge.home import Home
from knowledge.indexing.tick import leased, tick
from knowledge.model.chunk import Chunk
from knowledge.model.collection import Collection
from knowledge.model.scope import ADMIN, READ
from knowledge.runtime import Runtime
from knowledge.stack.process import wait_until
from knowledge.storage.postgres import catalogue, inbox
from knowledge.storage.snapshot_writer import SnapshotWriter
from knowledge.storage.snapshots import SnapshotSource
from tests.publication import collection_of, index, publish_documents
from tests.retrieval_api.conftest import CallerFactory
from tests.retrieval_api.service import BASE, Caller, assert_problem

EVENTS = f"{BASE}/events"


def _written(
    home: Home,
    tenant: str,
    text: str = "a lease is renewed",
    *,
    source: str = "feed",
    anchor: str = "",
    **changed: Any,
) -> dict[str, Any]:
    """A snapshot of one chunk; returns the data of its event."""
    with SnapshotWriter(
        home.snapshots_dir, tenant_id=tenant, project_id="p1", collection="docs", mode="full"
    ) as writer:
        writer.add(source, "v1", Chunk("a.md", anchor, "", text, **changed))
        snapshot = writer.finish(
            [SnapshotSource(source_id=source, source_version="v1", chunk_count=0)], {}
        )
    return {
        "tenantId": tenant,
        "collectionId": "docs",
        "snapshotId": str(snapshot.manifest.snapshot_id),
        "manifest": str(snapshot.manifest_path),
        "mode": "full",
        "chunkCount": 1,
        "sourceVersions": {source: "v1"},
    }


def _event(data: Any, kind: str = "ChunksPublished", **fields: Any) -> dict[str, Any]:
    return {
        "specversion": "1.0",
        "id": str(uuid.uuid4()),
        "source": "urn:test",
        "type": kind,
        "data": data,
        **fields,
    }


@pytest.fixture
def collection(runtime: Runtime, tenant: str) -> Collection:
    return collection_of(runtime, tenant)


@pytest.fixture
def admin(collection: Collection, tenant: str, caller_factory: CallerFactory) -> Caller:
    return caller_factory(tenant, scopes=(READ, ADMIN))


def _pending(runtime: Runtime, collection: Collection) -> int:
    return len(inbox.pending(runtime.app, collection))


def test_an_announced_snapshot_is_indexed_and_found(
    home: Home, runtime: Runtime, collection: Collection, admin: Caller, tenant: str
) -> None:
    response = admin.post(EVENTS, _event(_written(home, tenant)))
    assert response.status_code == 202
    assert response.json()["state"] == "accepted"
    index(runtime, collection)
    assert admin.paths("lease") == ["a.md"]


def test_the_same_event_again_changes_nothing(
    home: Home, runtime: Runtime, collection: Collection, admin: Caller, tenant: str
) -> None:
    event = _event(_written(home, tenant))
    first = admin.post(EVENTS, event).json()
    assert admin.post(EVENTS, event).json() == first
    assert _pending(runtime, collection) == 1
    index(runtime, collection)
    assert admin.post(EVENTS, event).json() == first
    assert _pending(runtime, collection) == 0
    deleted = _event({**_named(tenant), "sourceId": "feed"}, "SourceDeleted")
    assert admin.post(EVENTS, deleted).status_code == 202
    assert admin.post(EVENTS, event).json() == first
    assert admin.paths("lease") == []


def test_an_old_change_of_access_that_comes_again_does_not_undo_a_newer_one(
    home: Home, runtime: Runtime, collection: Collection, admin: Caller, tenant: str
) -> None:
    publish_documents(runtime, collection, [{"id": "a.md", "text": "a lease"}], source="feed")
    opened = _event({**_named(tenant), "sourceId": "feed", "acl": None}, "SourceAccessChanged")
    closed = _event({**_named(tenant), "sourceId": "feed", "acl": []}, "SourceAccessChanged")
    assert admin.post(EVENTS, opened).status_code == 202
    assert admin.paths("lease") == ["a.md"]
    assert admin.post(EVENTS, closed).status_code == 202
    assert admin.paths("lease") == []
    assert admin.post(EVENTS, opened).status_code == 202
    assert admin.paths("lease") == []


def _named(tenant: str) -> dict[str, Any]:
    return {"tenantId": tenant, "collectionId": "docs"}


@pytest.mark.parametrize(
    "acl", ["everyone", "*", ["*"], [""], ["group:"], ["eng"], [None], [["group:a"]], {}, 0, False]
)
def test_an_acl_that_cannot_be_read_is_never_taken_for_everyone(
    runtime: Runtime, collection: Collection, admin: Caller, tenant: str, acl: object
) -> None:
    publish_documents(runtime, collection, [{"id": "a.md", "text": "a lease"}], acl=())
    data = {**_named(tenant), "sourceId": "s1", "acl": acl}
    assert_problem(admin.post(EVENTS, _event(data, "SourceAccessChanged")), 422)
    assert admin.paths("lease") == []


def test_a_change_of_access_without_an_acl_is_refused(
    runtime: Runtime, collection: Collection, admin: Caller, tenant: str
) -> None:
    publish_documents(runtime, collection, [{"id": "a.md", "text": "a lease"}], acl=())
    data = {**_named(tenant), "sourceId": "s1"}
    assert_problem(admin.post(EVENTS, _event(data, "SourceAccessChanged")), 422, "acl")
    assert_problem(
        admin.post(EVENTS, _event({**data, "sourceId": "s2", "acl": []}, "SourceAccessChanged")),
        404,
    )
    assert_problem(admin.post(EVENTS, _event(_named(tenant), "SourceDeleted")), 422, "sourceId")


@pytest.mark.parametrize(
    "changed",
    [
        {"specversion": "0.3"},
        {"type": "RebuildRequested"},
        {"type": "IndexRevisionReady"},
        {"id": ""},
        {"source": None},
        {"data": None},
        {"data": []},
        {"data": {"tenantId": "\0"}},
        {"data": {"a": ["\ud800"]}},
        {"data": {"\udfff": 1}},
    ],
)
def test_an_event_that_is_not_one_of_ours_is_refused(
    admin: Caller, changed: dict[str, Any]
) -> None:
    content = json.dumps({**_event({}), **changed}).encode()
    assert_problem(admin.post_raw(EVENTS, content), 422)


def test_another_tenant_or_collection_is_not_found(
    home: Home, runtime: Runtime, collection: Collection, admin: Caller, tenant: str
) -> None:
    data = _written(home, tenant)
    other = f"{tenant}-eu"
    elsewhere = collection_of(runtime, other, "docs")
    theirs = collection_of(runtime, other, "theirs")
    assert_problem(admin.post(EVENTS, _event({**data, "tenantId": other})), 404, "no such tenant")
    assert_problem(admin.post(EVENTS, _event({**data, "tenantId": None})), 404)
    for name in ("nothing", "theirs", str(theirs.collection_id), str(elsewhere.collection_id)):
        body = assert_problem(admin.post(EVENTS, _event({**data, "collectionId": name})), 404)
        assert body["detail"] == f"there is no collection {name}"


@pytest.mark.parametrize(
    "changed",
    [
        {"chunkCount": 2},
        {"chunkCount": None},
        {"chunkCount": "1"},
        {"mode": "delta"},
        {"snapshotId": str(uuid.uuid4())},
        {"manifest": None},
        {"manifest": 7},
    ],
)
def test_an_event_that_contradicts_its_manifest_is_refused(
    home: Home, runtime: Runtime, collection: Collection, admin: Caller, tenant: str, changed: Any
) -> None:
    assert_problem(admin.post(EVENTS, _event({**_written(home, tenant), **changed})), 422)
    assert _pending(runtime, collection) == 0


def test_a_manifest_outside_the_snapshot_roots_is_refused(
    home: Home,
    runtime: Runtime,
    collection: Collection,
    admin: Caller,
    tenant: str,
    tmp_path: Path,
) -> None:
    data = _written(home, tenant)
    manifest = Path(data["manifest"])
    outside = tmp_path / "snapshot"
    shutil.copytree(manifest.parent, outside)
    mine = home.snapshots_dir / tenant
    (mine / "link").symlink_to(outside)
    theirs = home.snapshots_dir / f"{tenant}-eu"
    shutil.copytree(mine, theirs, symlinks=True)
    relative = manifest.relative_to(home.snapshots_dir)
    for path in (
        outside / "manifest.json",
        mine / "link" / "manifest.json",
        theirs / relative.relative_to(tenant),
        f"{mine}/../{theirs.name}/{relative.relative_to(tenant)}",
        f"{home.snapshots_dir}/{tenant}-eu/../../../etc/passwd",
        relative,
        f"file://{manifest}",
        f"http://127.0.0.1/{relative}",
        f"s3://snapshots/{relative}",
        manifest.parent,
        manifest.parent / "chunks-0.parquet",
        "/etc/passwd",
        "/dev/zero/manifest.json",
        "manifest.json",
        "",
        f"{mine}/{'x' * 5000}/manifest.json",
    ):
        assert_problem(admin.post(EVENTS, _event({**data, "manifest": str(path)})), 422)
    (mine / "pipe").mkdir()
    assert_problem(
        admin.post(EVENTS, _event({**data, "manifest": str(mine / "pipe" / "manifest.json")})), 422
    )
    assert _pending(runtime, collection) == 0


def test_a_manifest_that_is_itself_a_link_out_is_refused(
    home: Home, collection: Collection, admin: Caller, tenant: str, tmp_path: Path
) -> None:
    data = _written(home, tenant)
    manifest = Path(data["manifest"])
    secret = tmp_path / "manifest.json"
    manifest.rename(secret)
    manifest.symlink_to(secret)
    body = assert_problem(admin.post(EVENTS, _event(data)), 422)
    assert str(tmp_path) not in body["detail"]


def test_a_data_file_that_is_a_link_out_is_refused(
    home: Home, collection: Collection, admin: Caller, tenant: str, tmp_path: Path
) -> None:
    """The checksum does not help here: whoever may write the folder writes the manifest too."""
    data = _written(home, tenant)
    parquet = Path(data["manifest"]).with_name("chunks-0.parquet")
    parquet.rename(tmp_path / "elsewhere.parquet")
    parquet.symlink_to(tmp_path / "elsewhere.parquet")
    assert_problem(admin.post(EVENTS, _event(data)), 422)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("chunkCount", 7),
        ("mode", "append"),
        ("formatVersion", 2),
        ("files", []),
        ("sources", []),
        ("tenantId", "another"),
        ("collection", "another"),
        ("projectId", "another"),
        ("unknown", 1),
    ],
)
def test_a_manifest_that_does_not_fit_its_files_is_refused(
    home: Home,
    runtime: Runtime,
    collection: Collection,
    admin: Caller,
    tenant: str,
    field: str,
    value: object,
) -> None:
    data = _written(home, tenant)
    manifest = Path(data["manifest"])
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), field: value}))
    event = _event({**data, **({field: value} if field in data and field != "tenantId" else {})})
    response = admin.post(EVENTS, event)
    assert_problem(response, 404 if field == "projectId" else 422)
    assert _pending(runtime, collection) == 0


def test_a_wrong_checksum_is_refused(
    home: Home, runtime: Runtime, collection: Collection, admin: Caller, tenant: str
) -> None:
    data = _written(home, tenant)
    parquet = Path(data["manifest"]).with_name("chunks-0.parquet")
    parquet.write_bytes(parquet.read_bytes() + b"x")
    assert_problem(admin.post(EVENTS, _event(data)), 422, "checksum")
    parquet.unlink()
    assert_problem(admin.post(EVENTS, _event(data)), 422)
    assert _pending(runtime, collection) == 0


@pytest.mark.parametrize(
    ("text", "source"), [("a \0 lease", "feed"), ("a lease", "feed\0"), ("a lease", "f\x1f")]
)
def test_a_snapshot_with_what_no_store_can_hold_is_refused(
    home: Home,
    runtime: Runtime,
    collection: Collection,
    admin: Caller,
    tenant: str,
    text: str,
    source: str,
) -> None:
    assert_problem(admin.post(EVENTS, _event(_written(home, tenant, text, source=source))), 422)
    assert _pending(runtime, collection) == 0


@pytest.mark.parametrize(
    "changed",
    [
        {"acl": ("*",)},
        {"acl": ("everyone",)},
        {"metadata": {"a": float("nan")}},
        {"metadata": {"a": "\0"}},
        {"tags": ("\0",)},
        {"anchor": "a\x1fb"},
    ],
)
def test_a_chunk_with_what_no_store_can_hold_is_refused(
    home: Home, runtime: Runtime, collection: Collection, admin: Caller, tenant: str, changed: Any
) -> None:
    data = _written(home, tenant, **changed)
    assert_problem(admin.post(EVENTS, _event(data)), 422)
    assert _pending(runtime, collection) == 0


def test_a_snapshot_damaged_after_it_was_announced_is_rejected_by_the_run(
    home: Home, runtime: Runtime, collection: Collection, admin: Caller, tenant: str
) -> None:
    data = _written(home, tenant)
    sequence = admin.post(EVENTS, _event(data)).json()["sequence"]
    Path(data["manifest"]).with_name("chunks-0.parquet").write_bytes(b"")
    with (
        pytest.raises(Exception, match="checksum"),
        leased(runtime, tenant, "docs", "run-x") as lease,
    ):
        tick(runtime, lease, check=lambda _snapshot: None)
    assert inbox.event_state(runtime.app, tenant, sequence)["state"] == "rejected"


# --- events out -------------------------------------------------------------------------


def test_events_are_listed_in_rising_sequence_and_paged_by_it(
    runtime: Runtime, collection: Collection, admin: Caller, tenant: str
) -> None:
    for number in range(3):
        publish_documents(runtime, collection, [{"id": "a.md", "text": f"lease {number}"}])
    admin.search("lease")
    kinds = ["IndexRevisionReady", "IndexRevisionRetired", "RetrievalExecuted"]

    def listed(after: int = 0) -> list[dict[str, Any]]:
        page: list[dict[str, Any]] = admin.get(EVENTS, params={"after": after}).json()["events"]
        return page

    assert wait_until(lambda: sorted({event["type"] for event in listed()}) == kinds, 10)
    events = listed()
    sequences = [event["sequence"] for event in events]
    assert sequences == sorted(set(sequences))
    assert listed(sequences[2]) == events[3:]
    assert listed(sequences[-1]) == []
    assert admin.get(EVENTS, params={"after": sequences[-1]}).json()["next"] == sequences[-1]
    assert {event["data"]["tenantId"] for event in events} == {tenant}
    ready = [event["data"] for event in events if event["type"] == "IndexRevisionReady"]
    assert {(data["kind"], data["revision"]) for data in ready} == {
        (kind, revision) for kind in ("full_text", "metadata") for revision in (1, 2, 3)
    }


def test_events_of_another_tenant_are_not_listed(
    runtime: Runtime,
    collection: Collection,
    admin: Caller,
    tenant: str,
    caller_factory: CallerFactory,
) -> None:
    publish_documents(runtime, collection, [{"id": "a.md", "text": "lease"}])
    assert wait_until(lambda: len(admin.get(EVENTS).json()["events"]) == 2, 10)
    other = caller_factory(f"{tenant}-eu", scopes=(READ, ADMIN))
    assert other.get(EVENTS).json()["events"] == []
    assert catalogue.list_clients(runtime.owner, f"{tenant}-eu")
