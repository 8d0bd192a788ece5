"""The default reranker: a blend of z-scored BM25 and z-scored cosine over every candidate."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Item = TypeVar("Item", int, uuid.UUID)
Values = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate's raw scores. ``cosine`` is None where no vector is known.

    ``weight`` in 0 to 1 is the cosine's share, by profile and kind; ``profile`` groups cosines
    that may be compared; ``anchors`` says whether it is among the candidates that set mean and
    spread (so that a larger top-k does not reorder the smaller one's answers).
    """

    sparse: float
    cosine: float | None
    weight: float
    profile: str | None
    anchors: bool


def blend(candidates: Mapping[Item, Scored]) -> dict[Item, float]:
    """``(1 - w) z(sparse) + w z(cosine)`` per candidate; without cosines z(sparse) alone.

    z is over the anchoring candidates; a spread of zero makes z zero. Empty in, empty out.
    """
    keys, scored = list(candidates), list(candidates.values())
    anchors = np.array([c.anchors for c in scored], dtype=bool)
    cosines = np.array([np.nan if c.cosine is None else c.cosine for c in scored])
    weights = np.array([c.weight for c in scored])
    profiles = np.array([c.profile or "" for c in scored])
    sparse = _standardised(np.array([c.sparse for c in scored]), anchors)
    values = sparse.copy()
    for profile in set(profiles):
        known = (profiles == profile) & ~np.isnan(cosines)
        dense = _standardised(cosines[known], anchors[known])
        values[known] = (1 - weights[known]) * sparse[known] + weights[known] * dense
    return dict(zip(keys, values.tolist(), strict=True))


def _standardised(values: Values, anchors: Flags) -> Values:
    known = values[anchors]
    spread = float(known.std()) if known.size else 0.0
    if spread <= 1e-9:
        return np.zeros_like(values)
    standard: Values = (values - known.mean()) / spread
    return standard
