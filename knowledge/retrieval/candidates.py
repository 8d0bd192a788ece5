"""Candidates of one collection: the hits of its legs with their rows, scores and ranks."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace

from knowledge.errors import IndexUnavailable
from knowledge.retrieval.answer import LegState
from knowledge.retrieval.conversation import TurnSearch, find_turns, is_conversation
from knowledge.retrieval.legs import LegHits, Sources
from knowledge.retrieval.planning import Served, Target
from knowledge.retrieval.ranking import Found, Searched, mark_anchors, note_ranks
from knowledge.retrieval.request import Leg
from knowledge.settings import RetrievalSettings
from knowledge.storage.backend import ScopeFilter, Vector
from knowledge.storage.postgres.retrieval import CandidateReader
from knowledge.text import bm25


@dataclass(frozen=True, slots=True)
class Reading:
    """One collection as one search reads it: at ``revision``, under ``scope``.

    ``vectors`` is the revision that holds vectors, ``embedding`` the query's; None without.
    """

    target: Target
    revision: int
    scope: ScopeFilter
    vectors: Served | None
    weights: bm25.QueryWeights
    embedding: asyncio.Task[Vector] | None

    @property
    def profile(self) -> str | None:
        return self.vectors.generation.embedding_profile if self.vectors else None

    @property
    def query_vector(self) -> Vector | None:
        """The query's vector, once it is there."""
        task = self.embedding
        if task is None or not task.done() or task.cancelled() or task.exception():
            return None
        return task.result()


class Candidates:
    """Reads and scores candidates. Opened once a process."""

    def __init__(self, sources: Sources, settings: RetrievalSettings) -> None:
        self._sources = sources
        self._settings = settings
        self._rows = CandidateReader(sources.database)

    async def read(
        self,
        reading: Reading,
        legs: Sequence[Awaitable[LegHits]],
        known: Mapping[uuid.UUID, Found] | None = None,
    ) -> dict[uuid.UUID, Found]:
        """Candidates of the legs' hits but for the ``known``: their rows, as far as the caller may
        see them today, and their score by the frozen statistics."""
        hits = [hit.object_id for leg in legs for hit in (await leg).hits]
        ids = [key for key in dict.fromkeys(hits) if key not in (known or {})]
        if not ids:
            return {}
        found = {}
        for row in await self._rows.read(reading.target.collection_id, reading.scope, ids):
            said = bm25.match(reading.weights, row["words"], row["title_words"])
            found[row["object_id"]] = Found(
                row=row,
                target=reading.target,
                revision=reading.revision,
                profile=reading.profile,
                sparse=said.score,
                held=said.held,
            )
        return found

    async def collect(
        self,
        reading: Reading,
        legs: Sequence[LegHits],
        found: Mapping[uuid.UUID, Found],
        depth: int,
    ) -> Searched:
        """Rank every candidate within its legs and complete its cosine; count what is foreign."""
        hits = {hit.object_id for leg in legs for hit in leg.hits}
        foreign = len(hits) - len(found)
        if is_conversation(found):
            kept, legs = await self._turns(reading, legs, found)
        else:
            note_ranks(legs, found, pool=self._settings.rerank_depth, depth=depth)
            kept = {key: candidate for key, candidate in found.items() if candidate.ranks}
            await self._complete_cosines(reading, legs, kept)
            mark_anchors(kept.values(), self._settings.default_top_k)
        return Searched(reading.target, reading.weights, list(legs), kept, foreign=foreign)

    async def _turns(
        self, reading: Reading, legs: Sequence[LegHits], found: Mapping[uuid.UUID, Found]
    ) -> tuple[dict[uuid.UUID, Found], Sequence[LegHits]]:
        """The turns with the turns around them; without any, and said so, where that is too slow."""
        search = TurnSearch(
            sources=self._sources,
            rows=self._rows,
            target=reading.target,
            served=reading.vectors,
            scope=reading.scope,
            weights=reading.weights,
            vector=reading.query_vector,
            pool=self._settings.rerank_depth,
        )
        timeout_s = self._settings.leg_timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                return await find_turns(search, legs, found), legs
        except TimeoutError:
            pool = self._settings.rerank_depth
            note_ranks(legs, found, pool=pool, depth=pool)
            reason = f"turns alone: those around them were not read in {timeout_s * 1000:.0f} ms"
            mark_anchors(found.values(), self._settings.default_top_k)
            kept = {key: candidate for key, candidate in found.items() if candidate.ranks}
            return kept, [_thinner(leg, reason) for leg in legs]

    async def _complete_cosines(
        self, reading: Reading, legs: Sequence[LegHits], found: Mapping[uuid.UUID, Found]
    ) -> None:
        """Cosines of the candidates that the vector leg did not return, from stored vectors."""
        query = reading.query_vector
        if query is None or reading.vectors is None:
            return
        vectors = {
            hit.object_id: hit.vector for leg in legs for hit in leg.hits if hit.vector is not None
        }
        lacking = [key for key, c in found.items() if c.cosine is None and key not in vectors]
        if lacking:
            try:
                async with asyncio.timeout(self._settings.leg_timeout_s):
                    vectors |= await self._sources.index.vectors(
                        reading.vectors.generation, lacking, reading.scope
                    )
            except (IndexUnavailable, TimeoutError):
                pass  # scored from their words alone; the legs' states tell of the outage
        for key, candidate in found.items():
            vector = vectors.get(key)
            if candidate.cosine is None and vector is not None:
                candidate.cosine = float(vector @ query)
                candidate.signals[Leg.VECTOR] = candidate.cosine


def _thinner(leg: LegHits, reason: str) -> LegHits:
    if leg.report.state is not LegState.OK:
        return leg
    return replace(leg, report=replace(leg.report, state=LegState.FALLBACK, reason=reason))
