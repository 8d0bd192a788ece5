"""Expansions and paths over merged names: an entity is one node, whatever it is called."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from knowledge.graph.expanding import Paths, Subgraph, expand, find_paths
from knowledge.graph.questions import Expansion, PathQuestion
from knowledge.graph.wire import subgraph_to_wire
from knowledge.model.scope import Caller
from knowledge.storage.postgres.facts import entities
from tests.graph.telling import Graph, fact


def merge(graph: Graph, name: str, into: str, **wanted: Any) -> uuid.UUID:
    """Merge two names, each written ``name`` or ``name/type``."""
    (name, _, type_), (into, _, into_type) = name.partition("/"), into.partition("/")
    return entities.merge(
        graph.runtime.app,
        graph.tenant_id,
        namespace=wanted.get("namespace", "default"),
        name=name,
        into=into,
        type_=type_ or None,
        into_type=into_type or None,
        reason="one thing",
        by="operator",
    )


def said(subject: str, predicate: str, object_: str, **fields: Any) -> dict[str, Any]:
    """A fact between names that are written ``name`` or ``name/type``."""
    (subject, _, one), (object_, _, other) = subject.partition("/"), object_.partition("/")
    types = {"subjectType": one or None, "objectType": other or None}
    return fact(subject, predicate, object_, **types | fields)


def around(graph: Graph, *names: str, caller: Caller | None = None, **wanted: Any) -> Subgraph:
    question = Expansion("p1", names, **wanted)
    return graph.runner.run(expand(graph.reader, caller or graph.caller, question))


def edges(found: Subgraph) -> set[str]:
    """The edges by the names of their nodes."""
    wire = subgraph_to_wire(found)
    return {f"{e['from']} {e['fact']['predicate']} {e['to']}" for e in wire["edges"]}


def names(found: Subgraph) -> list[str]:
    return [node.name for node in found.nodes]


def paths(graph: Graph, source: str, target: str, **wanted: Any) -> Paths:
    question = PathQuestion("p1", source, target, **wanted)
    return graph.runner.run(find_paths(graph.reader, graph.caller, question))


@pytest.fixture
def mercury(graph: Graph) -> Graph:
    """One name of a god, a planet, a band and of what nobody said."""
    graph.tell(
        said("mercury/god", "GUIDES", "souls"),
        said("mercury/planet", "CIRCLES", "sun"),
        said("mercury/band", "PLAYS", "songs"),
        said("mercury", "USES", "wings"),
        said("hermes", "CARRIES", "staff"),
        said("mercury planet", "LACKS", "moons"),
        said("mercure", "NAMES", "day"),
    )
    return graph


def test_a_name_without_a_type_is_met_where_two_types_of_it_are_two_entities(
    mercury: Graph,
) -> None:
    merge(mercury, "mercury/god", "hermes")
    merge(mercury, "mercury/planet", "mercury planet")
    assert edges(around(mercury, "hermes", hops=3)) == {
        "hermes CARRIES staff",
        "hermes GUIDES souls",
        "hermes USES wings",
    }
    assert edges(around(mercury, "mercury planet", hops=3)) == {
        "mercury planet LACKS moons",
        "mercury planet CIRCLES sun",
        "mercury planet USES wings",
    }


def test_a_name_of_several_entities_is_around_all_of_them(mercury: Graph) -> None:
    merge(mercury, "mercury/god", "hermes")
    merge(mercury, "mercury/planet", "mercury planet")
    mercury.tell(said("poet", "PRAISES", "mercury"))
    all_of_them = {"souls", "sun", "songs", "wings", "staff", "moons"}
    assert {f.object for f in mercury.facts(subject="mercury")} == all_of_them
    assert {e.fact.object for e in around(mercury, "mercury").edges} == all_of_them | {"mercury"}
    met = around(mercury, "poet", hops=2)
    assert {e.fact.object for e in met.edges} == all_of_them | {"mercury"}
    assert names(met)[:2] == ["poet", "mercury"]


@pytest.mark.parametrize("asked", ["mercure", "MERCURE"])
def test_an_entity_of_one_type_is_not_the_other_types_of_its_name(
    mercury: Graph, asked: str
) -> None:
    merge(mercury, "mercury/god", "hermes")
    merge(mercury, "mercure", "mercury/planet")
    expected = {"day", "sun", "wings"}
    assert {f.object for f in mercury.facts(subject=asked)} == expected
    assert {f.object for f in mercury.history(asked).facts} == expected
    assert {e.fact.object for e in around(mercury, asked, hops=3).edges} == expected
    assert {f.object for f in mercury.facts(subject="hermes")} == {"staff", "souls", "wings"}


def test_another_type_for_a_name_is_followed(mercury: Graph) -> None:
    merge(mercury, "mercury/god", "mercury/deity")
    mercury.tell(said("mercury/deity", "HAS", "temple"))
    for type_ in ("god", "deity"):
        found = mercury.objects(subject="mercury", subject_type=type_)
        assert found == ["souls", "temple", "wings"]
    assert edges(around(mercury, "souls", hops=2)) == {
        "mercury GUIDES souls",
        "mercury HAS temple",
        "mercury USES wings",
    }


def test_entities_that_share_a_name_are_told_apart_by_type(mercury: Graph) -> None:
    merge(mercury, "mercure", "mercury/planet")
    mercury.tell(said("mercury/planet", "GAVE_NAME_TO", "mercury/element"))
    found = around(mercury, "sun", hops=2)
    assert names(found) == ["sun", "mercury (planet)", "day", "mercury (element)", "wings"]


def test_a_root_that_is_merged_further_elsewhere_is_met_at_the_second_hop(graph: Graph) -> None:
    merge(graph, "a", "b", namespace="one")
    merge(graph, "b", "c", namespace="two")
    graph.tell(
        fact("x", "USES", "a", namespace="one"),
        fact("b", "USES", "y", namespace="two"),
        fact("y", "USES", "b", namespace="two"),
        fact("c", "USES", "z", namespace="two"),
        fact("a", "USES", "w", namespace="three"),
    )
    for start in "xabcyzw":
        found = around(graph, start, hops=3)
        keys = {node.key for node in found.nodes}
        assert all({edge.source, edge.target} <= keys for edge in found.edges)
    assert {e.fact.object for e in around(graph, "x", hops=3).edges} == set("abyz")
    assert {e.fact.object for e in around(graph, "a").edges} == set("ayzbw")


def test_a_fact_met_from_a_name_merged_elsewhere_leads_to_what_it_was_merged_into(
    graph: Graph,
) -> None:
    merge(graph, "a", "b", namespace="one")
    graph.tell(
        fact("x", "USES", "a", namespace="two"),
        fact("a", "USES", "y", namespace="one"),
        fact("b", "USES", "z", namespace="two"),
    )
    assert {e.fact.object for e in around(graph, "x", hops=3).edges} == set("ay")
    graph.tell(fact("y", "USES", "w", namespace="two"), fact("x", "USES", "y", namespace="two"))
    found = around(graph, "x", hops=3)
    assert {e.fact.object for e in found.edges} == set("ayzw")
    assert {node.key for node in found.nodes} == set("xaybzw")


def test_what_a_caller_may_read_no_fact_of_gives_no_name(graph: Graph) -> None:
    graph.tell(
        fact("Falcon", "USES", "engine"),
        fact("FALCON", "HAS", "crew"),
        fact("Falcon", "LEFT", "base"),
        fact("Project X", "COSTS", "millions", acl=["group:board"]),
        fact("falcon 2", "NEEDS", "fuel"),
    )
    merge(graph, "falcon", "Project X")
    merge(graph, "falcon 2", "Project X")
    assert names(around(graph, "base", hops=2)) == ["base", "Falcon", "crew", "engine", "fuel"]
    assert names(around(graph, "falcon"))[0] == "falcon"
    assert names(around(graph, "project x"))[0] == "project x"
    board = graph.client(groups=["board"])
    assert names(around(graph, "base", caller=board, hops=2))[1] == "Project X"


def test_paths_go_through_merged_names_and_take_no_fact_twice(mercury: Graph) -> None:
    merge(mercury, "mercury/god", "hermes")
    merge(mercury, "mercury/planet", "mercury planet")
    mercury.tell(said("poet", "PRAISES", "mercury"))
    (way,) = paths(mercury, "staff", "souls").paths
    assert [edge.fact.object for edge in way] == ["staff", "souls"]
    (way,) = paths(mercury, "poet", "moons", max_hops=3).paths
    assert [edge.fact.object for edge in way] == ["mercury", "moons"]
    for way in paths(mercury, "hermes", "mercury planet").paths:
        assert len({edge.fact.fact_id for edge in way}) == len(way)
    assert paths(mercury, "hermes", "Hermes").paths == ((),)
