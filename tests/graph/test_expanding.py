"""Expansions and paths keep to their limits, say so, and take no longer than they must."""

from __future__ import annotations

import itertools
import random
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from knowledge.graph.questions import Direction
from knowledge.graph.shortest import shortest_paths
from knowledge.graph.walking import Edge
from knowledge.model.fact import Fact
from tests.graph.telling import Graph, fact
from tests.graph.test_merged_walks import around, names, paths


@pytest.fixture
def template(graph: Graph) -> Fact:
    graph.tell(fact("any", "LINKS_TO", "other"))
    (found,) = graph.facts()
    return found


def _edges(template: Fact, pairs: Iterable[tuple[str, str]]) -> list[Edge]:
    return [
        Edge(source, target, replace(template, fact_id=uuid.UUID(int=number)))
        for number, (source, target) in enumerate(pairs, start=1)
    ]


def _layers(width: int, depth: int) -> list[tuple[str, str]]:
    layers = [[f"{layer}-{n}" for n in range(width)] for layer in range(depth)]
    between = [pair for one, other in itertools.pairwise(layers) for pair in _all(one, other)]
    return [*_all(["source"], layers[0]), *between, *_all(layers[-1], ["target"])]


def _all(ones: Sequence[str], others: Sequence[str]) -> list[tuple[str, str]]:
    return list(itertools.product(ones, others))


def test_the_first_of_a_million_shortest_paths_are_found_at_once(template: Fact) -> None:
    edges = _edges(template, _layers(width=16, depth=5))
    assert len(edges) == 1_056
    started = time.perf_counter()
    found = shortest_paths(edges, ["source"], ["target"], direction="both", limit=11)
    assert time.perf_counter() - started < 0.2
    assert len(found) == 11
    assert all(len(way) == 6 for way in found)
    ids = [[edge.fact.fact_id for edge in way] for way in found]
    assert ids == sorted(ids)


@pytest.mark.parametrize("direction", ["out", "in", "both"])
def test_the_shortest_paths_are_those_of_an_exhaustive_search(
    template: Fact, direction: Direction
) -> None:
    rng = random.Random(3)
    for _ in range(60):
        pairs = [(str(rng.randrange(7)), str(rng.randrange(7))) for _ in range(rng.randrange(14))]
        edges = _edges(template, pairs)
        found = shortest_paths(edges, ["0"], ["6"], direction=direction, limit=1_000)
        assert set(found) == _exhaustive(edges, direction)


def _exhaustive(edges: Sequence[Edge], direction: str) -> set[tuple[Edge, ...]]:
    ways: list[tuple[str, tuple[Edge, ...]]] = [("0", ())]
    for _ in range(7):
        if found := {way for at, way in ways if at == "6"}:
            return found
        ways = [
            (end, (*way, edge))
            for at, way in ways
            for edge in edges
            for begin, end in dict.fromkeys(_directed(edge, direction))
            if begin == at
        ]
    return set()


def _directed(edge: Edge, direction: str) -> list[tuple[str, str]]:
    out, back = (edge.source, edge.target), (edge.target, edge.source)
    return {"out": [out], "in": [back], "both": [out, back]}[direction]


def _star(hub: str, spokes: int, **fields: Any) -> list[dict[str, Any]]:
    return [fact(hub, "USES", f"{hub} part {number}", **fields) for number in range(spokes)]


def test_a_node_with_just_as_many_facts_as_are_followed_is_not_cut(graph: Graph) -> None:
    graph.tell(*_star("hub", 3), fact("hub", "KNOWS", "hub"), fact("user", "USES", "hub"))
    full = around(graph, "hub", fan_out=4)
    assert (len(full.edges), full.cut, full.is_full) == (5, (), False)
    cut = around(graph, "hub", fan_out=3)
    assert cut.cut == ("hub",)


def test_every_node_whose_facts_were_not_all_read_is_named(graph: Graph) -> None:
    hubs = [f"hub {number}" for number in range(6)]
    graph.tell(*(line for hub in hubs for line in _star(hub, 10)))
    found = around(graph, *hubs, max_edges=25)
    assert (len(found.edges), found.is_full) == (25, True)
    followed = {hub: sum(edge.fact.subject == hub for edge in found.edges) for hub in hubs}
    assert set(found.cut) == {hub for hub, facts in followed.items() if facts < 10}


@pytest.mark.parametrize(("max_edges", "is_full"), [(20, False), (19, True), (10, True)])
def test_a_limit_on_edges_is_said_only_where_there_are_more(
    graph: Graph, max_edges: int, is_full: bool
) -> None:
    spokes = _star("hub", 10)
    graph.tell(*spokes, *(fact(each["object"], "PART_OF", "hub") for each in spokes))
    found = around(graph, "hub", hops=3, max_edges=max_edges)
    assert (len(found.edges), found.is_full) == (max_edges, is_full)


def test_a_limit_on_nodes_is_kept_and_said(graph: Graph) -> None:
    graph.tell(*_star("hub", 10))
    found = around(graph, "hub", max_nodes=5)
    assert (len(found.nodes), len(found.edges), found.is_full) == (5, 4, True)
    assert not around(graph, "hub", max_nodes=11).is_full


def test_nodes_have_the_spelling_that_facts_use_most(graph: Graph) -> None:
    graph.tell(fact("a", "USES", "Db"), fact("a", "HAS", "DB"), fact("a", "OWNS", "DB"))
    assert names(around(graph, "A")) == ["A", "DB"]


def test_paths_of_one_length_are_all_found_and_more_are_said(graph: Graph) -> None:
    graph.tell(*(fact(one, "LINKS_TO", other) for one, other in _layers(width=4, depth=2)))
    found = paths(graph, "source", "target", limit=16)
    assert (len(found.paths), found.is_cut) == (16, False)
    fewer = paths(graph, "source", "target", limit=15)
    assert (fewer.paths, fewer.is_cut) == (found.paths[:15], True)
    assert paths(graph, "source", "target", max_hops=2).paths == ()
