"""What a killed run leaves behind: ticks that never served, and what others make of them."""

from __future__ import annotations

from typing import Any

import pytest

from knowledge.indexing.collecting import collect
from knowledge.indexing.rebuild_requests import request_rebuild
from knowledge.indexing.rebuilding import rebuild
from knowledge.model.collection import Collection
from knowledge.model.revision import IndexKind
from knowledge.retrieval.request import SearchRequest
from knowledge.runtime import Runtime
from knowledge.storage.postgres import revisions
from knowledge.storage.postgres.rebuilds import Rebuild
from tests.asking import Asker, caller_of
from tests.properties.dying import Crash, crashing
from tests.publication import announce_documents, collection_of, index, publish_documents


@pytest.fixture
def collection(indexed: Runtime, tenant: str) -> Collection:
    return collection_of(indexed, tenant)


def _doc(name: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "text": text, **fields}


def _texts(asker: Asker, runtime: Runtime, tenant: str, **options: Any) -> set[str]:
    request = SearchRequest("lease", "p1", top_k=100, **options)
    answer = asker.ask(caller_of(runtime, tenant), request)
    assert not answer.degraded, answer.legs
    assert not answer.foreign_dropped
    return {candidate.text for candidate in answer.chunks}


def _request(runtime: Runtime, collection: Collection, profile: str | None) -> Rebuild | None:
    return request_rebuild(
        runtime.app, collection, profile=profile, reason="requested", requested_by="test"
    )


def _killed_at(point: str, runtime: Runtime, collection: Collection) -> None:
    with pytest.raises(Crash), crashing(point):
        index(runtime, collection)


def test_a_document_hidden_and_then_removed_before_one_run_is_hidden_from_pins(
    indexed: Runtime, collection: Collection, tenant: str, asker: Asker
) -> None:
    publish_documents(indexed, collection, [_doc("a", "lease one"), _doc("b", "lease two")])
    announce_documents(indexed, collection, [_doc("a", "lease one", acl=[])], mode="delta")
    announce_documents(indexed, collection, [_doc("b", "lease two")])
    index(indexed, collection)
    assert _texts(asker, indexed, tenant) == {"lease two"}
    assert _texts(asker, indexed, tenant, pinned={"docs": 1}) == {"lease two"}


def test_a_rebuild_carries_the_acls_of_a_killed_publish_to_what_pins_read(
    indexed: Runtime, collection: Collection, tenant: str, asker: Asker
) -> None:
    publish_documents(indexed, collection, [_doc("a", "lease one", acl=[]), _doc("b", "lease two")])
    announce_documents(
        indexed, collection, [_doc("a", "lease one"), _doc("b", "lease two", acl=[])]
    )
    _killed_at("tick.committed", indexed, collection)
    wanted = _request(indexed, collection, None)
    assert wanted is not None
    rebuild(indexed, wanted, owner="run-r")
    assert _texts(asker, indexed, tenant) == {"lease one"}
    assert _texts(asker, indexed, tenant, pinned={"docs": 1}) == {"lease one"}


def test_a_profile_given_up_after_a_killed_first_run_never_serves(
    indexed: Runtime, tenant: str, asker: Asker
) -> None:
    collection = collection_of(indexed, tenant, profile="minilm@1")
    announce_documents(indexed, collection, [_doc("a", "lease one")])
    _killed_at("index.applied", indexed, collection)
    assert _request(indexed, collection, None) is None
    index(indexed, collection)
    served = {revision.kind for revision in revisions.serving_revisions(indexed.app, collection)}
    assert served == {IndexKind.FULL_TEXT, IndexKind.METADATA}
    assert _texts(asker, indexed, tenant) == {"lease one"}
    assert collect(indexed, collection, owner="run-c").generations == 1
    assert _texts(asker, indexed, tenant) == {"lease one"}


@pytest.mark.parametrize("point", ["tick.committed", "index.applied", "metadata.written"])
def test_a_chunk_that_opens_and_closes_before_anything_serves_holds_nothing_up(
    indexed: Runtime, collection: Collection, tenant: str, asker: Asker, point: str
) -> None:
    announce_documents(indexed, collection, [_doc("a", "lease one"), _doc("b", "lease two")])
    _killed_at(point, indexed, collection)
    announce_documents(indexed, collection, [_doc("b", "lease two")])
    assert index(indexed, collection).revision == 2
    assert _texts(asker, indexed, tenant) == {"lease two"}


def test_a_pin_that_never_served_cites_the_versions_of_what_it_reads(
    indexed: Runtime, collection: Collection, tenant: str, asker: Asker
) -> None:
    publish_documents(indexed, collection, [_doc("a", "lease one")])
    announce_documents(indexed, collection, [_doc("a", "lease two")])
    _killed_at("tick.committed", indexed, collection)
    answers = [
        asker.ask(caller_of(indexed, tenant), SearchRequest("lease", "p1", pinned={"docs": pin}))
        for pin in (1, 2)
    ]
    cited = [
        [(c.text, c.citation.index_revision, c.citation.source_version) for c in answer.chunks]
        for answer in answers
    ]
    assert cited[0] == cited[1]


def test_a_profile_given_up_and_collected_leaves_later_revisions_to_be_pinned(
    indexed: Runtime, tenant: str, asker: Asker
) -> None:
    collection = collection_of(indexed, tenant, profile="minilm@1")
    publish_documents(indexed, collection, [_doc("a", "lease one")])
    wanted = _request(indexed, collection, None)
    assert wanted is not None
    rebuild(indexed, wanted, owner="run-r")
    for word in ("two", "three"):
        publish_documents(indexed, collection, [_doc("a", f"lease {word}")])
    assert collect(indexed, collection, owner="run-c").floor == 3
    assert _texts(asker, indexed, tenant, pinned={"docs": 3}) == {"lease two"}
