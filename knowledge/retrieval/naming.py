"""The names in a question, and a fact as a sentence: between facts and the words of a search."""

from __future__ import annotations

from typing import Final

from knowledge.model.fact import MAX_NAME_CHARS, Fact, Moment, Precision, name_key
from knowledge.text.analysis import STOP_WORDS

MAX_NAME_WORDS: Final = 8
MAX_QUERY_WORDS: Final = 64
MAX_QUERY_CHARS: Final = 4096

_MOMENT_FORMS: Final = {
    Precision.MONTH: "%Y-%m",
    Precision.DAY: "%Y-%m-%d",
    Precision.INSTANT: "%Y-%m-%d",
}


def name_spans(text: str) -> dict[str, tuple[int, int]]:
    """Everything in a question that could be a name, by its key: from which word to which.

    Runs of up to `MAX_NAME_WORDS` words, without punctuation at their ends and without it.
    """
    words = text[:MAX_QUERY_CHARS].split()[:MAX_QUERY_WORDS]
    spans: dict[str, tuple[int, int]] = {}
    for begin in range(len(words)):
        for end in range(begin + 1, min(begin + MAX_NAME_WORDS, len(words)) + 1):
            for form in _forms(" ".join(words[begin:end])):
                key = name_key(form)
                # "it" is no name, "IT" may be one.
                is_word = key in STOP_WORDS and form == key
                if key and not is_word and len(key) <= MAX_NAME_CHARS:
                    spans.setdefault(key, (begin, end))
    return spans


def _forms(run: str) -> tuple[str, ...]:
    """A run of words with ever less of what may stand around a name."""
    said = run.strip(",;:!?")
    bare = said.strip("\"'«»“”‘’()[]{}<>`").strip(",;:!?")
    ended = bare.rstrip(".")
    return run, said, bare, ended, ended.removesuffix("'s").removesuffix("’s")


def longest_names(spans: dict[str, tuple[int, int]]) -> set[str]:
    """The names that lie in no longer one: "New York Times" hides "New York"."""
    return {
        key
        for key, (begin, end) in spans.items()
        if not any(
            other_begin <= begin and end <= other_end and other_end - other_begin > end - begin
            for other_begin, other_end in spans.values()
        )
    }


def fact_text(fact: Fact) -> str:
    """A fact as a sentence: ``Ada REPORTS TO Grace (from 2024-01 until 2026-05)``."""
    predicate = fact.predicate.replace("_", " ").lower()
    parts = [f"{fact.subject} {predicate} {fact.object}"]
    times = [
        f"{word} {_written(moment)}"
        for word, moment in (("from", fact.valid_from), ("until", fact.valid_to))
        if moment is not None
    ]
    return parts[0] + (f" ({' '.join(times)})" if times else "")


def _written(moment: Moment) -> str:
    if moment.precision is Precision.YEAR:
        return str(moment.at.year)
    return moment.at.strftime(_MOMENT_FORMS[moment.precision])
