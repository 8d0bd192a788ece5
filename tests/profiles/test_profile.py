from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from knowledge.errors import ModelUnavailable
from knowledge.profiles.profile import EmbeddingProfile, unit_rows
from knowledge.settings import ProfileSettings

PROFILE = EmbeddingProfile.define(
    "mine@1",
    ProfileSettings(provider="onnx", folder="/models/mine"),
    model="mine",
    dimension=3,
    weights="aa",
)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "other"},
        {"dimension": 4},
        {"query_prefix": "query: "},
        {"passage_prefix": "passage: "},
        {"blend_text": 0.6},
        {"names_floor": 0.7},
        {"max_tokens": 128},
        {"weights": "bb"},
    ],
)
def test_what_changes_a_vector_or_a_ranking_changes_the_fingerprint(
    change: dict[str, object],
) -> None:
    assert replace(PROFILE, **change).fingerprint != PROFILE.fingerprint  # type: ignore[arg-type]


def test_what_only_changes_speed_or_price_keeps_the_fingerprint() -> None:
    tuned = replace(PROFILE, batch_size=7, cost_per_million_tokens=0.02)
    assert tuned.fingerprint == PROFILE.fingerprint


def test_a_profile_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        PROFILE.dimension = 4  # type: ignore[misc]


@pytest.mark.parametrize("bad", [[0, 0, 0], [np.nan, 1, 0], [np.inf, 1, 0]])
def test_rows_without_a_direction_are_refused(bad: list[float]) -> None:
    with pytest.raises(ModelUnavailable, match="zero or not finite"):
        unit_rows(np.array([[1, 0, 0], bad], dtype=np.float32), key="mine@1")
