from __future__ import annotations

import pytest

from tests.cli.graph.conftest import Graph, said


def test_sources_of_facts_are_listed_with_their_readers(graph: Graph) -> None:
    assert "No source said a fact" in graph.run("sources", "list", *graph.place).out
    graph.tell(said("a", "USES", "b"), said("a", "USES", "c", sourceId="wiki"))
    graph.run("sources", "acl", "wiki", *graph.place, "--acl", "group:ops,user:ann")
    found = graph.run("sources", "list", *graph.place, "--json").json["sources"]
    assert [(source["sourceId"], source["acl"]) for source in found] == [
        ("cmdb", None),
        ("wiki", ["group:ops", "user:ann"]),
    ]
    shown = graph.run("sources", "list", *graph.place).out.splitlines()
    assert [line.split()[:2] for line in shown[1:]] == [
        ["cmdb", "everyone"],
        ["wiki", "group:ops,user:ann"],
    ]


@pytest.mark.parametrize(
    ("acl", "is_read"),
    [("group:ops", False), ("group:eng", True), ("nobody", False), ("everyone", True)],
)
def test_an_acl_acts_on_the_next_request(graph: Graph, acl: str, is_read: bool) -> None:
    graph.tell(said("a", "USES", "b"))
    done = graph.run("sources", "acl", "cmdb", *graph.place, "--acl", acl)
    assert done.out == f"Facts of source cmdb are read by {acl}, from the next request on.\n"
    assert bool(graph.facts()) is is_read


def test_a_known_source_keeps_its_acl_when_it_says_more(graph: Graph) -> None:
    graph.tell(said("a", "USES", "b"))
    graph.run("sources", "acl", "cmdb", *graph.place, "--acl", "nobody")
    graph.tell(said("a", "USES", "c"))
    assert graph.facts() == []


def test_collections_that_the_source_published_in_are_shown(
    graph: Graph, docs: tuple[str, ...]
) -> None:
    page = graph.folder / "page.md"
    page.write_text("# Page\n\nText.\n")
    assert graph.knowledge("publish", page, *docs, "--source", "cmdb").code == 0
    graph.tell(said("a", "USES", "b"))
    (source,) = graph.run("sources", "list", *graph.place, "--json").json["sources"]
    assert source["collections"] == ["docs"]


def test_a_source_that_only_said_facts_is_deleted_like_one_of_documents(
    graph: Graph, docs: tuple[str, ...]
) -> None:
    graph.tell(said("a", "USES", "b"), said("a", "USES", "c", sourceId="wiki"))
    options = ("--tenant", graph.tenant, "--collection", "docs")
    done = graph.knowledge("sources", "delete", "cmdb", *options)
    assert done.code == 0, done.err
    assert [fact["object"] for fact in graph.facts()] == ["c"]
    listed = graph.run("sources", "list", *graph.place, "--json").json["sources"]
    assert [source["deletedAt"] is not None for source in listed] == [True, False]


def test_an_unknown_source_or_project_is_one_line(graph: Graph) -> None:
    done = graph.run("sources", "acl", "typo", *graph.place, "--acl", "nobody")
    assert done.failure == "no source typo said a fact in project p1"
    done = graph.run("sources", "list", "--tenant", graph.tenant, "--project", "typo")
    assert done.failure == "there is no project typo"
    done = graph.run("sources", "acl", "cmdb", *graph.place, "--acl", "ops")
    assert done.code == 2
