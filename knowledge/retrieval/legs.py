"""The legs of a search: each a query of its own, under a deadline, with its state reported."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from knowledge.errors import IndexUnavailable, ProfileMismatch, Unavailable
from knowledge.model.revision import IndexKind
from knowledge.retrieval.answer import LegReport, LegState
from knowledge.retrieval.planning import Served, Target
from knowledge.retrieval.request import Leg
from knowledge.storage.backend import Hit, HybridSearch, ScopeFilter, Vector
from knowledge.storage.postgres import retrieval as postgres
from knowledge.storage.postgres.database import AsyncDatabase
from knowledge.text import bm25

KINDS: Final = {
    Leg.VECTOR: IndexKind.VECTOR,
    Leg.FULL_TEXT: IndexKind.FULL_TEXT,
    Leg.METADATA: IndexKind.METADATA,
}
NOT_BUILT: Final = "this index kind is not built by this version"
FALLBACK_SHARE: Final = 0.5
"""Share of the leg's deadline that the index may use before PostgreSQL stands in."""


def over_fetched(depth: int) -> int:
    """How many full-text hits to ask for, to have the best ``depth`` by the frozen statistics.

    The index ranks with today's, and gives titles nearly the same weight. Twice as many leave
    room enough for what a publish moves: pinned answers stay the same.
    """
    return depth * 2


@dataclass(frozen=True, slots=True)
class Sources:
    """What the legs ask: opened once a process."""

    database: AsyncDatabase
    index: HybridSearch


@dataclass(slots=True)
class LegHits:
    """A leg's hits in one collection, best first, with its report; at most ``asked`` of them."""

    report: LegReport
    hits: list[Hit] = field(default_factory=list)
    asked: int = 0


@dataclass(frozen=True, slots=True)
class LegRun:
    """One leg in one collection: everything it needs.

    ``terms`` are the query's, repeats kept: a word said twice weighs twice.
    """

    sources: Sources
    target: Target
    served: Served
    scope: ScopeFilter
    terms: Sequence[str]
    weights: bm25.QueryWeights
    depth: int
    timeout_s: float
    vector: asyncio.Task[Vector] | None


async def _vector(run: LegRun) -> tuple[LegState, str | None, list[Hit]]:
    assert run.vector is not None
    # Shielded: several legs may wait for one embedding, and a leg's deadline is its own.
    vector = await asyncio.shield(run.vector)
    hits = await run.sources.index.near_vector(run.served.generation, vector, run.scope, run.depth)
    return LegState.OK, None, hits


async def _full_text(run: LegRun) -> tuple[LegState, str | None, list[Hit]]:
    weights = run.weights.text
    if not weights:
        return LegState.OK, "the query has no words to look up", []
    try:
        async with asyncio.timeout(run.timeout_s * FALLBACK_SHARE):
            hits = await run.sources.index.bm25(
                run.served.generation,
                run.terms,
                run.scope,
                over_fetched(run.depth),
                weights=weights,
                with_vectors=run.served.generation.embedding_profile is not None,
            )
        return LegState.OK, None, hits
    except (IndexUnavailable, TimeoutError) as error:
        reason = error.message if isinstance(error, IndexUnavailable) else "the index is too slow"
    hits = await postgres.search_full_text(
        run.sources.database,
        run.target.collection_id,
        run.scope,
        weights,
        over_fetched(run.depth),
    )
    return LegState.FALLBACK, f"answered from PostgreSQL: {reason}", hits


async def _metadata(run: LegRun) -> tuple[LegState, str | None, list[Hit]]:
    weights = run.weights.text
    if not weights:
        return LegState.OK, "the query has no words to look up", []
    hits = await postgres.search_metadata(
        run.sources.database, run.target.collection_id, run.scope, weights, run.depth
    )
    return LegState.OK, None, hits


_RUNNERS: Final[
    Mapping[Leg, Callable[[LegRun], Awaitable[tuple[LegState, str | None, list[Hit]]]]]
] = {Leg.VECTOR: _vector, Leg.FULL_TEXT: _full_text, Leg.METADATA: _metadata}


async def run_leg(leg: Leg, run: LegRun) -> LegHits:
    """Run one leg; whatever happens to it is in the report, never an exception."""
    started = time.perf_counter()
    state, reason = LegState.OK, None
    hits: list[Hit] = []
    try:
        async with asyncio.timeout(run.timeout_s):
            state, reason, hits = await _RUNNERS[leg](run)
    except TimeoutError:
        state, reason = LegState.TIMED_OUT, f"no answer within {run.timeout_s * 1000:.0f} ms"
    except (Unavailable, ProfileMismatch) as error:
        state, reason = LegState.UNAVAILABLE, error.message
    report = LegReport(
        leg=leg,
        collection=run.target.slug,
        state=state,
        index_revision=run.served.revision,
        count=len(hits),
        latency_ms=(time.perf_counter() - started) * 1000,
        reason=reason,
    )
    asked = over_fetched(run.depth) if leg is Leg.FULL_TEXT else run.depth
    return LegHits(report, hits, asked)


def skipped(leg: Leg, target: Target | None, reason: str) -> LegHits:
    return LegHits(LegReport(leg, target.slug if target else None, LegState.SKIPPED, reason=reason))


def why_not_served(leg: Leg, target: Target) -> str:
    """Why a collection has no revision for this leg."""
    if leg is Leg.VECTOR and target.served and target.profile is None:
        return "the collection has no embedding profile: answered from words alone"
    return "nothing serves yet: publish something and let a run finish"
