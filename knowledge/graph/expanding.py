"""What is around entities, and how two of them are connected: one hop after the other.

Each hop is one query that carries the whole scope, so nothing is ever reached through a fact
that the caller may not see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from knowledge.graph.querying import FactPlan, FactReader
from knowledge.graph.questions import Direction, Expansion, PathQuestion
from knowledge.graph.shortest import shortest_paths
from knowledge.graph.walking import Edge, Node, Walk
from knowledge.model.scope import Caller, Scope

__all__ = ["Edge", "Node", "Paths", "Subgraph", "expand", "find_paths"]

MAX_VISITED: Final = 5_000
"""Entities, and facts, that a search for paths looks at on its way."""

PATH_FAN_OUT: Final = 200
_TURNED: Final[Mapping[Direction, Direction]] = {"out": "in", "in": "out", "both": "both"}


@dataclass(frozen=True, slots=True)
class Subgraph:
    """Nodes in the order they were reached, then by name; edges as they were met.
    A fact is two edges where a name of it was merged and is met under its own name in another
    namespace.

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
    walk = await Walk.begin(
        reader.database,
        plan,
        question.entities,
        question,
        max_nodes=question.max_nodes,
        max_edges=question.max_edges,
        rejoins=True,
    )
    for _hop in range(question.hops):
        if not await walk.hop():
            break
    nodes = walk.named_nodes()
    return Subgraph(
        scope=plan.scope,
        nodes=tuple(sorted(nodes.values(), key=lambda node: (node.distance, node.name))),
        edges=(*walk.edges.values(), *walk.again),
        as_of=plan.as_of(question.sieve),
        as_known_at=plan.seen(question.sieve).known_at,
        cut=tuple(sorted(nodes[key].name for key in walk.cut)),
        is_full=walk.is_full,
    )


async def find_paths(reader: FactReader, caller: Caller, question: PathQuestion) -> Paths:
    """The shortest paths from one entity to the other, searched from both ends."""
    plan = await reader.plan(caller, question.project_id)
    ahead = await _begin(reader, plan, question, question.source, question.direction)
    back = await _begin(reader, plan, question, question.target, _TURNED[question.direction])
    ahead.aliases = back.aliases = {**ahead.aliases, **back.aliases}
    for _hop in range(question.max_hops):
        if ahead.nodes.keys() & back.nodes.keys():
            break
        smaller, other = (
            (ahead, back) if len(ahead.frontier) <= len(back.frontier) else (back, ahead)
        )
        smaller.max_edges = max(MAX_VISITED - len(other.edges), 0)
        if not await smaller.hop():
            break
    found = shortest_paths(
        [*ahead.edges.values(), *back.edges.values()],
        ahead.entries,
        back.entries,
        direction=question.direction,
        limit=question.limit + 1,
    )
    is_missed = not found and not ahead.nodes.keys().isdisjoint(back.nodes)
    return Paths(
        scope=plan.scope,
        paths=tuple(found[: question.limit]),
        as_of=plan.as_of(question.sieve),
        as_known_at=plan.seen(question.sieve).known_at,
        is_cut=len(found) > question.limit or ahead.is_thin or back.is_thin or is_missed,
    )


async def _begin(
    reader: FactReader, plan: FactPlan, question: PathQuestion, name: str, direction: Direction
) -> Walk:
    bounds = Expansion(
        question.project_id,
        entities=(name,),
        direction=direction,
        sieve=question.sieve,
        fan_out=PATH_FAN_OUT,
    )
    return await Walk.begin(
        reader.database, plan, (name,), bounds, max_nodes=MAX_VISITED, max_edges=MAX_VISITED
    )
