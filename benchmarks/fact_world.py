"""What is told in a made-up installation, who may read it, and so what an answer must hold."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from knowledge.model.fact import Statement
from knowledge.model.scope import Caller

FUNCTIONAL: Final = "OWNED_BY"
MERGED_IN: Final = "merged"
"""The namespace in which names are merged."""

Acl = tuple[str, ...] | None
Admitted = Mapping[uuid.UUID, Statement]


@dataclass(slots=True)
class Told:
    """A fact, and when it was retracted."""

    fact_id: uuid.UUID
    said: Statement
    closed_at: datetime | None = None


@dataclass(slots=True)
class Client:
    caller: Caller
    projects: list[str]
    groups: list[str]

    @property
    def acl(self) -> set[str]:
        return {f"user:{self.caller.client_id}", *(f"group:{group}" for group in self.groups)}


@dataclass(frozen=True, slots=True)
class Names:
    """Names that are one entity in the namespace `MERGED_IN`: what each was merged into."""

    into: Mapping[str, str]

    def root(self, name: str) -> str:
        return self.root(self.into[name]) if name in self.into else name

    def entity(self, namespace: str, name: str) -> str:
        return self.root(name) if namespace == MERGED_IN else name

    def stands_for(self, asked: str, said: Statement, name: str) -> bool:
        """Whether who asks for a name means what a statement calls by another."""
        is_merged = said.namespace == MERGED_IN and self.root(name) == self.root(asked)
        return name == asked or is_merged


@dataclass(slots=True)
class World:
    """Everything told and every permission as they are now; ``moments`` are times between changes."""

    facts: dict[tuple[str, str], list[Told]] = field(default_factory=dict)
    sources: dict[tuple[str, str, str], Acl] = field(default_factory=dict)
    clients: list[Client] = field(default_factory=list)
    names: dict[str, Names] = field(default_factory=dict)
    moments: list[datetime] = field(default_factory=list)

    def readable(self, client: Client, project: str) -> list[Told]:
        """What the client may read in a project, believed or not."""
        if project not in client.projects:
            return []
        facts = self.facts[client.caller.tenant_id, project]
        return [told for told in facts if self._reads(client, project, told.said)]

    def admitted(
        self, client: Client, project: str, as_of: datetime, known_at: datetime | None
    ) -> Admitted:
        """What of it holds at a time, as was believed at another; None is now."""
        seen = [
            told
            for told in self.readable(client, project)
            if told.closed_at is None or (known_at is not None and told.closed_at > known_at)
        ]
        return {told.fact_id: told.said for told in seen if self._holds(told, seen, as_of)}

    def _reads(self, client: Client, project: str, said: Statement) -> bool:
        source = said.provenance.source_id
        acls = [said.acl]
        if source is not None:
            acls.append(self.sources[client.caller.tenant_id, project, source])
        return all(acl is None or not client.acl.isdisjoint(acl) for acl in acls)

    def _holds(self, told: Told, seen: Iterable[Told], as_of: datetime) -> bool:
        said = told.said
        assert said.valid_from is not None
        if as_of < said.valid_from.at or (said.valid_to and as_of >= said.valid_to.at):
            return False
        if said.predicate != FUNCTIONAL:
            return True
        return not any(
            self._follows(other, told) and other.said.valid_from.at <= as_of  # type: ignore[union-attr]
            for other in seen
        )

    def _follows(self, other: Told, told: Told) -> bool:
        mine, theirs = told.said, other.said
        return (
            theirs.predicate == mine.predicate
            and _line(theirs) == _line(mine)
            and theirs.acl == mine.acl
            and theirs.tier.rank <= mine.tier.rank
            and self._readers(other) == self._readers(told)
            and _place(other) > _place(told)
        )

    def _readers(self, told: Told) -> Acl:
        source = told.said.provenance.source_id
        if source is None:
            return None
        tenant, project = self._where[told.fact_id]
        return self.sources[tenant, project, source]

    _where: dict[uuid.UUID, tuple[str, str]] = field(default_factory=dict)

    def add(self, tenant: str, project: str, facts: Iterable[Told]) -> None:
        self.facts[tenant, project] = list(facts)
        self._where |= {told.fact_id: (tenant, project) for told in self.facts[tenant, project]}


def _place(told: Told) -> tuple[Any, ...]:
    said = told.said
    assert said.valid_from is not None
    return (said.valid_from.at, -said.tier.rank, said.confidence, said.observed_at, told.fact_id)


def _line(said: Statement) -> tuple[str, ...]:
    return said.namespace, said.subject, said.domain


class Reach:
    """A walk over admitted facts from a name, to compare the real one with."""

    def __init__(
        self, admitted: Admitted, names: Names, start: str, direction: str, *others: str
    ) -> None:
        self.facts: set[uuid.UUID] = set()
        self._admitted = admitted
        self._names = names
        self._start = start
        self._aliases = {start: names.root(start), **{name: names.root(name) for name in others}}
        self._direction = direction
        self.nodes = {names.root(start)}
        self.frontier = set(self.nodes)

    def hop(self) -> None:
        met = list(self._met())
        self.facts |= {fact_id for fact_id, _ in met}
        self.frontier = {node for _, node in met} - self.nodes
        self.nodes |= self.frontier

    def entity(self, namespace: str, name: str) -> str:
        """A name that is asked for is one entity everywhere."""
        found = self._names.entity(namespace, name)
        return self._aliases.get(found, found)

    def reaches(self, name: str) -> bool:
        return self._names.root(name) in self.nodes

    def _met(self) -> Iterator[tuple[uuid.UUID, str]]:
        for fact_id, said in self._admitted.items():
            ends = ((said.subject, said.object, "out"), (said.object, said.subject, "in"))
            for near, far, side in ends:
                if self._direction in (side, "both") and self._is_at(said, near):
                    yield fact_id, self.entity(said.namespace, far)

    def _is_at(self, said: Statement, name: str) -> bool:
        is_start = self._names.root(self._start) in self.frontier
        asked = self.frontier | {self._start} if is_start else self.frontier
        return any(self._names.stands_for(node, said, name) for node in asked)
