"""Which of the facts around entities are answered, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest

from knowledge.graph.walking import Edge, Walk
from knowledge.model.fact import Fact, name_key
from knowledge.retrieval.naming import fact_text
from knowledge.text.analysis import analyse


def choose(walk: Walk, entries: Sequence[str], terms: Sequence[str], limit: int) -> list[Fact]:
    """At most ``limit`` facts: of each entity in turn the one that says most of what was asked.

    Nearer facts stand before farther ones, those with more of the query's words before others,
    then as they were met (newest first). The answer is by trust first, and stable.
    """
    wanted = set(terms)
    groups: dict[str, list[tuple[int, int, int, Edge]]] = {name_key(name): [] for name in entries}
    for place, edge in enumerate(walk.edges.values()):
        distance = min(walk.nodes[edge.source].distance, walk.nodes[edge.target].distance)
        said = len(wanted & set(analyse(fact_text(edge.fact)))) if wanted else 0
        groups[_entry_of(walk, edge, groups)].append((distance, -said, place, edge))
    lines = [[edge for *_, edge in sorted(group, key=lambda g: g[:3])] for group in groups.values()]
    turns = chain.from_iterable(zip_longest(*lines, fillvalue=None))
    chosen = [edge.fact for edge in turns if edge is not None][:limit]
    return sorted(chosen, key=lambda fact: fact.tier.rank)


def _entry_of(walk: Walk, edge: Edge, entries: dict[str, list[tuple[int, int, int, Edge]]]) -> str:
    """The entity that a fact was reached from: the first of those asked for at its near end."""
    names = [name_key(n) for end in (edge.source, edge.target) for n in walk.nodes[end].names]
    for key in entries:
        if key in names:
            return key
    return next(reversed(entries))
