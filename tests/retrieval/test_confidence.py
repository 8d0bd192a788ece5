"""Confidence: from what is held of the query and the nearest cosine, on the scale of its profile."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import numpy as np
import pytest

from knowledge.model.scope import TrustTier
from knowledge.profiles.profile import Embedded, EmbeddingProfile, Vectors
from knowledge.retrieval.calibration import PAIRS, CosineScale, measure_scale
from knowledge.retrieval.confidence import Support, support
from knowledge.retrieval.planning import Target
from knowledge.retrieval.ranking import Found
from knowledge.retrieval.request import Leg
from knowledge.settings import ProfileSettings
from knowledge.text.bm25 import TermStatistics

TARGET = Target(
    uuid.UUID(int=1),
    *("docs", 1, "m@1"),
    {"s": TrustTier.SOURCE_FACT},
    {},
    TermStatistics(0, 0.0, 0.0, {}, {}),
    {},
)
SCALES = {"m@1": CosineScale(0.2, 0.7)}


def found(held: float = 0.0, profile: str | None = "m@1", **signals: float) -> Found:
    return Found(
        row={"source_id": "s", "kind": "document"},
        target=TARGET,
        revision=1,
        profile=profile,
        sparse=0.0,
        held=held,
        signals={Leg(name): value for name, value in signals.items()},
    )


def test_the_best_share_of_words_and_the_best_cosine_count_wherever_they_are() -> None:
    given = support([found(3.0, vector=0.3), found(1.0, vector=0.6)], 4.0, SCALES)
    assert given is not None
    assert (given.coverage, given.strength) == pytest.approx((0.75, 0.8))


def test_a_path_that_holds_the_words_is_as_good_as_a_text() -> None:
    assert support([found(0.0, metadata=0.9)], 4.0, SCALES) == Support(0.9, None)


def test_a_cosine_of_a_profile_without_a_scale_says_nothing() -> None:
    assert support([found(2.0, "other@1", vector=0.9)], 4.0, SCALES) == Support(0.5, None)
    assert support([found(2.0, None)], 4.0, SCALES) == Support(0.5, None)


def test_nothing_found_and_a_query_without_words_are_told_apart() -> None:
    assert support([], 4.0, SCALES) is None
    wordless = support([found(vector=0.7)], 0.0, SCALES)
    assert wordless is not None
    assert (wordless.coverage, wordless.strength) == pytest.approx((0.0, 1.0))


def test_confidence_rises_with_both_and_words_alone_are_less_certain() -> None:
    for strength in (0.0, 0.5, 1.0, None):
        values = [Support(share / 10, strength).confidence for share in range(11)]
        assert values == sorted(values)
        assert 0 < values[0] < values[-1] < 1
    for share in (0.0, 0.5, 1.0):
        assert Support(share, 0.2).confidence < Support(share, 0.9).confidence
    assert Support(1.0, 1.0).confidence > 0.95
    assert Support(0.1, 0.1).confidence < 0.05
    assert Support(1.0, None).confidence < 0.9
    assert Support(0.0, None).confidence > 0.1


class Tilted:
    """Embeds a pair as one direction of its own, all of them pulled toward a common one."""

    def __init__(self, pull: float) -> None:
        self._pull = pull
        self._places = {text: n for n, pair in enumerate(PAIRS) for text in pair}
        settings = ProfileSettings(provider="onnx", folder="none")
        self.profile = EmbeddingProfile.define(
            "t@1", settings, model="t", dimension=len(PAIRS) + 1, weights=None
        )

    def embed(self, texts: Sequence[str]) -> Embedded:
        return Embedded(np.stack([self.embed_query(text) for text in texts]), 0, 0.0, 0.0)

    def embed_query(self, text: str) -> Vectors:
        vector = np.zeros(len(PAIRS) + 1, dtype=np.float32)
        vector[self._places[text]], vector[-1] = 1, self._pull
        unit: Vectors = vector / np.linalg.norm(vector)
        return unit


def test_the_scale_of_a_model_that_puts_everything_high_reads_the_same() -> None:
    for pull in (0.0, 2.0):
        scale = measure_scale(Tilted(pull))
        assert scale is not None
        unrelated = pull**2 / (1 + pull**2)
        assert scale.unrelated == pytest.approx(unrelated, abs=1e-6)
        assert scale.related == pytest.approx(1.0, abs=1e-6)
        assert scale.strength(unrelated) == pytest.approx(0.0, abs=1e-5)
        assert scale.strength(1.0) == pytest.approx(1.0, abs=1e-5)


def test_a_model_that_tells_nothing_apart_has_no_scale() -> None:
    assert measure_scale(Tilted(20.0)) is None
