"""The one BM25 function, over frozen term statistics.

Okapi BM25 (Robertson and Zaragoza, 2009) with Lucene's idf, ``ln(1 + (N - df + .5) / (df + .5))``,
k1 = 1.2 and b = .4; a document scores its title and text together plus .3 of its title alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

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


def merged(statistics: Sequence[TermStatistics]) -> TermStatistics:
    """Those of several collections taken as one; of a single one exactly its own.

    A word is then as rare in one as in another, and scores may be compared.
    """
    if len(statistics) == 1:
        return statistics[0]
    documents = sum(s.documents for s in statistics)
    in_text: Counter[str] = Counter()
    in_title: Counter[str] = Counter()
    for part in statistics:
        in_text.update(part.in_text)
        in_title.update(part.in_title)
    return TermStatistics(
        documents,
        sum(s.documents * s.average_length for s in statistics) / max(documents, 1),
        sum(s.documents * s.average_title_length for s in statistics) / max(documents, 1),
        in_text,
        in_title,
    )


@dataclass(frozen=True, slots=True)
class QueryWeights:
    """A query's terms with their idf times their count in the query, for texts and for titles.

    ``text_needles`` and ``title_needles`` are the same with terms as they stand in counted words.
    """

    text: Mapping[str, float]
    text_needles: tuple[tuple[str, float], ...]
    title_needles: tuple[tuple[str, float], ...]
    average_length: float
    average_title_length: float

    @property
    def total(self) -> float:
        """The weight of all terms together, in texts."""
        return sum(self.text.values())


class Match(NamedTuple):
    """How a document answers a query: its BM25, and the weight of the terms that it holds."""

    score: float
    held: float


class Counted(NamedTuple):
    """A document's length and how often it says each term of a query, in the query's order."""

    length: int
    frequencies: tuple[int, ...]


def weigh(terms: Iterable[str], statistics: TermStatistics) -> QueryWeights:
    counts = Counter(terms)
    total = max(statistics.documents, 1)

    def weights(frequencies: Mapping[str, int]) -> dict[str, float]:
        return {
            term: count * idf(total, min(total, frequencies.get(term, 0)))
            for term, count in counts.items()
        }

    text, title = weights(statistics.in_text), weights(statistics.in_title)
    return QueryWeights(
        text=text,
        text_needles=tuple((f" {term}=", weight) for term, weight in text.items()),
        title_needles=tuple((f" {term}=", weight) for term, weight in title.items()),
        average_length=statistics.average_length or 1.0,
        average_title_length=statistics.average_title_length or 1.0,
    )


def score(query: QueryWeights, words: str, title_words: str) -> float:
    """BM25 of one document, 0 when it holds no term of the query.

    ``words`` are title and text, ``title_words`` the title, as `count_terms` writes them.
    """
    return match(query, words, title_words).score


def match(query: QueryWeights, words: str, title_words: str) -> Match:
    """`score`, and what of the query the document holds."""
    value, held = _field(query.text_needles, words, query.average_length)
    if value:  # a term of the title is one of the text
        title, _ = _field(query.title_needles, title_words, query.average_title_length)
        value += TITLE_WEIGHT * title
    return Match(value, held)


def count(query: QueryWeights, words: str) -> Counted:
    """What a document says of a query's terms; ``words`` as `count_terms` writes them."""
    return Counted(
        int(words[: words.index(" ")]),
        tuple(_frequency(needle, words) for needle, _ in query.text_needles),
    )


def match_together(query: QueryWeights, parts: Sequence[Counted]) -> Match:
    """BM25 of several documents read as one text, titles counted as text.

    The average length is so many times that of one document.
    """
    length = sum(part.length for part in parts)
    norm = K1 * (1 - B + B * length / (query.average_length * max(len(parts), 1)))
    total = held = 0.0
    together = zip(*(part.frequencies for part in parts), strict=True)
    for (_, weight), frequencies in zip(query.text_needles, together, strict=False):
        frequency = sum(frequencies)
        if frequency:
            total += weight * frequency * (K1 + 1) / (frequency + norm)
            held += weight
    return Match(total, held)


def _frequency(needle: str, words: str) -> int:
    at = words.find(needle)
    return int(words[at + len(needle) : words.index(" ", at + 1)]) if at >= 0 else 0


def _field(
    needles: tuple[tuple[str, float], ...], words: str, average: float
) -> tuple[float, float]:
    norm = K1 * (1 - B + B * int(words[: words.index(" ")]) / average)
    total = held = 0.0
    for needle, weight in needles:
        at = words.find(needle)
        if at >= 0:
            start = at + len(needle)
            frequency = int(words[start : words.index(" ", start)])
            total += weight * frequency * (K1 + 1) / (frequency + norm)
            held += weight
    return total, held
