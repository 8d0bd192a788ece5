"""The one analyser: words and identifiers as stemmed terms, for texts, titles, names and queries.

Every index and every score of the product works on these terms, so that all stores rank alike.
An identifier is split at case, underscore, dot and digit, its parts are stemmed (Snowball
English), and it is kept whole as well; a plain word is only stemmed.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import Stemmer

MAX_TERM_CHARS: Final = 64
"""Longer runs (encoded data, minified code) are cut: nobody searches for them."""

# Lucene's English stop words without "to", which like "from" tells the end of an interval.
_USUAL = (
    "a an and are as at be but by for if in into is it no not of on or such that the their "
    "then there these they this was will with"
)
_QUESTION = "what who whom whose which when where why how"
_AUXILIARY = (
    "am been being were do does did doing done has have had having would shall should can could "
    "may might must"
)
_PRONOUN = (
    "i me my mine myself we us our ours you your yours he him his she her hers its them theirs"
)
STOP_WORDS: Final = frozenset(" ".join((_USUAL, _QUESTION, _AUXILIARY, _PRONOUN)).split())

_WORD: Final = re.compile(r"[\w.]+")
_SEPARATOR: Final = re.compile(r"[._]+")
_BOUNDARY: Final = re.compile(
    r"(?<=[a-z0-9])(?=[A-Z])"  # camelCase
    r"|(?<=[A-Z])(?=[A-Z][a-z])"  # HTTPServer
    r"|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])"  # p53, utf8
)


class _Stemmers(threading.local):
    """A stemmer a thread: PyStemmer's objects must not be shared."""

    def __init__(self) -> None:
        self.english = Stemmer.Stemmer("english")


_stemmers = _Stemmers()


def analyse(text: str) -> list[str]:
    """Terms in order, repeats kept; empty for a text of stop words and punctuation only.

    A term holds no space, is at most `MAX_TERM_CHARS` long, and is lower case.
    """
    return [term for word in _WORD.findall(text) for term in _terms(word[:MAX_TERM_CHARS])]


@lru_cache(maxsize=200_000)
def _terms(word: str) -> tuple[str, ...]:
    """Of a word that is cut already: what is given stays in memory."""
    segments = [segment for segment in _SEPARATOR.split(word) if segment]
    parts = [part.lower() for segment in segments for part in _BOUNDARY.split(segment)]
    stem = _stemmers.english.stemWord
    terms = [stem(part) for part in parts if part not in STOP_WORDS]
    if len(parts) > 1:
        terms.append(word.strip("._").lower())
    return tuple(terms)


def count_terms(terms: Iterable[str]) -> str:
    """Terms as they are stored for scoring: ``"3 lease=2 token=1 "``, the length before them.

    Looking one term up in this costs a substring search instead of a pass over all words; a
    term holds neither a space nor ``=``, so a match is exact.
    """
    counts = Counter(terms)
    return f"{counts.total()} " + "".join(f"{term}={count} " for term, count in counts.items())


def expand_terms(counted: str) -> str:
    """The terms of `count_terms` joined by spaces, each as often as it was counted."""
    pairs = (word.partition("=") for word in counted.split()[1:])
    return " ".join(" ".join([term] * int(count)) for term, _, count in pairs)
