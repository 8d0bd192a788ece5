"""The default reranker: a blend of z-scored BM25 and z-scored cosine over every candidate."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


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


def blend(candidates: Mapping[uuid.UUID, Scored]) -> dict[uuid.UUID, float]:
    """``(1 - w) z(sparse) + w z(cosine)`` per candidate; without cosines z(sparse) alone.

    z is over the anchoring candidates; a spread of zero makes z zero. Empty in, empty out.
    """
    sparse = _standardised({key: c.sparse for key, c in candidates.items()}, candidates)
    dense: dict[uuid.UUID, float] = {}
    for profile in {c.profile for c in candidates.values() if c.cosine is not None}:
        group = {
            key: c.cosine
            for key, c in candidates.items()
            if c.profile == profile and c.cosine is not None
        }
        dense |= _standardised(group, candidates)
    return {
        key: (1 - c.weight) * sparse[key] + c.weight * dense[key] if key in dense else sparse[key]
        for key, c in candidates.items()
    }


def _standardised(
    values: Mapping[uuid.UUID, float], candidates: Mapping[uuid.UUID, Scored]
) -> dict[uuid.UUID, float]:
    mean, spread = _moments(v for key, v in values.items() if candidates[key].anchors)
    return {key: (value - mean) / spread if spread else 0.0 for key, value in values.items()}


def _moments(values: Iterable[float]) -> tuple[float, float]:
    known = list(values)
    if not known:
        return 0.0, 0.0
    mean = math.fsum(known) / len(known)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in known) / len(known))
    return mean, spread if spread > 1e-9 else 0.0
