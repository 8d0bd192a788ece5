"""Subgraphs and paths as a person reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from uuid import UUID

from knowledge.cli.graph.text import columns, fact_lines, name, notes, said, scope_line
from knowledge.cli.output import plural
from knowledge.graph.expanding import Edge, Node, Paths, Subgraph
from knowledge.graph.questions import PathQuestion
from knowledge.model.fact import name_key

ELSEWHERE: Final = "*"


def subgraph_text(graph: Subgraph, hops: int) -> str:
    """A tree by distance from each entity asked about; every fact is shown once."""
    found = f"{_entities(len(graph.nodes))}, {plural(len(graph.edges), 'fact')}"
    parts = [scope_line(graph.scope, f"{found} within {plural(hops, 'hop')}", graph.as_of)]
    if graph.edges:
        tree = columns(list(_Tree(graph).rows()))
        parts.append("\n".join(tree))
        legend = "→ subject to object  ← object to subject"
        is_repeated = any(f" {ELSEWHERE} " in f"{line} " for line in tree)
        parts.append(f"{legend}  {ELSEWHERE} shown elsewhere too" if is_repeated else legend)
    if alone := _alone(graph):
        names = ", ".join(map(name, alone))
        parts.append(f"No fact about {names} found in what this client may read.")
    if graph.is_full:
        parts.append("There is more: raise --max-nodes or --max-edges, or ask for fewer hops.")
    if graph.cut:
        names = ", ".join(map(name, graph.cut[:10]))
        parts.append(f"More facts than were followed at: {names} (raise --fan-out).")
    return "\n\n".join(parts)


def _alone(graph: Subgraph) -> list[str]:
    """The entities asked about that no fact speaks of."""
    ends = {key for edge in graph.edges for key in (edge.source, edge.target)}
    return [node.name for node in graph.nodes if node.distance == 0 and node.key not in ends]


class _Tree:
    """Under each entity its facts, in the order they were met; an entity has its facts below
    the fact that first led to it, and elsewhere only its name."""

    def __init__(self, graph: Subgraph) -> None:
        self.nodes: Mapping[str, Node] = {node.key: node for node in graph.nodes}
        self.edges: Mapping[UUID, Edge] = {edge.fact.fact_id: edge for edge in graph.edges}
        self.led_to = {node.path[-1]: node.key for node in graph.nodes if node.path}
        self.at: dict[str, list[Edge]] = {}
        for edge in graph.edges:
            for key in dict.fromkeys((edge.source, edge.target)):
                self.at.setdefault(key, []).append(edge)
        self.objects = {edge.fact.fact_id: edge.fact.object for edge in graph.edges}
        self.printed: set[UUID] = set()

    def rows(self) -> Iterator[tuple[str, ...]]:
        for node in self.nodes.values():
            if node.distance == 0:
                yield (self._title(node), "", "", "", "")
                yield from self._below(node.key, "")

    def _below(self, key: str, indent: str) -> Iterator[tuple[str, ...]]:
        here = [edge for edge in self.at.get(key, ()) if edge.fact.fact_id not in self.printed]
        self.printed |= {edge.fact.fact_id for edge in here}
        for edge in here:
            is_last = edge is here[-1]
            child = edge.target if edge.source == key else edge.source
            is_first = self.led_to.get(edge.fact.fact_id) == child
            yield self._row(edge, key, child, f"{indent}{'└─' if is_last else '├─'} ", is_first)
            if is_first:
                yield from self._below(child, f"{indent}{'   ' if is_last else '│  '}")

    def _row(
        self, edge: Edge, key: str, child: str, branch: str, is_first: bool
    ) -> tuple[str, ...]:
        arrow = "→" if edge.source == key else "←"
        node = self.nodes[child]
        title = self._title(node) if is_first else f"{name(node.name)} {ELSEWHERE}"
        note = "; ".join(notes(edge.fact, self.objects))
        return (f"{branch}{arrow} {edge.fact.predicate}  {title}", *said(edge.fact), note)

    def _title(self, node: Node) -> str:
        types = f" ({', '.join(sorted(node.types))})" if node.types else ""
        return f"{name(node.name)}{types}"


def paths_text(found: Paths, question: PathQuestion) -> str:
    """Each path as a chain of names, with its facts below."""
    number = plural(len(found.paths), "path")
    between = f"{name(question.source)} to {name(question.target)}"
    parts = [scope_line(found.scope, f"{number} from {between}", found.as_of)]
    if not found.paths:
        hops = plural(question.max_hops, "hop")
        parts.append(f"No path of at most {hops} in what this client may read.")
    for number_, path in enumerate(found.paths, start=1):
        if path:
            chain = f"{number_}. {_chain(path, name_key(question.source))}"
            facts = fact_lines([edge.fact for edge in path], " " * 4)
            parts.append("\n".join([chain, *facts]))
        else:
            parts.append(f"{number_}. The two names are one entity.")
    if found.is_cut:
        parts.append("There may be others: raise --limit, or narrow the question.")
    return "\n\n".join(parts)


def _chain(path: tuple[Edge, ...], start: str) -> str:
    """The names in the order of the walk, each arrow in the direction of its fact."""
    first = path[0]
    at = first.target if start == name_key(first.fact.object) else first.source
    if len(path) > 1 and first.source != first.target:
        shared = {first.source, first.target} & {path[1].source, path[1].target}
        if len(shared) == 1:
            at = first.target if shared == {first.source} else first.source
    shown = [name(first.fact.subject if at == first.source else first.fact.object)]
    for edge in path:
        is_ahead = edge.source == at
        at = edge.target if is_ahead else edge.source
        shown.append("→" if is_ahead else "←")
        shown.append(name(edge.fact.object if is_ahead else edge.fact.subject))
    return " ".join(shown)


def _entities(count: int) -> str:
    return f"{count:,} {'entity' if count == 1 else 'entities'}"
