"""Garbage collection: what is kept answers as before, what is not is refused and gone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from knowledge.errors import RevisionCollected
from knowledge.indexing.collecting import MARGIN_S, collect, retention
from knowledge.indexing.rebuild_requests import request_rebuild
from knowledge.indexing.rebuilding import rebuild
from knowledge.model.collection import Collection
from knowledge.retrieval.request import SearchRequest
from knowledge.runtime import Runtime
from knowledge.storage.postgres import collecting, generations
from tests.asking import Asker, caller_of
from tests.publication import collection_of, index, publish_documents


@pytest.fixture
def collection(indexed: Runtime, tenant: str) -> Collection:
    return collection_of(indexed, tenant)


def _doc(name: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "text": text, **fields}


def _texts(
    asker: Asker, runtime: Runtime, tenant: str, *, groups: tuple[str, ...] = (), **options: Any
) -> set[str]:
    request = SearchRequest("lease", "p1", top_k=100, **options)
    answer = asker.ask(caller_of(runtime, tenant, groups=groups), request)
    assert not answer.degraded, answer.legs
    return {candidate.text for candidate in answer.candidates}


def _publish_five(runtime: Runtime, collection: Collection) -> None:
    """Five revisions; each replaces document ``a`` and leaves ``b``."""
    for number in range(1, 6):
        publish_documents(
            runtime, collection, [_doc("a", f"lease version{number}"), _doc("b", "lease kept")]
        )


def _items(runtime: Runtime, collection: Collection) -> int:
    with runtime.app.tenant(collection.tenant_id) as connection:
        serving = generations.serving_generation(connection, collection)
    assert serving is not None
    assert runtime.index.count(serving) == serving.items
    return serving.items


def test_old_revisions_are_refused_and_their_rows_gone(
    indexed: Runtime, collection: Collection, tenant: str, asker: Asker
) -> None:
    _publish_five(indexed, collection)
    kept = _texts(asker, indexed, tenant, pinned={"docs": 4})
    assert _items(indexed, collection) == 6
    done = collect(indexed, collection, owner="run-c")
    assert (done.floor, done.revisions, done.chunk_versions) == (4, 6, 3)
    assert _items(indexed, collection) == 3
    assert _texts(asker, indexed, tenant, pinned={"docs": 4}) == kept
    assert _texts(asker, indexed, tenant) == {"lease version5", "lease kept"}
    with pytest.raises(RevisionCollected, match="pin a newer one"):
        _texts(asker, indexed, tenant, pinned={"docs": 3})
    again = collect(indexed, collection, owner="run-d")
    assert (again.floor, again.revisions, again.chunk_versions) == (4, 0, 0)
    publish_documents(indexed, collection, [_doc("a", "lease version6"), _doc("b", "lease kept")])
    assert _texts(asker, indexed, tenant) == {"lease version6", "lease kept"}


def test_what_was_marked_is_deleted_only_when_every_request_that_may_read_it_is_over(
    indexed: Runtime, collection: Collection
) -> None:
    _publish_five(indexed, collection)
    retrieval = indexed.settings.retrieval.model_copy(update={"request_timeout_s": 0.3})
    patient = replace(
        indexed, settings=indexed.settings.model_copy(update={"retrieval": retrieval})
    )
    assert collect(patient, collection, owner="run-c").seconds >= 0.3 + MARGIN_S
    assert collect(patient, collection, owner="run-d").seconds < MARGIN_S  # long marked


def test_a_young_revision_is_kept_whatever_its_number(
    indexed: Runtime, collection: Collection, tenant: str, asker: Asker
) -> None:
    _publish_five(indexed, collection)
    indexing = indexed.settings.indexing.model_copy(
        update={"keep_days": 7.0, "dead_rows_minimum": 99}
    )
    settings = indexed.settings.model_copy(update={"indexing": indexing})
    kept = retention(settings)
    with indexed.owner.transaction() as connection:
        floor, marked = collecting.mark(connection, collection, kept)
    assert (floor, marked) == (1, [])
    assert collection.partition not in collecting.due(indexed.owner, kept)
    assert collection.partition in collecting.due(indexed.owner, retention(indexed.settings))
    assert len(_texts(asker, indexed, tenant, pinned={"docs": 1})) == 2


def test_a_generation_goes_with_the_last_revision_that_reads_it(
    indexed: Runtime, collection: Collection, tenant: str, asker: Asker
) -> None:
    publish_documents(indexed, collection, [_doc("a", "lease one"), _doc("b", "lease kept")])
    with indexed.app.tenant(tenant) as connection:
        old = generations.serving_generation(connection, collection)
    assert old is not None
    wanted = request_rebuild(
        indexed.app, collection, profile=None, reason="requested", requested_by="test"
    )
    assert wanted is not None
    rebuild(indexed, wanted, owner="run-r")
    assert collect(indexed, collection, owner="run-c").generations == 0  # revision 1 is kept
    publish_documents(indexed, collection, [_doc("a", "lease two"), _doc("b", "lease kept")])
    done = collect(indexed, collection, owner="run-c")
    assert (done.floor, done.generations) == (2, 1)
    with indexed.app.tenant(tenant) as connection:
        states = {
            generation.generation_id: generation.state
            for generation in generations.generations_in(
                connection,
                collection,
                backend=indexed.index.name,
                states=["serving", "retired", "collected"],
            )
        }
    assert states[old.generation_id] == "collected"
    assert sorted(states.values()) == ["collected", "serving"]
    assert _texts(asker, indexed, tenant, pinned={"docs": 2}) == {"lease one", "lease kept"}


def test_too_many_dead_rows_ask_for_a_generation_without_them(
    indexed: Runtime, collection: Collection, tenant: str, asker: Asker
) -> None:
    _publish_five(indexed, collection)
    assert collection.partition in collecting.due(indexed.owner, retention(indexed.settings))
    for n in range(6, 9):
        documents = [_doc(f"d{m}", f"lease {n} {m}") for m in range(3)]
        publish_documents(indexed, collection, documents, source="s2")
    done = collect(indexed, collection, owner="run-c")
    assert (done.dead_rows.items, done.dead_rows.dead) == (8, 3)
    assert done.rebuild is not None
    before = _texts(asker, indexed, tenant)
    rebuilt = rebuild(indexed, done.rebuild, owner="run-r")
    assert rebuilt.items == 5
    assert _texts(asker, indexed, tenant) == before
    after = collect(indexed, collection, owner="run-c")
    assert after.dead_rows.dead == 0
    assert after.rebuild is None


def test_a_pin_sees_permissions_of_today_also_in_a_retired_generation(
    indexed: Runtime, collection: Collection, tenant: str, asker: Asker
) -> None:
    publish_documents(
        indexed, collection, [_doc("a", "lease one", acl=["group:x"]), _doc("b", "lease two")]
    )
    wanted = request_rebuild(
        indexed.app, collection, profile=None, reason="requested", requested_by="test"
    )
    assert wanted is not None
    rebuild(indexed, wanted, owner="run-r")
    publish_documents(
        indexed,
        collection,
        [_doc("a", "lease one", acl=["group:y"]), _doc("b", "lease two", acl=[])],
    )
    pin = {"docs": 1}
    assert _texts(asker, indexed, tenant, groups=("y",), pinned=pin) == {"lease one"}
    assert _texts(asker, indexed, tenant, groups=("x",), pinned=pin) == set()
    assert index(indexed, collection).revision == 3
