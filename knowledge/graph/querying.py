"""Facts asked for under a caller's scope: by filter, around entities, between two, over time."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, Final

from knowledge.errors import Forbidden, NotFound, Unauthenticated
from knowledge.graph.cursor import Cursor, fingerprint, read_cursor, write_cursor
from knowledge.graph.ontologies import Ontologies
from knowledge.graph.ontology.model import Ontology
from knowledge.graph.questions import FactQuestion, HistoryQuestion, Sieve
from knowledge.model.fact import Domain, EntityName, Fact, name_key
from knowledge.model.scope import READ, Caller, Scope
from knowledge.storage.postgres.database import AsyncDatabase
from knowledge.storage.postgres.facts import entities
from knowledge.storage.postgres.facts.filters import FactFilter, FactScope, Place
from knowledge.storage.postgres.facts.reading import find_facts, find_functional, find_history

MAX_COMPARED: Final = 5_000
MAX_CONTRADICTING: Final = 20
"""Facts that are listed as contradicting one."""
_PLAN: Final = "select plan_graph(%s, %s) as plan"


@dataclass(frozen=True, slots=True)
class FactPlan:
    """A caller's scope resolved: what it may read now, and the ontology its words mean.

    ``scopes`` are the OAuth scopes that the client has now; its token may carry fewer.
    """

    scope: Scope
    facts: FactScope
    ontology: Ontology
    now: datetime
    has_merges: bool
    scopes: tuple[str, ...] = ()

    def as_of(self, sieve: Sieve) -> datetime | None:
        """The time that facts must hold at; None when only a window was asked for."""
        if sieve.as_of is None and sieve.between is None:
            return self.now
        return sieve.as_of

    def seen(self, sieve: Sieve) -> FactScope:
        """The scope at the time whose beliefs are asked for."""
        # Later than the last write nothing is known for certain: a batch may be on its way.
        asked = sieve.as_known_at or self.facts.known_at
        known_at = min(asked, self.facts.known_at)
        return replace(self.facts, known_at=known_at, with_suggestions=sieve.suggestions)

    def filter(self, sieve: Sieve) -> FactFilter:
        return FactFilter(
            domains=sieve.domains,
            namespace=sieve.namespace,
            as_of=self.as_of(sieve),
            between=sieve.between,
            min_trust=sieve.min_trust,
            verified=sieve.verified,
            source_id=sieve.source_id,
        )


@dataclass(frozen=True, slots=True)
class FactAnswer:
    """One page of facts, newest begin of validity first, and the times it was answered as of.

    ``are_contradictions_cut``: facts contradict more others than are listed.
    """

    scope: Scope
    facts: tuple[Fact, ...]
    as_of: datetime | None
    as_known_at: datetime
    next_cursor: str | None
    are_contradictions_cut: bool = False


@dataclass(frozen=True, slots=True)
class History:
    """Tellings of an entity, oldest validity first. ``is_cut`` when there are more."""

    scope: Scope
    entity: str
    facts: tuple[Fact, ...]
    as_known_at: datetime
    is_cut: bool


class FactReader:
    """Answers questions about facts. Opened once a process; keeps parsed ontologies only."""

    def __init__(self, database: AsyncDatabase) -> None:
        self.database = database
        self._ontologies = Ontologies()

    async def plan(self, caller: Caller, project_id: str, needed: str = READ) -> FactPlan:
        """Resolve the scope in one round trip.

        Raises `Unauthenticated` for a revoked client, `Forbidden` without the OAuth scope
        ``needed``, `NotFound` for a project that is not the caller's.
        """
        [[row]] = await self.database.rows(
            caller.tenant_id, (_PLAN, [caller.client_id, project_id])
        )
        return await self.resolve(caller, row["plan"], project_id, needed)

    async def resolve(
        self, caller: Caller, found: Mapping[str, Any] | None, project_id: str, needed: str
    ) -> FactPlan:
        """The plan of what ``plan_graph`` found. Raises as `plan`."""
        if found is None:
            raise Unauthenticated("the client of this token was revoked: ask for a new one")
        if needed not in found["scopes"]:
            raise Forbidden(f"the client no longer has the scope {needed}")
        if project_id not in found["projects"]:
            raise NotFound(f"there is no project {project_id}")
        scope = Scope(caller.tenant_id, project_id, caller.client_id, tuple(found["groups"]))
        now = datetime.fromisoformat(found["now"])
        return FactPlan(
            scope=scope,
            facts=FactScope(
                tenant_id=caller.tenant_id,
                project_id=project_id,
                acl=scope.acl_entries,
                denied=tuple(found["denied"]),
                readers=found["readers"],
                known_at=now
                if found["knownAt"] is None
                else datetime.fromisoformat(found["knownAt"]),
            ),
            ontology=await self._ontologies.of(self.database, caller.tenant_id, found["ontology"]),
            now=now,
            has_merges=found["hasMerges"],
            scopes=tuple(found["scopes"]),
        )

    async def query(self, caller: Caller, question: FactQuestion) -> FactAnswer:
        """One page. Raises what `plan` raises, and `InvalidInput` for a cursor of another question."""
        plan = await self.plan(caller, question.project_id)
        asked = fingerprint((caller.tenant_id, caller.client_id, replace(question, cursor=None)))
        sieve, after = question.sieve, None
        if question.cursor is not None:
            cursor = read_cursor(question.cursor, asked)
            sieve = replace(sieve, as_of=cursor.as_of, as_known_at=cursor.known_at)
            after = cursor.place
        else:
            # Later pages are read as of the same time as this one.
            sieve = replace(
                sieve,
                as_of=plan.as_of(sieve),
                as_known_at=plan.seen(sieve).known_at,
            )
        wanted = replace(
            plan.filter(sieve),
            subjects=await self.names(plan, question.subject, question.subject_type),
            objects=await self.names(plan, question.object, question.object_type),
            predicate=question.predicate and plan.ontology.canonical(question.predicate),
            suggestions_only=question.suggestions_only,
        )
        seen = plan.seen(sieve)
        found = await find_facts(self.database, seen, wanted, question.limit + 1, after)
        page = found[: question.limit]
        next_cursor = None
        if len(found) > question.limit:
            place = Place(_begin(page[-1]), page[-1].fact_id)
            next_cursor = write_cursor(Cursor(place, sieve.as_of, seen.known_at), asked)
        facts, is_cut = await self.with_contradictions(seen, wanted, page)
        return FactAnswer(
            plan.scope, tuple(facts), wanted.as_of, seen.known_at, next_cursor, is_cut
        )

    async def history(self, caller: Caller, question: HistoryQuestion) -> History:
        """Every telling about an entity that the caller may read, ended ones too."""
        plan = await self.plan(caller, question.project_id)
        wanted = FactFilter(
            mentioned=await self.names(plan, question.entity),
            predicate=question.predicate and plan.ontology.canonical(question.predicate),
            domains=question.domains,
        )
        found = await find_history(self.database, plan.facts, wanted, question.limit + 1)
        kept = tuple(found[: question.limit])
        is_cut = len(found) > len(kept)
        return History(plan.scope, question.entity, kept, plan.facts.known_at, is_cut)

    async def names(
        self, plan: FactPlan, name: str | None, type_: str | None = None
    ) -> tuple[EntityName, ...]:
        """Every name that facts about an entity may be told under, its own first."""
        if name is None:
            return ()
        return tuple(await self.names_of(plan, [EntityName(name_key(name), None, type_)]))

    async def names_of(self, plan: FactPlan, asked: Sequence[EntityName]) -> list[EntityName]:
        """The names, and in each namespace what was merged with them."""
        if not plan.has_merges:
            return list(asked)
        merges = await entities.connected_merges(
            self.database, plan.scope.tenant_id, [name.key for name in asked]
        )
        names = [same for name in asked for same in merges.names(name)]
        return list(dict.fromkeys([*asked, *names]))

    async def with_contradictions(
        self, seen: FactScope, wanted: FactFilter, page: Sequence[Fact]
    ) -> tuple[list[Fact], bool]:
        """The page, with the facts that hold beside a fact whose predicate allows one object, and
        whether there are more than are listed."""
        functional = [fact for fact in page if fact.is_functional]
        if not functional:
            return list(page), False
        pairs = {(name_key(fact.subject), fact.predicate) for fact in functional}
        held = FactFilter(
            as_of=wanted.as_of,
            between=wanted.between,
            namespace=wanted.namespace,
            of_session=wanted.of_session,
        )
        others = await find_functional(self.database, seen, pairs, held, MAX_COMPARED + 1)
        lines: defaultdict[tuple[str, str], list[Fact]] = defaultdict(list)
        for other in others[:MAX_COMPARED]:
            lines[name_key(other.subject), other.predicate].append(other)
        is_cut = len(others) > MAX_COMPARED
        marked = []
        for fact in page:
            beside = lines.get((name_key(fact.subject), fact.predicate), ())
            found = list(islice(_contradicting(fact, beside), MAX_CONTRADICTING + 1))
            is_cut = is_cut or len(found) > MAX_CONTRADICTING
            marked.append(replace(fact, contradicts=tuple(found[:MAX_CONTRADICTING])))
        return marked, is_cut


def _contradicting(fact: Fact, beside: Iterable[Fact]) -> Iterator[uuid.UUID]:
    """Of the facts of the same subject and predicate those with another object that hold beside
    this one."""
    key = name_key(fact.object)
    for other in beside:
        if (
            fact.is_functional
            and name_key(other.object) != key
            and _may_have_same_subject(other, fact)
            and other.meets(fact)
        ):
            yield other.fact_id


def _may_have_same_subject(one: Fact, other: Fact) -> bool:
    """Whether two facts whose subjects are found by the same name may be of one thing."""
    if None not in (one.subject_type, other.subject_type) and (
        one.subject_type != other.subject_type
    ):
        return False
    is_code = Domain.CODE in (one.domain, other.domain)  # Config and config are two things
    return not is_code or one.subject == other.subject


def _begin(fact: Fact) -> datetime | None:
    """What the order goes by: the begin that was stated, not one that a predecessor gives."""
    return None if fact.stated_from is None else fact.stated_from.at
