"""The search: scope → plan → legs → fuse → rerank → trust → cite."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from knowledge.errors import InvalidInput, ModelUnavailable
from knowledge.model.revision import IndexKind
from knowledge.model.scope import Caller
from knowledge.profiles.registry import Profiles
from knowledge.retrieval.answer import THINNER, Answer, LegReport, LegState
from knowledge.retrieval.calibration import CosineScale, measure_scale
from knowledge.retrieval.candidates import Candidates, Reading
from knowledge.retrieval.citing import cite
from knowledge.retrieval.confidence import support
from knowledge.retrieval.conversation import note_turn_priors
from knowledge.retrieval.explaining import Searching, explain_chunk
from knowledge.retrieval.facts import FactHits, chunk_hits, note_fact_prior, search_facts
from knowledge.retrieval.legs import (
    KINDS,
    NOT_BUILT,
    LegHits,
    LegRun,
    Sources,
    run_leg,
    skipped,
    why_not_served,
)
from knowledge.retrieval.planning import Plan, Target, plan_search, scope_filter
from knowledge.retrieval.ranking import Contender, Searched, rank
from knowledge.retrieval.request import BUILT, MAX_TOP_K, Leg, RerankMode, SearchRequest
from knowledge.retrieval.time_prior import note_time_prior
from knowledge.settings import RetrievalSettings
from knowledge.storage.backend import HybridSearch, Vector
from knowledge.storage.postgres.database import AsyncDatabase
from knowledge.text import bm25
from knowledge.text.analysis import analyse
from knowledge.text.time_windows import time_windows

MAX_TERMS: Final = 64
"""Words of a query that are looked up; of a longer one the rarest."""


@dataclass(frozen=True, slots=True)
class _Query:
    """One request while it runs; ``embedding`` is the query's vector by profile.

    ``statistics`` are those of all collections that are searched, taken as one, ``weights`` what
    the ``terms`` that are looked up weigh by them.
    """

    request: SearchRequest
    plan: Plan
    terms: list[str]
    statistics: bm25.TermStatistics
    weights: bm25.QueryWeights
    embedding: Mapping[str, asyncio.Task[Vector]]
    depth: int
    leg_timeout_s: float


class Searcher:
    """Answers searches. Opened once a process; everything it uses is given to it."""

    def __init__(
        self,
        database: AsyncDatabase,
        index: HybridSearch,
        profiles: Profiles,
        settings: RetrievalSettings,
    ) -> None:
        self.database = database
        self.settings = settings
        self._profiles = profiles
        self._sources = Sources(database, index)
        self._candidates = Candidates(self._sources, settings)
        self._scales: dict[str, CosineScale | None] = {}
        self._last_profile: str | None = None

    async def search(self, caller: Caller, request: SearchRequest) -> Answer:
        """Answer one request under the caller's scope.

        Raises what `plan_search` raises, `InvalidInput`, and `DatabaseUnavailable`: without
        PostgreSQL there is no scope and so no answer. Any other failure is a leg's state.
        """
        started = time.perf_counter()
        self._require_bounds(request)
        as_of = request.as_of or datetime.now(UTC)
        terms = analyse(request.query)
        embedding = self._start_early(request)
        try:
            plan = await plan_search(self.database, caller, request, list(dict.fromkeys(terms)))
            query = self._start(plan, request, terms, embedding)
            facts = asyncio.create_task(self._search_facts(query, as_of))
            try:
                searched = await asyncio.gather(
                    *(self._search_target(query, target, facts) for target in plan.targets)
                )
                facts_found = await facts
            finally:
                facts.cancel()
        finally:
            for task in embedding.values():
                task.cancel()
        found = {key: value for part in searched for key, value in part.found.items()}
        mode = self._rerank_mode(request)
        if mode == "reranker":
            windows = time_windows(request.query, as_of)
            note_time_prior(found.values(), windows)
            note_fact_prior(facts_found.found.values(), windows)
            note_turn_priors(found.values(), request.query)
        contenders: Mapping[uuid.UUID, Contender] = {**found, **facts_found.found}
        ranking = rank(contenders, mode=mode, weights=self._blend_weight)
        candidates = cite(request, ranking, found, facts_found.found)
        explained = None
        if request.explain_chunk is not None:
            done = Searching(
                self._sources, request, plan, searched, ranking, embedding, query.leg_timeout_s
            )
            explained = await explain_chunk(done, request.explain_chunk)
        given = support(contenders.values(), query.weights.total, self._scales)
        reports = [leg.report for part in searched for leg in part.legs]
        reports += [*facts_found.reports, *_not_run(plan)]
        return Answer(
            query_id=uuid.uuid4(),
            scope=plan.scope,
            as_of=as_of,
            degraded=any(report.state in THINNER for report in reports),
            rerank=mode,
            confidence=given.confidence if given else 0.0,
            legs=tuple(reports),
            candidates=tuple(candidates),
            latency_ms=(time.perf_counter() - started) * 1000,
            foreign_dropped=sum(part.foreign for part in searched),
            indexes_used=_indexes_used(plan, reports),
            explained=explained,
        )

    def warm(self, profile: str) -> None:
        """Load a profile's model ahead of the first query. Raises what loading it raises."""
        self._embedded(profile, "warm")

    def _require_bounds(self, request: SearchRequest) -> None:
        if not request.query.strip():
            raise InvalidInput("query is empty")
        if len(request.query) > self.settings.max_query_chars:
            raise InvalidInput(
                f"query has {len(request.query):,} characters,"
                f" at most {self.settings.max_query_chars:,} are allowed"
            )
        if not 1 <= request.top_k <= MAX_TOP_K:
            raise InvalidInput(f"topK is {request.top_k}, it must be from 1 to {MAX_TOP_K}")
        if request.between is not None and request.between[0] >= request.between[1]:
            raise InvalidInput("between ends before it begins: write [from, to]")

    def _start_early(self, request: SearchRequest) -> dict[str, asyncio.Task[Vector]]:
        """Start embedding with the profile used last, while the plan is still being read."""
        if Leg.VECTOR not in request.legs or self._last_profile is None:
            return {}
        return {self._last_profile: self._embed(self._last_profile, request.query)}

    def _start(
        self,
        plan: Plan,
        request: SearchRequest,
        terms: list[str],
        embedding: dict[str, asyncio.Task[Vector]],
    ) -> _Query:
        """Embed the query once per profile served, beside everything else."""
        wanted = [target for target in plan.targets if target.sources]
        served = [target.served.get(IndexKind.VECTOR) for target in wanted]
        profiles = {s.generation.embedding_profile for s in served if s} - {None}
        if Leg.VECTOR in request.legs:
            for profile in profiles:
                if profile is not None and profile not in embedding:
                    embedding[profile] = self._embed(profile, request.query)
                self._last_profile = profile
        settings = self.settings
        statistics = bm25.merged([target.statistics for target in wanted])
        terms = _rarest(terms, statistics)
        return _Query(
            request=request,
            plan=plan,
            terms=terms,
            statistics=statistics,
            weights=bm25.weigh(terms, statistics),
            embedding=embedding,
            depth=max(settings.default_top_k, 2 * request.top_k, settings.rerank_depth),
            leg_timeout_s=min(
                settings.leg_timeout_s, request.timeout_s or settings.request_timeout_s
            ),
        )

    def _embed(self, profile: str, text: str) -> asyncio.Task[Vector]:
        task = asyncio.create_task(self._embed_query(profile, text))
        task.add_done_callback(_retrieve)  # a failure nobody waits for is no news
        return task

    async def _embed_query(self, profile: str, text: str) -> Vector:
        try:
            return await asyncio.to_thread(self._embedded, profile, text)
        except OSError as error:
            raise ModelUnavailable(f"profile {profile} cannot be loaded: {error}") from error

    def _embedded(self, profile: str, text: str) -> Vector:
        """The query's vector. What cosines mean is measured along, once, where it costs no more
        than a moment: not with a model elsewhere."""
        embedder = self._profiles.get(profile)
        if profile not in self._scales and self._profiles.is_local(profile):
            self._scales[profile] = measure_scale(embedder)
        return embedder.embed_query(text)

    async def _search_facts(self, query: _Query, as_of: datetime) -> FactHits:
        return await search_facts(
            self.database,
            query.plan,
            query.request,
            query.terms,
            query.statistics,
            as_of=as_of,
            depth=query.depth,
            timeout_s=query.leg_timeout_s,
        )

    async def _search_target(
        self, query: _Query, target: Target, facts: asyncio.Task[FactHits]
    ) -> Searched:
        legs = {leg: asyncio.create_task(self._run(leg, query, target)) for leg in BUILT}
        words = [task for leg, task in legs.items() if leg is not Leg.VECTOR]
        reading = _reading(query, target)
        read = self._candidates.read
        # The vector leg waits for the model first: what the words found is read meanwhile.
        early = asyncio.create_task(read(reading, words))
        try:
            done = await asyncio.gather(*legs.values())
            found = await early
            found |= await read(reading, [legs[Leg.VECTOR]], found)
        finally:
            for task in (early, *legs.values()):
                task.cancel()
        said = await chunk_hits(
            self.database, target, reading.scope, await asyncio.shield(facts), query.leg_timeout_s
        )
        if said is not None:
            done.append(said)
            found |= await read(reading, [_ready(said)], found)
        return await self._candidates.collect(reading, done, found, query.depth)

    async def _run(self, leg: Leg, query: _Query, target: Target) -> LegHits:
        served = target.served.get(KINDS[leg])
        if leg not in query.request.legs:
            return skipped(leg, target, "not asked for")
        if served is None:
            return skipped(leg, target, why_not_served(leg, target))
        if not target.sources:
            return skipped(leg, target, "no source of the collection is readable here")
        profile = served.generation.embedding_profile
        task = query.embedding.get(profile) if profile and leg is Leg.VECTOR else None
        return await run_leg(
            leg,
            LegRun(
                sources=self._sources,
                target=target,
                served=served,
                scope=scope_filter(query.plan, target, served.revision, query.request.filters),
                terms=query.terms,
                weights=query.weights,
                depth=query.depth,
                timeout_s=query.leg_timeout_s,
                vector=task,
            ),
        )

    def _rerank_mode(self, request: SearchRequest) -> RerankMode:
        configured: RerankMode = "none" if self.settings.rerank_profile == "none" else "reranker"
        return request.rerank or configured

    def _blend_weight(self, profile: str | None, kind: str) -> float:
        if profile is None:
            return 0.0
        definition = self._profiles.definition(profile)
        return definition.blend_code if kind == "code" else definition.blend_text


def _revision_read(request: SearchRequest, target: Target) -> int:
    """The newest revision that a leg of the request reads; of one for facts alone, the newest."""
    legs = [leg for leg in BUILT if leg in request.legs] or BUILT
    read = [target.served[KINDS[leg]].revision for leg in legs if KINDS[leg] in target.served]
    return max(read, default=0)


def _reading(query: _Query, target: Target) -> Reading:
    revision = _revision_read(query.request, target)
    vectors = target.served.get(IndexKind.VECTOR)
    return Reading(
        target=target,
        revision=revision,
        scope=scope_filter(query.plan, target, revision, query.request.filters),
        vectors=vectors,
        weights=query.weights,
        embedding=query.embedding.get(vectors.generation.embedding_profile or "")
        if vectors
        else None,
    )


async def _ready(hits: LegHits) -> LegHits:
    return hits


def _retrieve(task: asyncio.Task[Vector]) -> None:
    if not task.cancelled():
        task.exception()


def _rarest(terms: list[str], statistics: bm25.TermStatistics) -> list[str]:
    """The terms that are looked up: all, or of a long query the `MAX_TERMS` rarest."""
    distinct = dict.fromkeys(terms)
    if len(distinct) <= MAX_TERMS:
        return terms
    rarest = sorted(distinct, key=lambda term: (statistics.in_text.get(term, 0), term))
    kept = set(rarest[:MAX_TERMS])
    return [term for term in terms if term in kept]


def _not_run(plan: Plan) -> list[LegReport]:
    """Reports of legs that ran in no collection."""
    reports = [skipped(Leg.SYMBOL, None, NOT_BUILT).report]
    if not plan.targets:
        reports += [skipped(leg, None, "the project has no collection").report for leg in BUILT]
    return reports


def _indexes_used(plan: Plan, reports: Sequence[LegReport]) -> tuple[uuid.UUID, ...]:
    """Ids of the index revisions that a leg really read."""
    read = {
        (report.collection, KINDS[report.leg])
        for report in reports
        if report.leg in KINDS and report.state in (LegState.OK, LegState.FALLBACK)
    }
    return tuple(
        served.index_revision_id
        for target in plan.targets
        for kind, served in sorted(target.served.items())
        if (target.slug, kind) in read
    )
