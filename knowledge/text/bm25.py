"""The one BM25 function, over frozen term statistics.

Okapi BM25 (Robertson and Zaragoza, 2009) with Lucene's idf, ``ln(1 + (N - df + .5) / (df + .5))``,
k1 = 1.2 and b = .4; a document scores its title and text together plus .3 of its title alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

K1: Final = 1.2
B: Final = 0.4
TITLE_WEIGHT: Final = 0.3


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """Statistics of the chunks visible when they were frozen.

    ``documents`` is N, lengths are in terms; the two mappings hold the document frequencies of
    (at least) the terms of one query, in title and text together and in titles.
    """

    documents: int
    average_length: float
    average_title_length: float
    in_text: Mapping[str, int]
    in_title: Mapping[str, int]


def idf(documents: int, frequency: int) -> float:
    return math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5))


@dataclass(frozen=True, slots=True)
class QueryWeights:
    """A query's terms with their idf times their count in the query, for texts and for titles."""

    text: Mapping[str, float]
    title: Mapping[str, float]
    average_length: float
    average_title_length: float


def weigh(terms: Iterable[str], statistics: TermStatistics) -> QueryWeights:
    counts = Counter(terms)
    total = max(statistics.documents, 1)

    def weights(frequencies: Mapping[str, int]) -> dict[str, float]:
        return {
            term: count * idf(total, min(total, frequencies.get(term, 0)))
            for term, count in counts.items()
        }

    return QueryWeights(
        text=weights(statistics.in_text),
        title=weights(statistics.in_title),
        average_length=statistics.average_length or 1.0,
        average_title_length=statistics.average_title_length or 1.0,
    )


def score(query: QueryWeights, analysed: str, analysed_title: str) -> float:
    """BM25 of one document, 0 when it holds no term of the query.

    ``analysed`` is title and text, ``analysed_title`` the title: terms joined by one space.
    """
    value = _field(query.text, analysed, query.average_length)
    if value and analysed_title:  # a term of the title is one of the text
        value += TITLE_WEIGHT * _field(query.title, analysed_title, query.average_title_length)
    return value


def _field(weights: Mapping[str, float], analysed: str, average: float) -> float:
    words = analysed.split()
    norm = K1 * (1 - B + B * len(words) / average)
    frequencies = Counter(filter(weights.__contains__, words))
    return sum(
        weights[term] * frequency * (K1 + 1) / (frequency + norm)
        for term, frequency in frequencies.items()
    )
