"""Which of the facts around entities are answered, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest

from knowledge.graph.walking import Edge, Node, Walk
from knowledge.model.fact import Fact
from knowledge.retrieval.naming import fact_text
from knowledge.text.analysis import analyse


def choose(walk: Walk, terms: Sequence[str], limit: int) -> list[Fact]:
    """At most ``limit`` facts: of each entity in turn the one that says most of what was asked.

    Nearer facts stand before farther ones, those with more of the query's words before others,
    then as they were met (newest first). The answer is by trust first, and stable.
    """
    wanted = set(terms)
    groups: dict[str, list[tuple[int, int, int, Edge]]] = {
        node.key: [] for node in walk.nodes.values() if node.distance == 0
    }
    for place, edge in enumerate(walk.edges.values()):
        near = _near(walk, edge)
        said = len(wanted & set(analyse(fact_text(edge.fact)))) if wanted else 0
        groups[_entry_of(walk, near)].append((near.distance, -said, place, edge))
    lines = [[edge for *_, edge in sorted(group, key=lambda g: g[:3])] for group in groups.values()]
    turns = chain.from_iterable(zip_longest(*lines, fillvalue=None))
    chosen = [edge.fact for edge in turns if edge is not None][:limit]
    return sorted(chosen, key=lambda fact: fact.tier.rank)


def _near(walk: Walk, edge: Edge) -> Node:
    """The end of a fact that it was reached from."""
    ends = walk.nodes[edge.source], walk.nodes[edge.target]
    return min(ends, key=lambda node: node.distance)


def _entry_of(walk: Walk, node: Node) -> str:
    """The key of the entity that was asked for from which a node was reached."""
    return node.key if node.distance == 0 else _near(walk, walk.edges[node.path[0]]).key
