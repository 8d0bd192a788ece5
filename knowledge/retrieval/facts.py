"""The graph and temporal legs of a search: facts about the entities that a question names.

The graph leg reads facts that hold at ``asOf``, one or two hops from those entities; the temporal
leg facts whose validity meets the window that the question gives or names. A fact that a chunk
says brings the chunk in as well. A project without facts costs a search nothing.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from knowledge.errors import Unavailable
from knowledge.model.fact import EntityName, Fact, name_key
from knowledge.model.scope import TrustTier
from knowledge.retrieval.answer import LegReport, LegState
from knowledge.retrieval.legs import LegHits
from knowledge.retrieval.naming import fact_text, longest_names, name_spans
from knowledge.retrieval.planning import Plan, Target
from knowledge.retrieval.request import Leg, SearchRequest
from knowledge.retrieval.time_prior import TIME_PRIOR
from knowledge.storage.backend import Hit, ScopeFilter
from knowledge.storage.postgres.database import AsyncDatabase
from knowledge.storage.postgres.facts import entities
from knowledge.storage.postgres.facts.filters import FactFilter, FactScope
from knowledge.storage.postgres.facts.reading import find_facts, find_neighbours, known_names
from knowledge.storage.postgres.retrieval import visible_objects
from knowledge.text import bm25
from knowledge.text.analysis import analyse, count_terms
from knowledge.text.time_windows import TimeWindow, hull, time_windows

FACT_LEGS: Final = (Leg.GRAPH, Leg.TEMPORAL)
FAN_OUT: Final = 30
SECOND_FAN_OUT: Final = 5
MAX_SECOND_NODES: Final = 20

_FACTS: Final = uuid.UUID(int=0)


@dataclass(slots=True)
class FoundFact:
    """A fact on its way through the pipeline, beside the chunks; see `ranking.Contender`."""

    fact: Fact
    text: str
    sparse: float
    cosine: float | None = None
    held: float = 0.0
    anchors: bool = False
    pooled: bool = True
    prior: float = 0.0
    ranks: dict[Leg, int] = field(default_factory=dict)
    signals: dict[Leg, float] = field(default_factory=dict)

    @property
    def profile(self) -> None:
        """Facts are not embedded."""

    @property
    def tier(self) -> TrustTier:
        return self.fact.tier

    @property
    def kind(self) -> str:
        return "fact"

    @property
    def group(self) -> uuid.UUID:
        return _FACTS


@dataclass(frozen=True, slots=True)
class FactHits:
    """What the two legs found: facts by id, and their reports."""

    reports: tuple[LegReport, ...]
    found: dict[uuid.UUID, FoundFact]

    def chunks_of(self, collection_id: uuid.UUID) -> list[uuid.UUID]:
        """Ids of the collection's chunks that say the facts, those of the best facts first."""
        said = [
            fact
            for fact in self.found.values()
            if Leg.GRAPH in fact.ranks and fact.fact.collection_id == collection_id
        ]
        said.sort(key=lambda fact: fact.ranks[Leg.GRAPH])
        return list(dict.fromkeys(f.fact.chunk_id for f in said if f.fact.chunk_id is not None))


async def search_facts(
    database: AsyncDatabase,
    plan: Plan,
    request: SearchRequest,
    terms: Sequence[str],
    statistics: bm25.TermStatistics,
    *,
    as_of: datetime,
    depth: int,
    timeout_s: float,
) -> FactHits:
    """Run both legs under one deadline each; ``as_of`` is the request's, or now. Whatever happens to them is in the reports."""
    reason = _why_not(plan, request)
    if reason is not None:
        return FactHits(tuple(_skipped(leg, reason) for leg in FACT_LEGS), {})
    search = _FactSearch(database, plan, request, terms, statistics, as_of, depth)
    runs = {
        Leg.GRAPH: search.graph if Leg.GRAPH in request.legs else None,
        Leg.TEMPORAL: search.temporal if Leg.TEMPORAL in request.legs else None,
    }
    names = asyncio.create_task(search.names())
    try:
        reports = await asyncio.gather(
            *(_run(leg, run, names, timeout_s) for leg, run in runs.items())
        )
    finally:
        names.cancel()
    return FactHits(tuple(reports), search.found)


def _why_not(plan: Plan, request: SearchRequest) -> str | None:
    """Why neither leg runs; None when one does."""
    if not any(leg in request.legs for leg in FACT_LEGS):
        return "not asked for"
    if plan.facts is None:
        return "the project has no facts"
    asked = request.filters
    if asked.path_prefix or asked.kind or asked.language or asked.tags or asked.updated_after:
        return "the filters name properties that facts do not have"
    return None


def _skipped(leg: Leg, reason: str) -> LegReport:
    return LegReport(leg, None, LegState.SKIPPED, reason=reason)


_Names = asyncio.Task[list[EntityName]]
_Run = Callable[[list[EntityName]], Awaitable[tuple[int, str | None]]]


async def _run(leg: Leg, run: _Run | None, names: _Names, timeout_s: float) -> LegReport:
    if run is None:
        return _skipped(leg, "not asked for")
    started = time.perf_counter()
    state, count, reason = LegState.OK, 0, None
    try:
        async with asyncio.timeout(timeout_s):
            count, reason = await run(await asyncio.shield(names))
    except NothingAsked as nothing:
        return _skipped(leg, str(nothing))
    except TimeoutError:
        state, reason = LegState.TIMED_OUT, f"no answer within {timeout_s * 1000:.0f} ms"
    except Unavailable as error:
        state, reason = LegState.UNAVAILABLE, error.message
    latency_ms = (time.perf_counter() - started) * 1000
    return LegReport(leg, None, state, None, count, latency_ms, reason)


class NothingAsked(Exception):
    """The question asks nothing of this leg."""


class _FactSearch:
    """One question while its two legs run; both add to ``found``."""

    def __init__(
        self,
        database: AsyncDatabase,
        plan: Plan,
        request: SearchRequest,
        terms: Sequence[str],
        statistics: bm25.TermStatistics,
        as_of: datetime,
        depth: int,
    ) -> None:
        assert plan.facts is not None
        self.found: dict[uuid.UUID, FoundFact] = {}
        self._database = database
        self._request = request
        self._facts = plan.facts
        self._scope = FactScope(
            tenant_id=plan.scope.tenant_id,
            project_id=plan.scope.project_id,
            acl=plan.scope.acl_entries,
            denied=plan.facts.denied,
            readers=plan.facts.readers,
            known_at=plan.facts.known_at,
        )
        self._weights = bm25.weigh(terms, statistics)
        self._as_of = as_of
        self._windows = time_windows(request.query, self._as_of)
        self._depth = depth
        self._wanted = FactFilter(
            min_trust=request.min_trust,
            source_id=request.filters.source_id,
            source_ids=plan.facts.source_ids,
        )

    async def names(self) -> list[EntityName]:
        """The entities that the question names: the longest names that facts know."""
        spans = name_spans(self._request.query)
        known = await known_names(self._database, self._scope, list(spans))
        if self._facts.has_merges:
            merged = await entities.same_entities(
                self._database, self._scope.tenant_id, list(spans)
            )
        else:
            merged = []
        known |= {same.asked for same in merged}
        longest = longest_names({key: spans[key] for key in known})
        kept = sorted(longest, key=lambda key: (spans[key], key))
        names = [EntityName(key) for key in kept]
        names += [
            EntityName(same.key, same.namespace, same.type)
            for same in merged
            if same.asked in kept and same.key != same.asked
        ]
        return names

    async def graph(self, names: list[EntityName]) -> tuple[int, str | None]:
        """Facts that hold at ``asOf``, one hop from the entities, then another where room is."""
        if not names:
            return 0, "the query names no entity of a fact"
        wanted = replace(self._wanted, as_of=self._as_of)
        first = await find_neighbours(
            self._database,
            self._scope,
            names,
            wanted,
            directions=("out", "in"),
            fan_out=FAN_OUT,
        )
        facts = {fact.fact_id: (fact, 1) for fact in first.facts}
        further = self._further(names, first.facts)
        if len(facts) < self._depth and further:
            second = await find_neighbours(
                self._database,
                self._scope,
                further,
                wanted,
                directions=("out", "in"),
                fan_out=SECOND_FAN_OUT,
            )
            for fact in second.facts:
                facts.setdefault(fact.fact_id, (fact, 2))
        return self._note(Leg.GRAPH, list(facts.values())), None

    async def temporal(self, names: list[EntityName]) -> tuple[int, str | None]:
        """Facts whose validity meets the window; without an entity those that change in it."""
        window = self._window()
        if window is None:
            raise NothingAsked("the query names no time")
        if names:
            wanted = replace(self._wanted, mentioned=tuple(names), between=window)
        else:
            wanted = replace(self._wanted, changed_in=window)
        facts = await find_facts(self._database, self._scope, wanted, self._depth)
        return self._note(Leg.TEMPORAL, [(fact, 1) for fact in facts]), None

    def _window(self) -> tuple[datetime | None, datetime | None] | None:
        if self._request.between is not None:
            return self._request.between
        named = hull(self._windows)
        return None if named is None else (named.begin, named.end)

    def _further(self, names: Sequence[EntityName], facts: Sequence[Fact]) -> list[EntityName]:
        """The entities at the other ends, in the order of their facts."""
        reached = [name_key(end) for fact in facts for end in (fact.subject, fact.object)]
        start = {name.key for name in names}
        new = [key for key in dict.fromkeys(reached) if key not in start]
        return [EntityName(key) for key in new[:MAX_SECOND_NODES]]

    def _note(self, leg: Leg, facts: Sequence[tuple[Fact, int]]) -> int:
        """Rank the facts: nearer first, then by their words, then by id."""
        for fact, _hops in facts:
            if fact.fact_id not in self.found:
                text = fact_text(fact)
                words = count_terms(analyse(text))
                title = count_terms(analyse(fact.subject))
                said = bm25.match(self._weights, words, title)
                self.found[fact.fact_id] = FoundFact(fact, text, said.score, held=said.held)
        ids = {fact.fact_id: hops for fact, hops in facts}
        order = sorted(ids, key=lambda key: (ids[key], -self.found[key].sparse, str(key)))
        for number, key in enumerate(order[: self._depth], start=1):
            self.found[key].ranks[leg] = number
            self.found[key].signals[leg] = 1 / ids[key]
        for key in order[self._depth :]:
            if not self.found[key].ranks:
                del self.found[key]
        return min(len(order), self._depth)


def note_fact_prior(found: Iterable[FoundFact], windows: Sequence[TimeWindow]) -> None:
    """Facts that hold in a time that the question names get what chunks get that speak of it; that
    a fact does not is known as well, so it counts against it."""
    if windows:
        for candidate in found:
            holds = any(_holds_in(candidate.fact, window) for window in windows)
            candidate.prior = TIME_PRIOR if holds else -TIME_PRIOR


async def chunk_hits(
    database: AsyncDatabase,
    target: Target,
    scope: ScopeFilter,
    hits: FactHits,
    timeout_s: float,
) -> LegHits | None:
    """The collection's chunks that say facts of the graph leg, visible at the revision read, those
    of the best facts first; None where there are none."""
    wanted = hits.chunks_of(target.collection_id)
    if not wanted:
        return None
    state, reason, ordered = LegState.OK, "by facts they say", []
    try:
        async with asyncio.timeout(timeout_s):
            visible = await visible_objects(database, target.collection_id, scope, wanted)
        ordered = [visible[chunk] for chunk in wanted if chunk in visible]
    except TimeoutError:
        state, reason = LegState.TIMED_OUT, f"no answer within {timeout_s * 1000:.0f} ms"
    except Unavailable as error:
        state, reason = LegState.UNAVAILABLE, error.message
    found = [Hit(key, 1 / number) for number, key in enumerate(ordered, start=1)]
    report = LegReport(Leg.GRAPH, target.slug, state, scope.revision, len(found), reason=reason)
    return LegHits(report, found, len(wanted))


def _holds_in(fact: Fact, window: TimeWindow) -> bool:
    return (fact.valid_from is None or window.end is None or fact.valid_from.at < window.end) and (
        fact.valid_to is None or window.begin is None or fact.valid_to.at > window.begin
    )
