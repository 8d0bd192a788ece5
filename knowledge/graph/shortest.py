"""The shortest paths over facts that were met."""

from __future__ import annotations

import uuid
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from knowledge.graph.questions import Direction
from knowledge.graph.walking import Edge

_Steps = Mapping[str, Sequence[tuple[str, Edge]]]


def shortest_paths(
    edges: Iterable[Edge],
    source: Collection[str],
    target: Collection[str],
    *,
    direction: Direction,
    limit: int,
) -> list[tuple[Edge, ...]]:
    """The shortest paths from a node of ``source`` to one of ``target``, by their facts' ids.

    At most ``limit`` of them; none when the only ones of that length would use a fact twice,
    which an ambiguous name allows. ``direction`` ``in`` goes from object to subject.
    """
    different = {(edge.fact.fact_id, edge.source, edge.target): edge for edge in edges}
    leaving: defaultdict[str, list[tuple[str, Edge]]] = defaultdict(list)
    arriving: defaultdict[str, list[tuple[str, Edge]]] = defaultdict(list)
    for _, edge in sorted(different.items(), key=lambda item: item[0]):
        ends = {"out": [(edge.source, edge.target)], "in": [(edge.target, edge.source)]}
        ends["both"] = ends["out"] + ends["in"]
        for begin, end in dict.fromkeys(ends[direction]):
            leaving[begin].append((end, edge))
            arriving[end].append((begin, edge))
    left = _distances(arriving, target)
    length = min((left[key] for key in source if key in left), default=None)
    found: dict[tuple[uuid.UUID, ...], tuple[Edge, ...]] = {}
    for begin in sorted(key for key in source if left.get(key, -1) == length):
        for way in _ways(leaving, left, begin):
            found.setdefault(tuple(edge.fact.fact_id for edge in way), way)
            if len(found) == limit:
                return list(found.values())
    return list(found.values())


def _ways(leaving: _Steps, left: Mapping[str, int], begin: str) -> Iterator[tuple[Edge, ...]]:
    """The ways on which every step comes nearer to the target, depth first."""
    way: list[Edge] = []
    used: set[uuid.UUID] = set()

    def walk(key: str) -> Iterator[tuple[Edge, ...]]:
        if left[key] == 0:
            yield tuple(way)
            return
        for other, edge in leaving.get(key, ()):
            if left.get(other) == left[key] - 1 and edge.fact.fact_id not in used:
                way.append(edge)
                used.add(edge.fact.fact_id)
                yield from walk(other)
                used.remove(way.pop().fact.fact_id)

    return walk(begin)


def _distances(steps: _Steps, start: Collection[str]) -> dict[str, int]:
    distances = dict.fromkeys(start, 0)
    waiting = deque(start)
    while waiting:
        key = waiting.popleft()
        for other, _ in steps.get(key, ()):
            if other not in distances:
                distances[other] = distances[key] + 1
                waiting.append(other)
    return distances
