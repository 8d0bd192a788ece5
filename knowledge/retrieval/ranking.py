"""From hits to one order: ranks by leg, fusion, blend, trust."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from knowledge.model.scope import TrustTier
from knowledge.retrieval.fusion import K, fuse
from knowledge.retrieval.legs import LegHits, over_fetched
from knowledge.retrieval.planning import Target
from knowledge.retrieval.request import Leg, RerankMode
from knowledge.retrieval.rerank import Scored, blend
from knowledge.storage.postgres.database import Row
from knowledge.text.bm25 import QueryWeights

FUSION_WEIGHTS: Final = {
    Leg.VECTOR: 1.0,
    Leg.FULL_TEXT: 1.0,
    Leg.METADATA: 0.5,
    Leg.GRAPH: 0.5,
    Leg.TEMPORAL: 0.5,
}
_BEST_FUSION: Final = 2.5 / (K + 1)
"""Of a chunk that is first in all of its own legs. One that facts lead to as well counts no more."""


class Contender(Protocol):
    """What is ranked: a chunk (`Found`) or a fact.

    ``sparse`` is BM25, ``cosine`` None until it is known; ``profile`` the embedding profile, and
    ``kind`` what its share of the blend goes by. ``ranks`` are 1-based by leg and compared within
    a ``group``; ``anchors`` marks those that set the blend's mean and spread, ``pooled`` those that
    a search for few answers finds too: the others come after them. ``prior`` is added to the blend,
    in units of z. ``held`` is the weight of the query's terms that it holds.
    """

    sparse: float
    cosine: float | None
    held: float
    anchors: bool
    pooled: bool
    prior: float
    ranks: dict[Leg, int]
    signals: dict[Leg, float]

    @property
    def profile(self) -> str | None: ...
    @property
    def tier(self) -> TrustTier: ...
    @property
    def kind(self) -> str: ...
    @property
    def group(self) -> uuid.UUID: ...


@dataclass(slots=True)
class Found:
    """One chunk on its way through the pipeline.

    ``sparse`` is BM25 with the statistics of ``revision``; the rest as `Contender` says. A turn of
    a conversation is scored with the turns around it.
    """

    row: Row
    target: Target
    revision: int
    profile: str | None
    sparse: float
    cosine: float | None = None
    held: float = 0.0
    anchors: bool = False
    pooled: bool = True
    prior: float = 0.0
    ranks: dict[Leg, int] = field(default_factory=dict)
    signals: dict[Leg, float] = field(default_factory=dict)

    @property
    def tier(self) -> TrustTier:
        return self.target.sources[self.row["source_id"]]

    @property
    def kind(self) -> str:
        return str(self.row["kind"])

    @property
    def group(self) -> uuid.UUID:
        return self.target.collection_id


@dataclass(slots=True)
class Searched:
    """One collection after its legs ran: their hits, its candidates, and what was dropped.

    ``weights`` are the query's, by the statistics of the revision read.
    """

    target: Target
    weights: QueryWeights
    legs: list[LegHits]
    found: dict[uuid.UUID, Found]
    foreign: int = 0


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates in order, with ``scores`` in 0 to 1 that never rise down the order.

    ``blended`` is what the reranker went by, priors included; empty without it.
    """

    order: tuple[uuid.UUID, ...]
    scores: Mapping[uuid.UUID, float]
    fusion: Mapping[uuid.UUID, float]
    blended: Mapping[uuid.UUID, float]


def note_ranks(
    legs: Sequence[LegHits], found: Mapping[uuid.UUID, Found], *, pool: int, depth: int
) -> None:
    """Note each candidate's rank and raw score in the legs; full-text hits are ranked anew.

    The index ranks words with statistics that move with every write; only the frozen ones
    decide here, so a pinned answer stays what it was. Hits beyond ``pool`` are noted, down to
    ``depth``, for candidates that no leg has within it: a larger top-k adds answers at the end
    and leaves the others as they were.
    """
    orders = {leg.report.leg: ordered_hits(leg, found, pool) for leg in legs}
    for leg, order in orders.items():
        for number, (key, score) in enumerate(order[:pool], start=1):
            _note(found[key], leg, number, score)
    for candidate in found.values():
        candidate.pooled = bool(candidate.ranks)
    for leg, order in orders.items():
        for number, (key, score) in enumerate(order[pool:depth], start=pool + 1):
            if not found[key].pooled:
                _note(found[key], leg, number, score)


def ordered_hits(
    leg: LegHits, found: Mapping[uuid.UUID, Found], pool: int
) -> list[tuple[uuid.UUID, float]]:
    """The leg's hits that are candidates, best first, with their scores.

    The first ``pool`` are the same however many more were fetched.
    """
    if leg.report.leg in (Leg.METADATA, Leg.GRAPH):  # in an order that its scores do not tell
        return [(hit.object_id, hit.score) for hit in leg.hits if hit.object_id in found]
    if leg.report.leg is Leg.VECTOR:
        return _by_score((hit.object_id, hit.score) for hit in leg.hits if hit.object_id in found)
    ids = [hit.object_id for hit in leg.hits]
    # What a search for few answers would have fetched is ranked first, whatever else was.
    parts = [
        _by_score((key, found[key].sparse) for key in part if key in found)
        for part in (ids[: over_fetched(pool)], ids[over_fetched(pool) :])
    ]
    return parts[0][:pool] + _by_score([*parts[0][pool:], *parts[1]])


def _by_score(scores: Iterable[tuple[uuid.UUID, float]]) -> list[tuple[uuid.UUID, float]]:
    return sorted(scores, key=lambda entry: (-entry[1], entry[0]))


def _note(candidate: Found, leg: Leg, number: int, score: float) -> None:
    candidate.ranks[leg] = number
    candidate.signals[leg] = score
    if leg is Leg.VECTOR:
        candidate.cosine = score


def mark_anchors(found: Iterable[Found], depth: int) -> None:
    """Mark those within ``depth`` of a chunk leg: the union that z-scores are taken over."""
    for candidate in found:
        best = min(candidate.ranks.get(leg, depth + 1) for leg in (Leg.VECTOR, Leg.FULL_TEXT))
        candidate.anchors = best <= depth


def rank(
    found: Mapping[uuid.UUID, Contender],
    *,
    mode: RerankMode,
    weights: Callable[[str | None, str], float],
) -> Ranking:
    """Order all candidates. ``weights`` gives the cosine's share for a profile and a kind.

    Trust comes last and is stable: a lower tier never stands above a higher one.
    """
    # Positions stand for ids from here on: they order alike, and hash and compare far faster.
    keys = sorted(found, key=lambda key: key.int)
    candidates = [found[key] for key in keys]
    if not any(candidate.anchors for candidate in candidates):
        for candidate in candidates:  # facts alone
            candidate.anchors = True
    fusion = _fused(candidates)
    blended: dict[int, float] = {}
    if mode == "reranker":
        blended = blend({n: _scored(candidate, weights) for n, candidate in enumerate(candidates)})
        scores, worth = {n: 1 / (1 + math.exp(-v)) for n, v in blended.items()}, blended
    else:
        scores, worth = {n: min(1.0, v / _BEST_FUSION) for n, v in fusion.items()}, fusion
    order = sorted(
        range(len(keys)),
        key=lambda n: (candidates[n].tier.rank, not candidates[n].pooled, -worth[n], n),
    )
    return Ranking(
        tuple(keys[n] for n in order),
        {keys[n]: score for n, score in _falling(order, scores).items()},
        {keys[n]: score for n, score in fusion.items()},
        {keys[n]: score for n, score in blended.items()},
    )


def _fused(candidates: Sequence[Contender]) -> dict[int, float]:
    """RRF within each collection, and of facts, then one order: ranks of two never mix.

    In a collection without a model the full-text leg has the vector leg's weight too: its best
    would else stand below whatever two legs agree on elsewhere.
    """
    has_vectors = any(Leg.VECTOR in candidate.ranks for candidate in candidates)
    scores: dict[int, float] = {}
    for group in {candidate.group for candidate in candidates}:
        members = [n for n, c in enumerate(candidates) if c.group == group]
        rankings = {
            leg.value: sorted(
                (n for n in members if leg in candidates[n].ranks),
                key=lambda n, leg=leg: candidates[n].ranks[leg],  # type: ignore[misc]
            )
            for leg in FUSION_WEIGHTS
        }
        lacks_a_leg = has_vectors and candidates[members[0]].profile is None
        weights = {leg.value: weight for leg, weight in FUSION_WEIGHTS.items()}
        if lacks_a_leg:
            weights[Leg.FULL_TEXT.value] += FUSION_WEIGHTS[Leg.VECTOR]
        scores |= fuse(rankings, weights)
    return scores


def _scored(candidate: Contender, weights: Callable[[str | None, str], float]) -> Scored:
    return Scored(
        sparse=candidate.sparse,
        cosine=candidate.cosine,
        weight=weights(candidate.profile, candidate.kind),
        profile=candidate.profile,
        anchors=candidate.anchors,
        prior=candidate.prior,
    )


def _falling(order: Iterable[int], scores: Mapping[int, float]) -> dict[int, float]:
    """Scores that follow the order even where trust moved a candidate down."""
    falling: dict[int, float] = {}
    ceiling = 1.0
    for n in order:
        ceiling = falling[n] = min(ceiling, scores[n])
    return falling
