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
    spread (so that a larger top-k does not reorder the smaller one's answers). ``prior``, in units
    of z, is what is known of it apart from both scores.
    """

    sparse: float
    cosine: float | None
    weight: float
    profile: str | None
    anchors: bool
    prior: float = 0.0


def blend(candidates: Mapping[Item, Scored]) -> dict[Item, float]:
    """``(1 - w) z(sparse) + w z(cosine) + prior`` per candidate; without cosines z(sparse) alone.

    z is over the anchoring candidates; a spread of zero makes z zero. A candidate without a
    profile beside others that have one gets the blend expected of its words. Empty in, empty out.
    """
    keys, scored = list(candidates), list(candidates.values())
    anchors = np.array([c.anchors for c in scored], dtype=bool)
    cosines = np.array([np.nan if c.cosine is None else c.cosine for c in scored])
    weights = np.array([c.weight for c in scored])
    profiles = np.array([c.profile or "" for c in scored])
    sparse = _standardised(np.array([c.sparse for c in scored]), anchors)
    values, dense = sparse.copy(), np.full(len(keys), np.nan)
    for profile in set(profiles):
        known = (profiles == profile) & ~np.isnan(cosines)
        dense[known] = _standardised(cosines[known], anchors[known])
        values[known] = (1 - weights[known]) * sparse[known] + weights[known] * dense[known]
    both = anchors & ~np.isnan(dense)
    without_model = profiles == ""
    if both.any() and without_model.any():
        share = float(weights[both].mean())
        expected = _expected(sparse[both], dense[both], sparse[without_model])
        values[without_model] = (1 - share) * sparse[without_model] + share * expected
    values = values + np.array([c.prior for c in scored])
    return dict(zip(keys, values.tolist(), strict=True))


def _expected(sparse: Values, dense: Values, wanted: Values) -> Values:
    """The z(cosine) to expect at each ``wanted`` z(sparse), by least squares over the others.

    z(sparse) alone would spread wider than the mean of two signals: the best of a collection
    without a model would stand above, and the rest below, equally good chunks of one with a model.
    """
    spread = float(sparse.var())
    slope = float(np.cov(sparse, dense, bias=True)[0, 1]) / spread if spread > 1e-9 else 0.0
    slope = min(1.0, max(0.0, slope))  # more words never count against a chunk
    expected: Values = dense.mean() + slope * (wanted - sparse.mean())
    return expected


def _standardised(values: Values, anchors: Flags) -> Values:
    known = values[anchors]
    spread = float(known.std()) if known.size else 0.0
    if spread <= 1e-9:
        return np.zeros_like(values)
    standard: Values = (values - known.mean()) / spread
    return standard
