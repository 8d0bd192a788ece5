"""The clock of a collection: what ticks it, what each revision holds, and who may tick it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from knowledge.errors import IndexInconsistent, LeaseHeld, LeaseLost
from knowledge.indexing.consistency import compare_hybrid
from knowledge.indexing.convergence import converge_hybrid, converge_metadata
from knowledge.indexing.serving import serve
from knowledge.indexing.tick import leased, tick
from knowledge.model.collection import Collection
from knowledge.model.revision import Generation
from knowledge.runtime import Runtime
from knowledge.storage.postgres import generations, lease
from tests.publication import announce_documents, collection_of, index, publish_documents


@pytest.fixture
def collection(runtime: Runtime, tenant: str) -> Collection:
    return collection_of(runtime, tenant)


def _texts(runtime: Runtime, collection: Collection, revision: int) -> dict[str, str]:
    with runtime.app.tenant(collection.tenant_id) as connection:
        rows = connection.execute(
            "select path, text from chunk_versions where collection_id = %s"
            " and from_rev <= %s and %s < to_rev",
            [collection.collection_id, revision, revision],
        ).fetchall()
    assert len({row["path"] for row in rows}) == len(rows)
    return {row["path"]: row["text"] for row in rows}


def _doc(name: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "text": text, **fields}


def test_a_full_snapshot_replaces_its_source_and_no_other(
    runtime: Runtime, collection: Collection
) -> None:
    publish_documents(runtime, collection, [_doc("a", "one"), _doc("b", "two")])
    publish_documents(runtime, collection, [_doc("x", "other")], source="s2")
    ticked = publish_documents(runtime, collection, [_doc("a", "one"), _doc("c", "three")])
    assert (ticked.revision, ticked.opened, ticked.closed, ticked.unchanged) == (3, 1, 1, 1)
    assert _texts(runtime, collection, 1) == {"a": "one", "b": "two"}
    assert _texts(runtime, collection, 2) == {"a": "one", "b": "two", "x": "other"}
    assert _texts(runtime, collection, 3) == {"a": "one", "c": "three", "x": "other"}


def test_a_delta_replaces_what_it_lists_and_leaves_the_rest(
    runtime: Runtime, collection: Collection
) -> None:
    publish_documents(runtime, collection, [_doc("a", "one"), _doc("b", "two"), _doc("c", "three")])
    ticked = publish_documents(
        runtime, collection, [_doc("b", "changed")], mode="delta", deleted=["c"]
    )
    assert (ticked.opened, ticked.closed) == (1, 2)
    assert _texts(runtime, collection, 1) == {"a": "one", "b": "two", "c": "three"}
    assert _texts(runtime, collection, 2) == {"a": "one", "b": "changed"}


def test_the_same_content_again_does_not_tick(runtime: Runtime, collection: Collection) -> None:
    publish_documents(runtime, collection, [_doc("a", "one")])
    again = publish_documents(runtime, collection, [_doc("a", "one")])
    assert (again.ticked, again.revision, again.unchanged) == (False, 1, 1)


def test_a_new_source_version_ticks_without_touching_a_chunk(
    runtime: Runtime, collection: Collection
) -> None:
    publish_documents(runtime, collection, [_doc("a", "one")])
    ticked = publish_documents(
        runtime,
        collection,
        [
            _doc("a", "one"),
        ],
        source="s1",
    )
    assert not ticked.ticked
    spaced = [{"text": "one", "id": "a"}]  # another file, the same chunks
    ticked = publish_documents(runtime, collection, spaced)
    assert (ticked.ticked, ticked.opened, ticked.closed) == (True, 0, 0)
    with runtime.app.tenant(collection.tenant_id) as connection:
        rows = connection.execute(
            "select revision from source_versions where collection_id = %s order by 1",
            [collection.collection_id],
        ).fetchall()
    assert [row["revision"] for row in rows] == [1, 2]


def test_an_acl_alone_ticks_and_overwrites_every_stored_version(
    runtime: Runtime, collection: Collection
) -> None:
    publish_documents(runtime, collection, [_doc("a", "one")])
    publish_documents(runtime, collection, [_doc("a", "two")])
    ticked = publish_documents(runtime, collection, [_doc("a", "two", acl=["group:x"])])
    assert (ticked.opened, ticked.closed, ticked.acls_changed) == (0, 0, 2)
    with runtime.app.tenant(collection.tenant_id) as connection:
        rows = connection.execute(
            "select acl from chunk_versions where collection_id = %s", [collection.collection_id]
        ).fetchall()
    assert [row["acl"] for row in rows] == [["group:x"], ["group:x"]]


def test_pending_snapshots_are_taken_together_and_tick_once(
    runtime: Runtime, collection: Collection
) -> None:
    announce_documents(runtime, collection, [_doc("a", "one"), _doc("b", "two")])
    announce_documents(runtime, collection, [_doc("a", "later")], mode="delta")
    announce_documents(runtime, collection, [_doc("x", "other")], source="s2")
    ticked = index(runtime, collection)
    assert (ticked.revision, ticked.events) == (1, 3)
    assert _texts(runtime, collection, 1) == {"a": "later", "b": "two", "x": "other"}


# --- the lease --------------------------------------------------------------------------


def _held(runtime: Runtime, collection: Collection, owner: str, wait_s: float = 0.0) -> Any:
    return lease.held(runtime.app, collection, owner=owner, ttl_s=30, wait_s=wait_s)


def test_a_second_owner_waits_and_the_same_one_goes_on(
    runtime: Runtime, collection: Collection
) -> None:
    with _held(runtime, collection, "run-1") as first:
        with pytest.raises(LeaseHeld, match="another run"), _held(runtime, collection, "run-2"):
            pass
        with _held(runtime, collection, "run-1") as again:
            assert again.fencing_token == first.fencing_token
    with pytest.raises(LeaseHeld), _held(runtime, collection, "run-2"):
        pass  # between two steps of run-1
    lease.release(runtime.app, first)
    with _held(runtime, collection, "run-2") as second:
        assert second.fencing_token > first.fencing_token


def _steal(runtime: Runtime, collection: Collection) -> None:
    with runtime.owner.transaction() as connection:
        connection.execute(
            "update leases set owner = 'thief', fencing_token = fencing_token + 1"
            " where collection_id = %s",
            [collection.collection_id],
        )


def test_a_stolen_lease_is_noticed_at_the_tick_and_at_the_switch(
    runtime: Runtime, collection: Collection
) -> None:
    announce_documents(runtime, collection, [_doc("a", "one")])
    with pytest.raises(LeaseLost), _leased(runtime, collection, "run-1") as held:
        _steal(runtime, collection)
        tick(runtime, held, check=lambda _snapshot: None)
    assert runtime.collection(collection.tenant_id, "docs").head_rev == 0
    _expire(runtime, collection)
    with pytest.raises(LeaseLost), _leased(runtime, collection, "run-2") as held:
        tick(runtime, held, check=lambda _snapshot: None)
        converge_hybrid(runtime, held)
        converge_metadata(runtime, held)
        _steal(runtime, collection)
        serve(runtime, held)
    with runtime.app.tenant(collection.tenant_id) as connection:
        states = connection.execute(
            "select distinct state from index_revisions where collection_id = %s",
            [collection.collection_id],
        ).fetchall()
    assert states == [{"state": "Building"}]
    _expire(runtime, collection)
    index(runtime, collection)
    assert _states(runtime, collection) == {"Ready"}


def _leased(runtime: Runtime, collection: Collection, owner: str) -> Any:
    return leased(runtime, collection.tenant_id, collection.slug, owner)


def _expire(runtime: Runtime, collection: Collection) -> None:
    with runtime.owner.transaction() as connection:
        connection.execute(
            "update leases set expires_at = '-infinity' where collection_id = %s",
            [collection.collection_id],
        )


def _states(runtime: Runtime, collection: Collection) -> set[str]:
    with runtime.app.tenant(collection.tenant_id) as connection:
        rows = connection.execute(
            "select state from index_revisions where collection_id = %s",
            [collection.collection_id],
        ).fetchall()
    return {row["state"] for row in rows}


# --- convergence ------------------------------------------------------------------------


def _generation(runtime: Runtime, collection: Collection) -> Generation:
    with runtime.app.tenant(collection.tenant_id) as connection:
        found = generations.serving_generation(connection, collection)
    assert found is not None
    return found


def _ids(runtime: Runtime, generation: Generation) -> list[uuid.UUID]:
    return [item.object_id for item in runtime.index.items(generation)]


def test_items_deleted_or_added_behind_our_back_are_repaired(
    runtime: Runtime, collection: Collection, tenant: str
) -> None:
    documents = [_doc(f"{n}", f"lease {n}") for n in range(20)]
    publish_documents(runtime, collection, documents)
    generation = _generation(runtime, collection)
    ids = _ids(runtime, generation)
    other = collection_of(runtime, tenant, "other")
    publish_documents(runtime, other, [_doc("foreign", "foreign")])
    runtime.index.delete(generation, ids[:5])
    found = compare_hybrid(runtime, collection)
    assert found is not None
    assert (found.expected, found.found) == (20, 15)
    with (
        _leased(runtime, collection, "run-x") as held,
        pytest.raises(IndexInconsistent, match="holds 15"),
    ):
        serve(runtime, held)
    _expire(runtime, collection)
    index(runtime, collection)
    assert _ids(runtime, generation) == ids


def test_a_generation_that_the_server_lost_is_made_again(
    runtime: Runtime, collection: Collection
) -> None:
    publish_documents(runtime, collection, [_doc(f"{n}", f"lease {n}") for n in range(5)])
    generation = _generation(runtime, collection)
    ids = _ids(runtime, generation)
    runtime.index.drop_generation(generation)
    index(runtime, collection)
    assert _ids(runtime, generation) == ids


def test_another_index_schema_builds_another_generation_and_retires_the_old(
    runtime: Runtime, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_documents(runtime, collection, [_doc("a", "lease")])
    old = _generation(runtime, collection)
    monkeypatch.setattr("knowledge.storage.weaviate.schema.SCHEMA_VERSION", "next")
    index(runtime, collection)
    new = _generation(runtime, collection)
    assert new.class_name != old.class_name
    assert runtime.index.count(new) == runtime.index.count(old) == 1
    assert new.state == "serving"


def test_a_delta_converges_to_what_a_rebuild_would_hold(
    runtime: Runtime, collection: Collection
) -> None:
    publish_documents(runtime, collection, [_doc(f"{n}", f"lease {n}") for n in range(10)])
    changed = [_doc(f"{n}", f"other {n}") for n in range(3)]
    publish_documents(runtime, collection, changed, mode="delta", deleted=["9"])
    found = compare_hybrid(runtime, collection)
    assert found is not None
    assert (found.expected, found.found, found.orphans) == (13, 13, ())
