"""Fusion, blend and trust, with numbers worked out by hand."""

from __future__ import annotations

import math
import uuid
from typing import Any

import pytest

from knowledge.model.scope import TrustTier
from knowledge.retrieval.answer import LegReport, LegState
from knowledge.retrieval.fusion import fuse
from knowledge.retrieval.legs import LegHits
from knowledge.retrieval.planning import Target
from knowledge.retrieval.ranking import Found, mark_anchors, note_ranks, rank
from knowledge.retrieval.request import Leg
from knowledge.retrieval.rerank import Scored, blend
from knowledge.storage.backend import Hit
from knowledge.text.bm25 import TermStatistics

STATISTICS = TermStatistics(0, 0.0, 0.0, {}, {})
A, B, C, D = (uuid.UUID(int=number) for number in range(1, 5))


def test_fusion_adds_weighted_reciprocal_ranks_and_breaks_ties_by_id() -> None:
    fused = fuse({"vector": [B, A], "fullText": [A, B, C]})
    assert list(fused) == [A, B, C]
    assert fused[A] == fused[B] == pytest.approx(1 / 61 + 1 / 62)
    assert fused[C] == pytest.approx(1 / 63)
    weighted = fuse({"vector": [B, A], "metadata": [C]}, {"vector": 1.0, "metadata": 0.5})
    assert weighted[C] == pytest.approx(0.5 / 61)
    assert list(weighted) == [B, A, C]
    assert fuse({}) == {}


def _scored(
    sparse: float, cosine: float | None, weight: float = 0.5, anchors: bool = True
) -> Scored:
    return Scored(sparse, cosine, weight, None if cosine is None else "m@1", anchors)


def test_the_blend_weighs_standardised_scores() -> None:
    blended = blend({A: _scored(1, 0.2), B: _scored(3, 0.6), C: _scored(5, 0.4)})
    z = math.sqrt(3 / 2)
    assert blended[A] == pytest.approx(-z)
    assert blended[B] == pytest.approx(0.5 * z)
    assert blended[C] == pytest.approx(0.5 * z)
    tilted = blend({A: _scored(1, 0.6, 0.7), B: _scored(5, 0.2, 0.7)})
    assert tilted == pytest.approx({A: 0.3 * -1 + 0.7 * 1, B: 0.3 * 1 + 0.7 * -1})


def test_no_spread_is_zero_and_a_missing_cosine_leaves_the_words_alone() -> None:
    assert blend({A: _scored(2, 0.5), B: _scored(2, 0.5)}) == {A: 0.0, B: 0.0}
    alone = blend({A: _scored(1, None), B: _scored(3, None)})
    assert alone == pytest.approx({A: -1.0, B: 1.0})
    assert blend({}) == {}
    assert blend({A: _scored(7, 0.1)}) == {A: 0.0}


def test_what_does_not_anchor_does_not_move_the_others() -> None:
    base = blend({A: _scored(1, 0.2), B: _scored(3, 0.6)})
    more = blend({A: _scored(1, 0.2), B: _scored(3, 0.6), C: _scored(99, 0.9, anchors=False)})
    assert {A: more[A], B: more[B]} == base


# --- ranks and order --------------------------------------------------------------------


def _found(sparse: dict[uuid.UUID, float], tiers: dict[uuid.UUID, TrustTier] | None = None) -> Any:
    tiers = tiers or {}
    sources = {str(key): tiers.get(key, TrustTier.SOURCE_FACT) for key in sparse}
    target = Target(uuid.UUID(int=9), "docs", 1, None, sources, {}, STATISTICS, {})
    return {
        key: Found({"source_id": str(key), "kind": "document"}, target, 1, None, value)
        for key, value in sparse.items()
    }


def _leg(leg: Leg, *hits: tuple[uuid.UUID, float]) -> LegHits:
    return LegHits(LegReport(leg, "docs", LegState.OK), [Hit(key, score) for key, score in hits])


def test_full_text_hits_are_ranked_by_the_frozen_statistics_alone() -> None:
    found = _found({A: 1.0, B: 2.0, C: 2.0})
    note_ranks([_leg(Leg.FULL_TEXT, (A, 9), (C, 5), (B, 1))], found, pool=50, depth=50)
    assert {key: c.ranks[Leg.FULL_TEXT] for key, c in found.items()} == {A: 3, B: 1, C: 2}
    assert found[A].signals == {Leg.FULL_TEXT: 1.0}


def test_a_hit_without_an_admitted_row_has_no_rank() -> None:
    found = _found({A: 1.0})
    note_ranks([_leg(Leg.VECTOR, (B, 0.9), (A, 0.8))], found, pool=50, depth=50)
    assert found[A].ranks == {Leg.VECTOR: 1}
    assert found[A].cosine == 0.8


def test_deeper_hits_come_after_those_of_the_pool() -> None:
    keys = [uuid.UUID(int=number) for number in range(10, 20)]
    hits = [(key, float(20 - n)) for n, key in enumerate(keys)]
    for mode in ("reranker", "none"):
        orders = []
        for depth in (2, 10):
            sparse = {key: float(number) for number, (key, _) in enumerate(hits[: 2 * depth])}
            found = _found(sparse)
            legs = [
                _leg(Leg.FULL_TEXT, *hits[: 2 * depth]),
                _leg(Leg.METADATA, *hits[4 : 4 + depth]),
            ]
            note_ranks(legs, found, pool=2, depth=depth)
            found = {key: c for key, c in found.items() if c.ranks}
            mark_anchors(found.values(), 2)
            orders.append(rank(found, mode=mode, weights=lambda _p, _k: 0.0).order)
        few, many = orders
        assert len(many) > len(few)
        assert set(few) <= set(keys)
        common = [key for key in many if key in few]
        assert tuple(common) == few


def test_trust_comes_last_keeps_the_order_within_a_tier_and_lets_no_score_rise() -> None:
    tiers = {A: TrustTier.INFERRED_FACT, B: TrustTier.SOURCE_FACT, D: TrustTier.UNVERIFIED_MEMORY}
    found = _found({A: 9.0, B: 1.0, C: 2.0, D: 8.0}, tiers)
    note_ranks(
        [_leg(Leg.FULL_TEXT, *((key, c.sparse) for key, c in found.items()))],
        found,
        pool=50,
        depth=50,
    )
    mark_anchors(found.values(), 50)
    for mode in ("reranker", "none"):
        ranking = rank(found, mode=mode, weights=lambda _p, _k: 0.0)
        assert ranking.order == (C, B, A, D)
        scores = [ranking.scores[key] for key in ranking.order]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= value <= 1 for value in scores)


def test_without_a_model_a_chunk_gets_the_blend_expected_of_its_words() -> None:
    known = {A: _scored(1, 0.2), B: _scored(3, 0.6), C: _scored(5, 0.4)}
    blended = blend({**known, D: _scored(3, None, anchors=False)})
    assert blended[D] == pytest.approx(sum(blended[key] for key in known) / 3)
    assert {key: blended[key] for key in known} == blend(known)
    ever_more = [blend({**known, D: _scored(s, None, anchors=False)})[D] for s in range(6)]
    assert ever_more == sorted(ever_more)
    assert len(set(ever_more)) == 6


def test_a_missing_vector_in_a_collection_with_a_model_is_scored_from_its_words() -> None:
    known = {A: _scored(1, 0.2), B: _scored(5, 0.6)}
    missing = Scored(5, None, 0.5, "m@1", anchors=True)
    blended = blend({**known, C: missing})
    assert blended[C] == pytest.approx(math.sqrt(1 / 2))
