"""Who sees which fact: tenant, project, sources, ACLs, chunks and what facts rest on."""

from __future__ import annotations

from typing import Any

import pytest

from knowledge.errors import Forbidden, NotFound, Unauthenticated
from knowledge.model.scope import WRITE
from knowledge.publishing.announcing import delete_source
from knowledge.storage.postgres import catalogue
from tests.graph.telling import Graph, at, fact, owned
from tests.publication import announce_documents, collection_of, index


def test_facts_stay_in_their_project_and_tenant(graph: Graph) -> None:
    both = graph.client(projects=("p1", "p2"))
    graph.tell(fact("billing", "USES", "redis"))
    graph.tell(fact("billing", "USES", "kafka"), project_id="p2")
    assert graph.objects(both) == ["redis"]
    assert graph.objects(both, project_id="p2") == ["kafka"]
    other = Graph(graph.runtime, f"{graph.tenant_id}-2", graph.reader, graph.runner)
    assert other.objects() == []


def test_a_project_that_is_not_the_callers_is_not_there(graph: Graph) -> None:
    graph.client(projects=("p2",))
    for project in ("p2", "p3"):
        with pytest.raises(NotFound, match=f"there is no project {project}"):
            graph.query(project_id=project)


def test_a_revoked_client_is_refused_on_its_next_question(graph: Graph) -> None:
    graph.query()
    catalogue.revoke_client(graph.runtime.owner, graph.caller.client_id)
    with pytest.raises(Unauthenticated):
        graph.query()


def test_a_caller_without_the_needed_scope_gets_no_plan(graph: Graph) -> None:
    with pytest.raises(Forbidden, match=WRITE):
        graph.runner.run(graph.reader.plan(graph.caller, "p1", WRITE))


def test_a_facts_own_acl_decides_who_sees_it(graph: Graph) -> None:
    member, stranger = graph.client(groups=("x",)), graph.client(groups=("y",))
    graph.tell(
        fact("billing", "USES", "for everyone"),
        fact("billing", "USES", "for x", acl=["group:x"]),
        fact("billing", "USES", "for nobody", acl=[]),
        fact("billing", "USES", "for a user", acl=[f"user:{stranger.client_id}"]),
    )
    assert graph.objects(member) == ["for everyone", "for x"]
    assert graph.objects(stranger) == ["for a user", "for everyone"]
    told = graph.history("billing", member).facts
    assert {each.object for each in told} == {"for everyone", "for x"}


def test_a_sources_acl_acts_on_the_next_question_and_on_the_past(graph: Graph) -> None:
    member = graph.client(groups=("x",))
    graph.tell(fact("billing", "USES", "redis"))
    before = graph.now()
    graph.change_source("s1", acl=["group:x"])
    for moment in (None, before):
        assert graph.objects(as_known_at=moment) == []
        assert graph.objects(member, as_known_at=moment) == ["redis"]
    graph.change_source("s1", acl=None)
    assert graph.objects() == ["redis"]


def test_a_deleted_source_takes_its_facts_out_of_every_answer(graph: Graph) -> None:
    graph.tell(fact("billing", "USES", "redis"), fact("billing", "USES", "kafka", sourceId="s2"))
    graph.change_source("s1", deleted_at=graph.now())
    assert graph.objects() == ["kafka"]
    assert [each.object for each in graph.history("billing").facts] == ["kafka"]


def test_a_published_source_must_be_readable_where_it_was_published_too(graph: Graph) -> None:
    docs = collection_of(graph.runtime, graph.tenant_id)
    announce_documents(graph.runtime, docs, [{"id": "a", "text": "t"}], acl=("group:x",))
    member = graph.client(groups=("x",))
    graph.tell(fact("billing", "USES", "redis"))
    assert graph.objects() == []
    assert graph.objects(member) == ["redis"]
    catalogue.set_source_acl(graph.runtime.app, docs, "s1", None)
    assert graph.objects() == ["redis"]
    delete_source(graph.runtime.app, docs, "s1")
    assert graph.objects(member) == []


@pytest.mark.parametrize("change", [{"acl": ["group:x"]}, {"deleted_at": at(2024)}], ids=str)
def test_a_successor_that_the_caller_may_not_see_ends_nothing_for_it(
    graph: Graph, change: dict[str, Any]
) -> None:
    graph.tell(owned("core", "2020"), owned("edge", "2022", sourceId="s2"))
    assert graph.objects(as_of=at(2024)) == ["edge"]
    graph.change_source("s2", **change)
    (found,) = graph.facts(as_of=at(2024))
    assert (found.object, found.valid_to, found.superseded_by) == ("core", None, None)
    assert found.contradicts == ()


def _with_chunks(graph: Graph) -> list[str]:
    """Two chunks, one for the group x; returns their ids in that order."""
    docs = collection_of(graph.runtime, graph.tenant_id)
    documents: list[dict[str, Any]] = [
        {"id": "a", "text": "one"},
        {"id": "b", "text": "two", "acl": ["group:x"]},
    ]
    announce_documents(graph.runtime, docs, documents)
    index(graph.runtime, docs)
    graph.collections["docs"] = docs.collection_id
    rows = graph.rows("select chunk_id from chunk_versions order by text")
    return [str(row["chunk_id"]) for row in rows]


def test_a_fact_that_a_chunk_says_is_seen_by_who_sees_the_chunk(graph: Graph) -> None:
    member = graph.client(groups=("x",))
    for_all, for_x = _with_chunks(graph)
    graph.tell(
        fact("billing", "USES", "redis", collection="docs", chunkId=for_all),
        fact("billing", "USES", "kafka", collection="docs", chunkId=for_x),
    )
    assert graph.objects() == ["redis"]
    assert graph.objects(member) == ["kafka", "redis"]
    docs = graph.runtime.collection(graph.tenant_id, "docs")
    announce_documents(graph.runtime, docs, [{"id": "a", "text": "one"}], mode="full")
    index(graph.runtime, docs)
    assert graph.objects(member) == ["redis"]
    catalogue.set_source_acl(graph.runtime.app, docs, "s1", ())
    assert graph.objects(member) == []


def test_a_successor_that_a_hidden_chunk_says_ends_nothing(graph: Graph) -> None:
    member = graph.client(groups=("x",))
    _, for_x = _with_chunks(graph)
    graph.tell(owned("core", "2020"), owned("edge", "2022", collection="docs", chunkId=for_x))
    (found,) = graph.facts(as_of=at(2024))
    assert (found.object, found.superseded_by) == ("core", None)
    assert "edge" in graph.objects(member, as_of=at(2024))


def test_a_chunk_of_another_project_says_nothing_here(graph: Graph) -> None:
    for_all, _ = _with_chunks(graph)
    both = graph.client(projects=("p1", "p2"))
    told = fact("billing", "USES", "redis", collection="docs", chunkId=for_all)
    graph.tell(told, project_id="p2")
    assert graph.objects(both, project_id="p2") == []


def test_an_inferred_fact_is_hidden_with_any_source_it_rests_on(graph: Graph) -> None:
    graph.tell(
        fact("a", "DEPENDS_ON", "b", sourceId="open"), fact("b", "DEPENDS_ON", "c", sourceId="s2")
    )
    chain = "a DEPENDS_ON c"
    assert chain in graph.triples(suggestions=True)
    graph.change_source("s2", acl=["group:x"])
    assert graph.triples(suggestions=True) == {"a DEPENDS_ON b", "b DEPENDENCY_OF a"}
    assert chain in graph.triples(graph.client(groups=("x",)), suggestions=True)
