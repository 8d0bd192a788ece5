"""A walk over facts, one hop after the other, that knows which names are one entity."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from knowledge.graph.querying import FactPlan
from knowledge.graph.questions import Direction, Expansion
from knowledge.model.fact import EntityName, Fact, name_key
from knowledge.model.merge import Mention, Merges
from knowledge.storage.postgres.database import AsyncDatabase
from knowledge.storage.postgres.facts import entities
from knowledge.storage.postgres.facts.filters import FactFilter
from knowledge.storage.postgres.facts.reading import find_neighbours

_SIDES: Final[Mapping[Direction, tuple[str, ...]]] = {
    "out": ("out",),
    "in": ("in",),
    "both": ("out", "in"),
}


@dataclass(slots=True)
class Node:
    """An entity of a subgraph. ``names`` are the spellings met, ``path`` the facts that lead to it
    from the entity it was reached from, ``distance`` their number. ``key`` means nothing outside."""

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


class Walk:
    """A breadth-first search that grows by one hop at a time.

    ``cut`` are the keys of nodes with more facts than were followed; ``is_full`` says that a limit
    on nodes or edges ended the search. ``again`` are facts that are an edge already, and lead to a
    further entity from their other end: a name may be merged in the namespace of the fact, and
    have been met in another. With ``rejoins`` they are followed; with ``of_session`` only facts of the
    scope's sessions, not what is shared. ``aliases`` are the names asked for, by key, with the entity
    that each is in every namespace.
    """

    def __init__(
        self,
        database: AsyncDatabase,
        plan: FactPlan,
        bounds: Expansion,
        *,
        max_nodes: int,
        max_edges: int,
        rejoins: bool = False,
        of_session: bool = False,
    ) -> None:
        self.nodes: dict[str, Node] = {}
        self.edges: dict[uuid.UUID, Edge] = {}
        self.again: list[Edge] = []
        self.frontier: list[str] = []
        self.entries: frozenset[str] = frozenset()
        self.cut: set[str] = set()
        self.is_full = False
        self.aliases: dict[str, Mention] = {}
        self.max_edges = max_edges
        self._database = database
        self._plan = plan
        self._bounds = bounds
        self._max_nodes = max_nodes
        self._rejoins = rejoins
        predicates = tuple(plan.ontology.canonical(name) for name in bounds.predicates)
        self._wanted: FactFilter = replace(
            plan.filter(bounds.sieve), predicates=predicates, of_session=of_session
        )
        self._merges = Merges()
        self._learnt: set[str] = set()
        self._entities: dict[str, Mention] = {}
        self._asked: dict[str, list[str]] = {}
        self._spelled: dict[str, Counter[str]] = {}

    @classmethod
    async def begin(
        cls,
        database: AsyncDatabase,
        plan: FactPlan,
        names: Iterable[str],
        bounds: Expansion,
        *,
        max_nodes: int,
        max_edges: int,
        rejoins: bool = False,
        of_session: bool = False,
    ) -> Walk:
        """A walk that stands at the entities of these names."""
        walk = cls(
            database,
            plan,
            bounds,
            max_nodes=max_nodes,
            max_edges=max_edges,
            rejoins=rejoins,
            of_session=of_session,
        )
        given = {name_key(name): name for name in names}
        await walk._learn(given)
        for key, name in given.items():
            walk.aliases[key] = walk._merges.entity_of(key)
            node = walk._node_key(walk.aliases[key])
            walk.nodes.setdefault(node, Node(node, name, 0)).names.add(name)
            walk._asked.setdefault(node, []).append(name)
        walk.frontier = list(walk.nodes)
        walk.entries = frozenset(walk.nodes)
        return walk

    @property
    def is_thin(self) -> bool:
        """Whether there was more than the bounds let through."""
        return self.is_full or bool(self.cut)

    async def hop(self) -> bool:
        """Follow the facts of the frontier; False when nothing new was reached."""
        if not self.frontier or self.is_full:
            return False
        nodes: dict[EntityName, str] = {}
        for key in self.frontier:
            for name in self._names(key):
                nodes.setdefault(name, key)
        keys = list(nodes.values())
        found = await find_neighbours(
            self._database,
            self._plan.seen(self._bounds.sieve),
            list(nodes),
            self._wanted,
            directions=_SIDES[self._bounds.direction],
            fan_out=self._bounds.fan_out,
            most=max(self.max_edges - len(self.edges), 0),
            known=self._known(),
        )
        self.cut |= {keys[place] for place in found.cut}
        self.is_full = found.is_full
        await self._learn(
            {name_key(end) for fact in found.facts for end in (fact.subject, fact.object)}
        )
        self.frontier = []
        for fact, near in zip(found.facts, found.near, strict=True):
            self._follow(fact, keys[near.place], is_subject=near.is_subject)
        return bool(self.frontier)

    def named_nodes(self) -> dict[str, Node]:
        """The nodes with the names to show, by key; where two would have the same, with the type.

        What an entity was merged into is a name only where a fact of the walk or the question
        uses it: the caller may not be allowed to read any fact that does.
        """
        names = {key: self._name(key) for key in self.nodes}
        times = Counter(names.values())
        for key, node in self.nodes.items():
            type_ = self._entities[key].type
            is_told_apart = times[names[key]] > 1 and type_ in node.types
            node.name = f"{names[key]} ({type_})" if is_told_apart else names[key]
        return self.nodes

    def _follow(self, fact: Fact, near: str, *, is_subject: bool) -> None:
        """Take up a fact found by one of its ends from a node, and the node at the other end."""
        if is_subject:
            far = Mention(name_key(fact.object), fact.object_type)
        else:
            far = Mention(name_key(fact.subject), fact.subject_type)
        end = self._node_key(self._merges.entity(fact.namespace, far))
        # A name of several entities stands here for the one that it was found from.
        subject, object_ = (near, end) if is_subject else (end, near)
        new = {subject, object_} - self.nodes.keys()
        is_met_again = fact.fact_id in self.edges
        if is_met_again and (
            not (new and self._rejoins) or self._merges.is_ambiguous(fact.namespace, far)
        ):
            return
        if len(self.nodes) + len(new) > self._max_nodes:
            self.is_full = True
            return
        edge = Edge(subject, object_, fact)
        if is_met_again:
            self.again.append(edge)
        else:
            self.edges[fact.fact_id] = edge
        path = (*self.nodes[near].path, fact.fact_id)
        for key, spelled, type_ in (
            (subject, fact.subject, fact.subject_type),
            (object_, fact.object, fact.object_type),
        ):
            if key not in self.nodes:
                self.nodes[key] = Node(key, spelled, len(path), path=path)
                self.frontier.append(key)
            self.nodes[key].names.add(spelled)
            self._spelled.setdefault(key, Counter())[spelled] += 1
            if type_ is not None:
                self.nodes[key].types.add(type_)

    def _known(self) -> set[uuid.UUID]:
        """The facts of the frontier that were taken up already."""
        here = set(self.frontier)
        return {
            edge.fact.fact_id
            for edge in (*self.edges.values(), *self.again)
            if edge.source in here or edge.target in here
        }

    def _names(self, key: str) -> list[EntityName]:
        entity = self._entities[key]
        asked = [EntityName(name_key(name)) for name in self._asked.get(key, ())]
        own = [EntityName(entity.key, None, entity.type)]
        return [name for each in own + asked for name in self._merges.names(each)]

    def _name(self, key: str) -> str:
        """A name that the caller knows: of the entity itself if possible, else the most used."""
        spelled, asked = self._spelled.get(key, Counter()), self._asked.get(key, [])
        own = self._entities[key].key
        for names in (asked, spelled):
            if of_root := [name for name in names if name_key(name) == own]:
                return min(of_root, key=lambda name: (-spelled[name], name))
        return min(asked or spelled, key=lambda name: (-spelled[name], name))

    def _node_key(self, entity: Mention) -> str:
        if entity.type is None:
            entity = self.aliases.get(entity.key, entity)
        key = entity.key if entity.type is None else f"{entity.key}\x1f{entity.type}"
        self._entities[key] = entity
        return key

    async def _learn(self, keys: Iterable[str]) -> None:
        """Which of the names were merged with others, and into what."""
        new = sorted(set(keys) - self._learnt)
        if not self._plan.has_merges or not new:
            return
        self._learnt |= set(new)
        found = await entities.connected_merges(self._database, self._plan.scope.tenant_id, new)
        namespace = self._wanted.namespace
        merges = {each for each in found.all if namespace in (None, each.namespace)}
        if not merges <= self._merges.all:
            self._merges = Merges(self._merges.all | merges)
