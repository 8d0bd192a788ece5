"""How well what was found supports an answer: from raw scores, never from ranks or z.

Two things tell a question about something that is there from one about something else: the share
of its words, by rarity, that one chunk (or turn with those around it) holds, and how near in
meaning the nearest is. They do not tell a near miss: a question about the right people and things
whose answer was never said has the same words and the same cosines.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from knowledge.retrieval.calibration import CosineScale
from knowledge.retrieval.ranking import Contender
from knowledge.retrieval.request import Leg

# A logistic fitted on 2026-11-30 (ridge .003, each set of the same weight) with the profiles
# MiniLM and e5-small-v2 on the development questions of LoCoMo (584 asked of their own
# conversation, 1,752 of others), Cranfield and SciFact (90 and 250 of their own corpus; each
# other's and 200 of LoCoMo's). `python -m benchmarks conversations` measures what it is worth.
_BIAS: Final = -5.5
_COVERAGE: Final = 4.4
_STRENGTH: Final = 4.7
_BIAS_OF_WORDS: Final = -3.1
_COVERAGE_OF_WORDS: Final = 7.2

CERTAINTY_OF_WORDS: Final = 0.8
"""What words alone are worth: their confidence stays between .1 and .9."""


@dataclass(frozen=True, slots=True)
class Support:
    """What the candidates give: ``coverage`` in 0 to 1 is the greatest share of the query's weight
    that one holds; ``strength`` the greatest cosine on its profile's scale (None: no vectors)."""

    coverage: float
    strength: float | None

    @property
    def confidence(self) -> float:
        """0 to 1: how likely such scores are for a question about what is there."""
        if self.strength is None:
            of_words = _logistic(_BIAS_OF_WORDS + _COVERAGE_OF_WORDS * self.coverage)
            return 0.5 + CERTAINTY_OF_WORDS * (of_words - 0.5)
        return _logistic(_BIAS + _COVERAGE * self.coverage + _STRENGTH * self.strength)


def support(
    candidates: Iterable[Contender], weight: float, scales: Mapping[str, CosineScale | None]
) -> Support | None:
    """What the candidates give to a query of that ``weight`` (of all its terms); None of none.

    ``scales`` are the profiles' as far as they have one.
    """
    coverage, strengths, is_empty = 0.0, [], True
    for candidate in candidates:
        is_empty = False
        held = candidate.held / weight if weight else 0.0
        coverage = max(coverage, held, candidate.signals.get(Leg.METADATA, 0.0))
        cosine = candidate.signals.get(Leg.VECTOR)
        scale = scales.get(candidate.profile) if candidate.profile else None
        if cosine is not None and scale is not None:
            strengths.append(scale.strength(cosine))
    if is_empty:
        return None
    return Support(min(1.0, coverage), max(strengths, default=None))


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value))
