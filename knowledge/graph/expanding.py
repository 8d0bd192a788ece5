"""What is around entities, and how two of them are connected: one hop after the other.

Each hop is one query that carries the whole scope, so nothing is ever reached through a fact
that the caller may not see.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from knowledge.graph.querying import FactPlan, FactReader
from knowledge.graph.questions import Direction, Expansion, PathQuestion
from knowledge.model.fact import EntityName, Fact, name_key
from knowledge.model.scope import Caller, Scope
from knowledge.storage.postgres.facts import entities
from knowledge.storage.postgres.facts.filters import FactFilter
from knowledge.storage.postgres.facts.reading import find_neighbours

MAX_VISITED: Final = 5_000
"""Entities that a search for paths looks at on its way."""

PATH_FAN_OUT: Final = 200
_TURNED: Final[Mapping[Direction, Direction]] = {"out": "in", "in": "out", "both": "both"}
_SIDES: Final[Mapping[Direction, tuple[str, ...]]] = {
    "out": ("out",),
    "in": ("in",),
    "both": ("out", "in"),
}


@dataclass(slots=True)
class Node:
    """An entity of a subgraph. ``names`` are the spellings met, ``path`` the facts that lead to it
    from the entity it was reached from, ``distance`` their number."""

    key: str
    name: str
    distance: int
    types: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    path: tuple[uuid.UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """A fact between two nodes, named by their keys."""

    source: str
    target: str
    fact: Fact


@dataclass(frozen=True, slots=True)
class Subgraph:
    """Nodes in the order they were reached, then by name; edges as they were met.

    ``cut`` are the names of nodes with more facts than were followed, and ``is_full`` says that
    a limit on nodes or edges ended the search: in both cases there is more.
    """

    scope: Scope
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    as_of: datetime | None
    as_known_at: datetime
    cut: tuple[str, ...] = ()
    is_full: bool = False


@dataclass(frozen=True, slots=True)
class Paths:
    """The shortest chains of facts between two entities; empty when there is none so short.

    ``is_cut``: there may be others, or shorter ones, beyond what was looked at.
    """

    scope: Scope
    paths: tuple[tuple[Edge, ...], ...]
    as_of: datetime | None
    as_known_at: datetime
    is_cut: bool


async def expand(reader: FactReader, caller: Caller, question: Expansion) -> Subgraph:
    """Facts up to ``hops`` away from the entities. Raises what `FactReader.plan` raises."""
    plan = await reader.plan(caller, question.project_id)
    walk = await _Walk.begin(
        reader,
        plan,
        question.entities,
        question,
        max_nodes=question.max_nodes,
        max_edges=question.max_edges,
    )
    for _hop in range(question.hops):
        if not await walk.hop():
            break
    return Subgraph(
        scope=plan.scope,
        nodes=tuple(sorted(walk.nodes.values(), key=lambda node: (node.distance, node.name))),
        edges=tuple(walk.edges.values()),
        as_of=plan.as_of(question.sieve),
        as_known_at=plan.seen(question.sieve).known_at,
        cut=tuple(sorted({walk.nodes[key].name for key in walk.cut if key in walk.nodes})),
        is_full=walk.is_full,
    )


async def find_paths(reader: FactReader, caller: Caller, question: PathQuestion) -> Paths:
    """The shortest paths from one entity to the other, searched from both ends."""
    plan = await reader.plan(caller, question.project_id)
    bounds = Expansion(
        question.project_id,
        entities=(question.source,),
        direction=question.direction,
        sieve=question.sieve,
        fan_out=PATH_FAN_OUT,
    )
    ahead = await _Walk.begin(
        reader, plan, (question.source,), bounds, max_nodes=MAX_VISITED, max_edges=MAX_VISITED
    )
    back = await _Walk.begin(
        reader,
        plan,
        (question.target,),
        replace(bounds, direction=_TURNED[question.direction]),
        max_nodes=MAX_VISITED,
        max_edges=MAX_VISITED,
    )
    source, target = ahead.entries, back.entries
    for _hop in range(question.max_hops):
        if ahead.nodes.keys() & back.nodes.keys():
            break
        smaller = ahead if len(ahead.frontier) <= len(back.frontier) else back
        if not await smaller.hop():
            break
    edges = {**ahead.edges, **back.edges}
    found = _shortest(edges.values(), source, target, question)
    return Paths(
        scope=plan.scope,
        paths=tuple(found[: question.limit]),
        as_of=plan.as_of(question.sieve),
        as_known_at=plan.seen(question.sieve).known_at,
        is_cut=len(found) > question.limit or ahead.is_thin or back.is_thin,
    )


class _Walk:
    """A breadth-first search that grows by one hop at a time."""

    def __init__(
        self,
        reader: FactReader,
        plan: FactPlan,
        bounds: Expansion,
        *,
        max_nodes: int,
        max_edges: int,
    ) -> None:
        self.nodes: dict[str, Node] = {}
        self.edges: dict[uuid.UUID, Edge] = {}
        self.frontier: list[str] = []
        self.entries: frozenset[str] = frozenset()
        self.cut: set[str] = set()
        self.is_full = False
        self._reader = reader
        self._plan = plan
        self._bounds = bounds
        self._max_nodes = max_nodes
        self._max_edges = max_edges
        predicates = tuple(plan.ontology.canonical(name) for name in bounds.predicates)
        self._wanted: FactFilter = replace(plan.filter(bounds.sieve), predicates=predicates)
        self._roots: dict[tuple[str, str], tuple[str, str]] = {}
        self._members: dict[str, list[EntityName]] = {}

    @classmethod
    async def begin(
        cls,
        reader: FactReader,
        plan: FactPlan,
        names: Iterable[str],
        bounds: Expansion,
        *,
        max_nodes: int,
        max_edges: int,
    ) -> _Walk:
        """A walk that stands at the entities of these names."""
        walk = cls(reader, plan, bounds, max_nodes=max_nodes, max_edges=max_edges)
        given = {name_key(name): name for name in names}
        await walk._learn(list(given))
        for key, name in given.items():
            roots = {root for (_namespace, asked), root in walk._roots.items() if asked == key}
            for root_key, root_name in sorted(roots) or [(key, name)]:
                walk.nodes.setdefault(root_key, Node(root_key, root_name, 0, names={name}))
        walk.frontier = list(walk.nodes)
        walk.entries = frozenset(walk.nodes)
        return walk

    async def hop(self) -> bool:
        """Follow the facts of the frontier; False when nothing new was reached."""
        if not self.frontier or self.is_full:
            return False
        names = [name for key in self.frontier for name in self._names(key)]
        found = await find_neighbours(
            self._reader.database,
            self._plan.seen(self._bounds.sieve),
            names,
            self._wanted,
            directions=_SIDES[self._bounds.direction],
            fan_out=self._bounds.fan_out,
        )
        self.cut |= found.cut
        await self._learn(
            sorted({name_key(end) for fact in found.facts for end in (fact.subject, fact.object)})
        )
        self.frontier = []
        for fact in found.facts:
            self._follow(fact)
        return bool(self.frontier)

    def _follow(self, fact: Fact) -> None:
        """Take up a fact, and the node at its other end when that is new."""
        if fact.fact_id in self.edges:
            return
        subject, target = (
            self._end(fact.namespace, fact.subject),
            self._end(fact.namespace, fact.object),
        )
        ends = (
            (subject, fact.subject, fact.subject_type),
            (target, fact.object, fact.object_type),
        )
        new = {end[0] for end, _, _ in ends} - self.nodes.keys()
        is_room = (
            len(self.edges) < self._max_edges and len(self.nodes) + len(new) <= self._max_nodes
        )
        if not is_room:
            self.is_full = True
            return
        self.edges[fact.fact_id] = Edge(subject[0], target[0], fact)
        for (key, root_name), spelled, type_ in ends:
            if key not in self.nodes:
                reached_from = subject[0] if key == target[0] else target[0]
                origin = self.nodes[reached_from]
                path = (*origin.path, fact.fact_id)
                self.nodes[key] = Node(key, root_name or spelled, len(path), path=path)
                self.frontier.append(key)
            self.nodes[key].names.add(spelled)
            if type_ is not None:
                self.nodes[key].types.add(type_)

    @property
    def is_thin(self) -> bool:
        """Whether there was more than the bounds let through."""
        return self.is_full or bool(self.cut)

    def _names(self, key: str) -> list[EntityName]:
        return [EntityName(key), *self._members.get(key, ())]

    def _end(self, namespace: str, name: str) -> tuple[str, str]:
        """Key and name of the entity that a fact of the namespace calls by this name."""
        key = name_key(name)
        return self._roots.get((namespace, key), (key, ""))

    async def _learn(self, keys: Sequence[str]) -> None:
        """Which of the names were merged with others, and into what."""
        if not self._plan.has_merges or not keys:
            return
        for same in await entities.same_entities(
            self._reader.database, self._plan.scope.tenant_id, keys
        ):
            self._roots[same.namespace, same.key] = same.root_key, same.root_name
            if same.key != same.root_key:
                name = EntityName(same.key, same.namespace, same.type)
                members = self._members.setdefault(same.root_key, [])
                if name not in members:
                    members.append(name)


def _shortest(
    edges: Iterable[Edge], source: frozenset[str], target: frozenset[str], question: PathQuestion
) -> list[tuple[Edge, ...]]:
    """All shortest paths over these edges, by their facts' ids; one more than asked for at most."""
    leaving: dict[str, list[tuple[str, Edge]]] = {}
    for edge in sorted(edges, key=lambda edge: edge.fact.fact_id):
        if question.direction != "in":
            leaving.setdefault(edge.source, []).append((edge.target, edge))
        if question.direction != "out":
            leaving.setdefault(edge.target, []).append((edge.source, edge))
    distances = _distances(leaving, source, question.max_hops)
    within = [distances[key] for key in target if key in distances]
    if not within:
        return []
    found: list[tuple[Edge, ...]] = []
    ways: deque[tuple[str, tuple[Edge, ...]]] = deque((key, ()) for key in sorted(source))
    while ways and len(found) <= question.limit:
        key, way = ways.popleft()
        if key in target and len(way) == min(within):
            found.append(way)
        elif len(way) < min(within):
            for other, edge in leaving.get(key, ()):
                if distances.get(other) == len(way) + 1:
                    ways.append((other, (*way, edge)))
    return found


def _distances(
    leaving: Mapping[str, Sequence[tuple[str, Edge]]], source: frozenset[str], most: int
) -> dict[str, int]:
    distances = dict.fromkeys(source, 0)
    waiting = deque(source)
    while waiting:
        key = waiting.popleft()
        if distances[key] == most:
            continue
        for other, _ in leaving.get(key, ()):
            if other not in distances:
                distances[other] = distances[key] + 1
                waiting.append(other)
    return distances
