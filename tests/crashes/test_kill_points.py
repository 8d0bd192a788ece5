"""SIGKILL at every step of a publish, a rebuild and garbage collection.

After each: run again, and all is as if nothing had happened; whoever read meanwhile saw whole
revisions only.
"""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import Any

import pytest

from knowledge.crash_points import COLLECT_POINTS, PUBLISH_POINTS, REBUILD_POINTS
from knowledge.indexing.collecting import collect
from knowledge.indexing.rebuild_requests import request_rebuild
from knowledge.indexing.rebuilding import rebuild
from knowledge.model.collection import Collection
from knowledge.runtime import Runtime
from knowledge.settings import load_settings
from knowledge.storage.postgres import rebuilds
from tests.crashes.conftest import KEEPING_TWO, Site
from tests.crashes.state import State, abandoned_generations, state_of
from tests.publication import announce_documents, collection_of, index, publish_documents

FIRST: list[dict[str, Any]] = [
    {"id": "a", "text": "lease one"},
    {"id": "b", "text": "lease two"},
    {"id": "c", "text": "lease three", "acl": ["group:x"]},
]
SECOND: list[dict[str, Any]] = [
    {"id": "a", "text": "lease one, changed"},
    {"id": "c", "text": "lease three", "acl": ["group:x", "group:y"]},
    {"id": "d", "text": "lease four"},
]
WHOLE = {
    1: frozenset(document["text"] for document in FIRST),
    2: frozenset(document["text"] for document in SECOND),
}
KILLED = -signal.SIGKILL


def _collections(runtime: Runtime, tenant: str) -> tuple[Collection, Collection]:
    """One that is disturbed, and its twin that is not."""
    return tuple(  # type: ignore[return-value]
        collection_of(runtime, tenant, slug, profile="minilm@1") for slug in ("docs", "twin")
    )


@pytest.mark.parametrize("point", PUBLISH_POINTS)
def test_a_publish_killed_anywhere_and_run_again_ends_in_the_same_state(
    site: Site, tenant: str, reading: Any, point: str
) -> None:
    runtime = site.runtime
    disturbed, twin = _collections(runtime, tenant)
    for collection in (disturbed, twin):
        publish_documents(runtime, collection, FIRST)
        announce_documents(runtime, collection, SECOND)
    with reading(disturbed) as reader:
        assert site.work("publish", disturbed, crash_at=point) == KILLED
        assert site.work("publish", disturbed) == 0
    index(runtime, twin)
    assert state_of(runtime, disturbed) == state_of(runtime, twin)
    seen = reader.seen()
    assert all(WHOLE[revision] == texts for revision, texts in seen), seen
    assert seen[-1] == (2, WHOLE[2])


def _rebuilt(site: Site, collection: Collection) -> State:
    wanted = rebuilds.latest(site.runtime.app, collection)
    assert wanted is not None
    rebuild(site.runtime, wanted, owner=f"twin-{collection.collection_id}")
    return state_of(site.runtime, collection)


@pytest.mark.parametrize("point", REBUILD_POINTS)
def test_a_rebuild_killed_anywhere_and_run_again_ends_in_the_same_state(
    site: Site, tenant: str, reading: Any, point: str
) -> None:
    runtime = site.runtime
    disturbed, twin = _collections(runtime, tenant)
    for collection in (disturbed, twin):
        publish_documents(runtime, collection, FIRST)
        publish_documents(runtime, collection, SECOND)
        request_rebuild(
            runtime.app, collection, profile=None, reason="requested", requested_by="test"
        )
    undisturbed = _rebuilt(site, twin)
    with reading(disturbed) as reader:
        assert site.work("rebuild", disturbed, crash_at=point) == KILLED
        assert site.work("rebuild", disturbed) == 0
    assert state_of(runtime, disturbed) == undisturbed
    assert abandoned_generations(runtime, disturbed) == 0
    seen = reader.seen()
    assert {texts for _, texts in seen} == {WHOLE[2]}
    assert [seen[0][0], seen[-1][0]] == [2, 3]


@pytest.mark.parametrize("point", REBUILD_POINTS[:-1])
def test_a_publish_between_a_killed_rebuild_and_its_next_attempt_is_kept(
    site: Site, tenant: str, reading: Any, point: str
) -> None:
    runtime = site.runtime
    disturbed, _ = _collections(runtime, tenant)
    publish_documents(runtime, disturbed, FIRST)
    request_rebuild(runtime.app, disturbed, profile=None, reason="requested", requested_by="test")
    with reading(disturbed) as reader:
        assert site.work("rebuild", disturbed, crash_at=point) == KILLED
        announce_documents(runtime, disturbed, SECOND)
        assert site.work("publish", disturbed) == 0
        assert site.work("rebuild", disturbed) == 0
    seen = reader.seen()
    assert {texts for _, texts in seen} == {WHOLE[1], WHOLE[2]}
    assert seen[-1] == (3, WHOLE[2])
    assert abandoned_generations(runtime, disturbed) == 0


@pytest.mark.parametrize("point", COLLECT_POINTS)
def test_garbage_collection_killed_anywhere_and_run_again_ends_in_the_same_state(
    site: Site, tenant: str, reading: Any, point: str
) -> None:
    runtime = site.runtime
    disturbed, twin = _collections(runtime, tenant)
    for collection in (disturbed, twin):
        publish_documents(runtime, collection, FIRST)
        publish_documents(runtime, collection, SECOND)
        asked = request_rebuild(
            runtime.app,
            collection,
            profile="minilm@1",
            reason="requested",
            requested_by="test",
        )
        assert asked is not None
        rebuild(runtime, asked, owner=f"rebuild-{collection.slug}")
        for word in ("five", "six"):
            publish_documents(
                runtime, collection, [{"id": "e", "text": f"lease {word}"}], mode="delta"
            )
    keeping_two = _with_settings(runtime)
    collect(keeping_two, runtime.collection(tenant, "twin"), owner="twin")
    with reading(disturbed) as reader:
        assert site.work("collect", disturbed, crash_at=point) == KILLED
        assert site.work("collect", disturbed) == 0
    assert state_of(runtime, disturbed) == state_of(runtime, twin)
    assert {texts for _, texts in reader.seen()} == {WHOLE[2] | {"lease six"}}


def _with_settings(runtime: Runtime) -> Runtime:
    return replace(runtime, settings=load_settings(runtime.home, KEEPING_TWO))
