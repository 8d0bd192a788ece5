"""An inverted index in memory that ranks with the one BM25 function, and follows changes at once.

For short texts that are all at hand, such as entity names: statistics are those of what it holds
now, where collections freeze theirs. A row without a title of its own has its text for one, as
`knowledge.text.bm25` scores a document that is all title.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from knowledge.text.bm25 import K1, B, idf

Scores = NDArray[np.float64]
_Column = tuple[NDArray[np.intp], NDArray[np.float64]]


class Postings:
    """Documents by number, from 0 upwards without gaps; a removed number stays empty.

    Not safe for writers in several threads.
    """

    def __init__(self) -> None:
        self._terms: dict[str, dict[int, int]] = {}
        self._columns: dict[str, _Column] = {}
        self._lengths = np.zeros(64)
        self._words: list[Counter[str] | None] = []
        self._total = 0
        self._held = 0

    def __len__(self) -> int:
        """Numbers given out, those that are empty too."""
        return len(self._words)

    @property
    def held(self) -> int:
        """Numbers that are not empty."""
        return self._held

    def add(self, terms: Iterable[str]) -> int:
        """Take a document in; returns its number."""
        number = len(self._words)
        self._words.append(None)
        if number == len(self._lengths):
            self._lengths = np.concatenate([self._lengths, np.zeros(number)])
        self.replace(number, terms)
        return number

    def replace(self, number: int, terms: Iterable[str]) -> None:
        """Give a number other terms; without any the number is empty and never found."""
        self._forget(number)
        counts = Counter(terms)
        if not counts:
            return
        for term, times in counts.items():
            self._terms.setdefault(term, {})[number] = times
            self._columns.pop(term, None)
        self._words[number] = counts
        length = counts.total()
        self._lengths[number] = length
        self._total += length
        self._held += 1

    def scores(self, terms: Sequence[str]) -> Scores:
        """BM25 of every document, ``[len(self)]``; 0 where none of the terms is found."""
        found = np.zeros(len(self._words))
        if not self._held:
            return found
        average = self._total / self._held
        norms = K1 * (1 - B + B * self._lengths[: len(found)] / average)
        for term, times in Counter(terms).items():
            column = self._column(term)
            if column is None:
                continue
            rows, frequencies = column
            weight = times * idf(self._held, len(rows)) * (K1 + 1)
            found[rows] += weight * frequencies / (frequencies + norms[rows])
        return found

    def coverage(self, terms: Iterable[str], number: int) -> float:
        """The share of the terms' idf, in 0 to 1, that a document holds; 0 for no terms."""
        held = self._words[number] or Counter()
        weights = {t: idf(self._held, len(self._terms.get(t, ()))) for t in set(terms)}
        whole = sum(weights.values())
        return sum(w for t, w in weights.items() if t in held) / whole if whole else 0.0

    def _column(self, term: str) -> _Column | None:
        """Where a term stands, as arrays: made when it is asked for, dropped when it changes."""
        column = self._columns.get(term)
        if column is None:
            rows = self._terms.get(term)
            if not rows:
                return None
            column = (
                np.fromiter(rows.keys(), np.intp, len(rows)),
                np.fromiter(rows.values(), np.float64, len(rows)),
            )
            self._columns[term] = column
        return column

    def _forget(self, number: int) -> None:
        counts = self._words[number]
        if counts is None:
            return
        for term in counts:
            del self._terms[term][number]
            self._columns.pop(term, None)
            if not self._terms[term]:
                del self._terms[term]
        self._words[number] = None
        self._total -= counts.total()
        self._held -= 1
        self._lengths[number] = 0
