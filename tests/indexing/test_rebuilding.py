"""Rebuilds: built beside what serves, replayed, switched; cancelled and failed ones change nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from knowledge.errors import (
    Conflict,
    IndexInconsistent,
    IndexUnavailable,
    KnowledgeError,
    LeaseHeld,
    RebuildCancelled,
    RebuildFailed,
    RebuildHeld,
)
from knowledge.indexing.rebuild_requests import cancel_rebuild, request_rebuild
from knowledge.indexing.rebuilding import Rebuilt, rebuild
from knowledge.indexing.tick import leased
from knowledge.model.chunk import ChunkVersion
from knowledge.model.collection import Collection
from knowledge.model.revision import Generation, IndexState
from knowledge.retrieval.request import SearchRequest
from knowledge.runtime import Runtime
from knowledge.storage.backend import HybridIndex
from knowledge.storage.postgres import generations, lease, rebuilds, revisions
from knowledge.storage.postgres.rebuilds import Rebuild, RebuildState
from tests.asking import Asker, caller_of
from tests.publication import announce_documents, collection_of, index, publish_documents

WORDS = ("lease", "token", "cancel", "booking")


@pytest.fixture
def collection(indexed: Runtime, tenant: str) -> Collection:
    return collection_of(indexed, tenant)


def _doc(name: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "text": text, **fields}


def _documents(count: int, word: str = "lease") -> list[dict[str, Any]]:
    return [_doc(f"d{n}", f"{word} number{n}") for n in range(count)]


def _request(
    runtime: Runtime, collection: Collection, profile: str | None = None, **options: Any
) -> Rebuild:
    asked = request_rebuild(
        runtime.app,
        collection,
        profile=profile,
        reason="requested",
        requested_by="test",
        **options,
    )
    assert asked is not None
    return asked


def _found(asker: Asker, runtime: Runtime, tenant: str, query: str, **options: Any) -> set[str]:
    request = SearchRequest(query, "p1", top_k=100, **options)
    answer = asker.ask(caller_of(runtime, tenant), request)
    assert not answer.degraded, answer.legs
    return {candidate.citation.path for candidate in answer.chunks}


def _states(runtime: Runtime, collection: Collection) -> set[IndexState]:
    return {revision.state for revision in revisions.serving_revisions(runtime.app, collection)}


def test_a_rebuild_serves_the_same_from_a_new_generation(
    indexed: Runtime, collection: Collection, tenant: str, asker: Asker
) -> None:
    publish_documents(indexed, collection, _documents(30))
    publish_documents(indexed, collection, _documents(20))
    before = _found(asker, indexed, tenant, "lease")
    done = rebuild(indexed, _request(indexed, collection), owner="run-r")
    assert (done.revision, done.items, done.profile) == (3, 20, None)
    assert _found(asker, indexed, tenant, "lease") == before
    assert _states(indexed, collection) == {IndexState.READY}
    assert {r.revision for r in revisions.serving_revisions(indexed.app, collection)} == {3}
    assert len(_found(asker, indexed, tenant, "lease", pinned={"docs": 1})) == 30


def test_another_profile_is_built_beside_and_answers_name_it(
    indexed: Runtime, collection: Collection, tenant: str, asker: Asker
) -> None:
    publish_documents(indexed, collection, _documents(5))
    done = rebuild(indexed, _request(indexed, collection, "minilm@1"), owner="run-r")
    assert (done.profile, done.embedded) == ("minilm@1", 5)
    answer = asker.ask(caller_of(indexed, tenant), SearchRequest("lease", "p1"))
    profiles = {c.citation.embedding_profile_version for c in answer.chunks}
    assert profiles == {"minilm@1"}
    pinned = SearchRequest("lease", "p1", pinned={"docs": 1})
    answer = asker.ask(caller_of(indexed, tenant), pinned)
    assert {c.citation.embedding_profile_version for c in answer.chunks} == {None}


def test_publishes_meanwhile_serve_from_the_old_generation_and_are_replayed(
    indexed: Runtime, collection: Collection, tenant: str, asker: Asker
) -> None:
    publish_documents(indexed, collection, _documents(5))
    wanted = _request(indexed, collection)
    seen: list[set[str]] = []
    states: list[set[IndexState]] = []

    def publish_beside(_line: str) -> None:
        if len(seen) < 2:
            publish_documents(
                indexed, collection, [_doc(f"new{len(seen)}", "fresh lease")], mode="delta"
            )
            seen.append(_found(asker, indexed, tenant, "fresh"))
            states.append(_states(indexed, collection))

    done = rebuild(indexed, wanted, owner="run-r", progress=publish_beside)
    assert seen == [{"new0"}, {"new0", "new1"}]
    assert all(IndexState.REBUILDING in state for state in states)
    assert (done.items, done.rounds) == (7, 3)
    assert _found(asker, indexed, tenant, "fresh") == {"new0", "new1"}
    assert len(_found(asker, indexed, tenant, "lease")) == 7


def test_a_rebuild_takes_along_what_a_killed_publish_committed(
    indexed: Runtime, collection: Collection, tenant: str, asker: Asker
) -> None:
    publish_documents(indexed, collection, _documents(3))
    announce_documents(indexed, collection, [_doc("late", "late lease")], mode="delta")
    with pytest.raises(KeyboardInterrupt):
        index(indexed, collection, until="tick")
    done = rebuild(indexed, _request(indexed, collection), owner="run-r")
    assert done.revision == 3
    assert _found(asker, indexed, tenant, "late") == {"late"}
    assert not index(indexed, collection).ticked


def test_a_cancelled_rebuild_leaves_what_served_and_nothing_else(
    indexed: Runtime, collection: Collection, tenant: str, asker: Asker
) -> None:
    publish_documents(indexed, collection, _documents(5))
    wanted = _request(indexed, collection, "minilm@1")

    built: Generation | None = None

    def cancel(_line: str) -> None:
        nonlocal built
        (built,) = _building(indexed, collection)
        assert indexed.index.count(built) == 5
        assert cancel_rebuild(indexed.app, collection, wanted)

    with pytest.raises(RebuildCancelled):
        rebuild(indexed, wanted, owner="run-r", progress=cancel)
    assert rebuilds.find(indexed.app, tenant, wanted.rebuild_id).state is RebuildState.CANCELLED
    assert not cancel_rebuild(indexed.app, collection, wanted)
    assert _states(indexed, collection) == {IndexState.READY}
    assert indexed.collection(tenant, "docs").embedding_profile is None
    assert len(_found(asker, indexed, tenant, "lease")) == 5
    assert _building(indexed, collection) == []
    assert built is not None
    assert _is_gone(indexed, built)


def _is_gone(runtime: Runtime, generation: Generation) -> bool:
    """Whether the store holds nothing of a generation."""
    try:
        return runtime.index.count(generation) == 0
    except IndexUnavailable:  # Weaviate does not know its tenant any more
        return True


def _building(runtime: Runtime, collection: Collection) -> list[Any]:
    with runtime.app.tenant(collection.tenant_id) as connection:
        return generations.generations_in(
            connection, collection, backend=runtime.index.name, states=["building"]
        )


def test_a_rebuild_that_fails_for_good_leaves_the_old_generation_serving(
    indexed: Runtime, collection: Collection, tenant: str, asker: Asker
) -> None:
    publish_documents(indexed, collection, _documents(5))
    wanted = _request(indexed, collection, "nowhere@1")
    for attempt in range(1, indexed.settings.indexing.max_attempts + 1):
        with pytest.raises(KnowledgeError, match="nowhere@1"):
            rebuild(indexed, wanted, owner="run-r")
        found = rebuilds.find(indexed.app, tenant, wanted.rebuild_id)
        assert found.attempts == attempt
        assert found.error is not None
    assert found.state is RebuildState.FAILED
    assert _building(indexed, collection) == []
    assert _states(indexed, collection) == {IndexState.READY}
    assert indexed.collection(tenant, "docs").embedding_profile is None
    assert len(_found(asker, indexed, tenant, "lease")) == 5


def test_a_rebuild_whose_processes_end_without_a_word_is_given_up(
    indexed: Runtime, collection: Collection, tenant: str
) -> None:
    publish_documents(indexed, collection, _documents(3))
    wanted = _request(indexed, collection, "minilm@1")
    for _ in range(indexed.settings.indexing.max_attempts):
        with indexed.app.tenant(tenant) as connection:
            rebuilds.claim(connection, wanted)
    with pytest.raises(RebuildFailed, match="ended 5 times"):
        rebuild(indexed, wanted, owner="run-r")
    assert rebuilds.find(indexed.app, tenant, wanted.rebuild_id).state is RebuildState.FAILED
    assert _states(indexed, collection) == {IndexState.READY}
    assert indexed.collection(tenant, "docs").embedding_profile is None


def test_a_busy_collection_costs_no_attempt(
    indexed: Runtime, collection: Collection, tenant: str
) -> None:
    publish_documents(indexed, collection, _documents(3))
    wanted = _request(indexed, collection)
    indexing = indexed.settings.indexing.model_copy(update={"lease_wait_s": 0.0})
    impatient = replace(
        indexed, settings=indexed.settings.model_copy(update={"indexing": indexing})
    )
    with leased(indexed, tenant, "docs", "a publish") as held:
        with pytest.raises(LeaseHeld):
            rebuild(impatient, wanted, owner="run-r")
        lease.release(indexed.app, held)
    found = rebuilds.find(indexed.app, tenant, wanted.rebuild_id)
    assert (found.state, found.attempts, found.claims) == (RebuildState.REQUESTED, 0, 1)
    assert "another run" in str(found.error)
    assert _states(indexed, collection) == {IndexState.READY}
    assert rebuild(indexed, wanted, owner="run-r").revision == 2


def test_a_builder_that_was_taken_over_switches_nothing(
    indexed: Runtime, collection: Collection, tenant: str
) -> None:
    publish_documents(indexed, collection, _documents(3))
    wanted = _request(indexed, collection)

    def take_over(_line: str) -> None:
        with indexed.app.tenant(tenant) as connection:
            rebuilds.claim(connection, wanted)

    with pytest.raises(RebuildHeld, match="taken up"):
        rebuild(indexed, wanted, owner="run-r", progress=take_over)
    assert {r.revision for r in revisions.serving_revisions(indexed.app, collection)} == {1}


def test_a_request_repeated_after_its_end_pins_nothing(
    indexed: Runtime, collection: Collection, tenant: str
) -> None:
    publish_documents(indexed, collection, _documents(3))
    wanted = _request(indexed, collection, "minilm@1")
    assert cancel_rebuild(indexed.app, collection, wanted)
    again = _request(indexed, collection, "minilm@1", rebuild_id=wanted.rebuild_id)
    assert again.state is RebuildState.CANCELLED
    assert indexed.collection(tenant, "docs").embedding_profile is None
    with pytest.raises(Conflict, match="use another key"):
        _request(indexed, collection, rebuild_id=wanted.rebuild_id)


class _Deaf:
    """An index whose fresh items are not found by their words."""

    def __init__(self, inner: HybridIndex) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def probe(self, generation: Generation, version: ChunkVersion) -> bool:
        return False


def test_an_index_that_does_not_find_what_it_holds_is_not_switched_to(
    indexed: Runtime, collection: Collection
) -> None:
    publish_documents(indexed, collection, _documents(3))
    rebuild(indexed, _request(indexed, collection), owner="run-r")
    deaf = replace(indexed, index=_Deaf(indexed.index))
    with pytest.raises(IndexInconsistent, match="its words do not find it"):
        rebuild(deaf, _request(indexed, collection), owner="run-d")
    assert {r.revision for r in revisions.serving_revisions(indexed.app, collection)} == {2}


def test_one_rebuild_a_collection_and_one_builder_a_rebuild(
    indexed: Runtime, collection: Collection
) -> None:
    publish_documents(indexed, collection, _documents(3))
    wanted = _request(indexed, collection)
    assert _request(indexed, collection).rebuild_id == wanted.rebuild_id
    with pytest.raises(Conflict, match="cancel it"):
        _request(indexed, collection, "minilm@1")
    errors: list[type[Exception]] = []

    def again(_line: str) -> None:
        with pytest.raises(RebuildHeld) as raised:
            rebuild(indexed, wanted, owner="run-2")
        errors.append(raised.type)

    done: Rebuilt = rebuild(indexed, wanted, owner="run-1", progress=again)
    assert errors == [RebuildHeld]
    assert done.revision == 2
    assert _request(indexed, collection, rebuild_id=wanted.rebuild_id).state is (
        RebuildState.SWITCHED
    )


def test_nothing_is_rebuilt_before_the_first_publish(
    indexed: Runtime, collection: Collection, tenant: str
) -> None:
    asked = request_rebuild(
        indexed.app, collection, profile="minilm@1", reason="profile", requested_by="test"
    )
    assert asked is None
    assert indexed.collection(tenant, "docs").embedding_profile == "minilm@1"
