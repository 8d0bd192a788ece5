"""Reciprocal rank fusion (Cormack, Clarke and Buettcher, 2009): ranks, never scores."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

K: Final = 60
Item = TypeVar("Item", int, uuid.UUID)


def fuse(
    rankings: Mapping[str, Sequence[Item]], weights: Mapping[str, float] | None = None
) -> dict[Item, float]:
    """RRF score per item, best first; ties by id. ``rankings`` are best first, by leg.

    An item at rank r (from 1) of a leg with weight w adds w / (60 + r); weights default to 1.
    """
    scores: dict[Item, float] = {}
    for leg, ranking in rankings.items():
        weight = 1.0 if weights is None else weights.get(leg, 1.0)
        for rank, item in enumerate(ranking, start=1):
            scores[item] = scores.get(item, 0.0) + weight / (K + rank)
    return dict(sorted(scores.items(), key=lambda entry: (-entry[1], entry[0])))
