"""What a term weighs in an item, for backends that keep no term statistics of their own.

BM25 is a sum over the query's terms of idf times a saturated frequency. The idf comes with the
query; the saturation needs a text's length against the average. Here the average is a constant,
so that a stored item never has to change and a pinned answer never moves: such a ranking only
picks candidates, which the caller scores again with the exact frozen statistics.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from knowledge.text.bm25 import K1, B

NOMINAL_LENGTH: Final = 120.0
"""Terms in an average chunk. With b = .4 an average of half or twice as many moves a weight of a
term that occurs once by less than a quarter."""


def saturated_frequencies(analysed: str) -> dict[str, float]:
    """By term, ``tf (k1 + 1) / (tf + k1 (1 - b + b length / average))``: above 0, below k1 + 1."""
    counts = Counter(analysed.split())
    norm = K1 * (1 - B + B * counts.total() / NOMINAL_LENGTH)
    return {term: count * (K1 + 1) / (count + norm) for term, count in counts.items()}
