"""The prior of time: candidates that speak of the time that a query names, or date from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from knowledge.retrieval.ranking import Found
from knowledge.text.periods import GRAINS, TimeWindow, in_utc
from knowledge.text.time_windows import years_in

# Of two sets of questions that name times recall grew up to here and stayed level beyond.
TIME_PRIOR: Final = 1.5
"""In units of z, like the blend that it is added to."""


def note_time_prior(found: Iterable[Found], windows: Sequence[TimeWindow]) -> None:
    """Give `TIME_PRIOR` to the candidates that lie in one of the windows; without one to none.

    A candidate lies in a window when its own date (``updated_at``) does, or when its title or text
    names a year, or a span of years, that the window touches. A window counted from now and named
    finer than a year ("last week") goes by the own date alone: that a text names this year says
    nothing about it.
    """
    if not windows:
        return
    spans = [window.years() for window in windows if _is_told_by_years(window)]
    for candidate in found:
        if _is_dated_in(candidate, windows) or _speaks_of(candidate, spans):
            candidate.prior = TIME_PRIOR


def _is_told_by_years(window: TimeWindow) -> bool:
    return not window.is_relative or GRAINS.index(window.grain) >= GRAINS.index("year")


def _is_dated_in(candidate: Found, windows: Sequence[TimeWindow]) -> bool:
    own = candidate.row["updated_at"]
    return own is not None and any(window.contains(in_utc(own)) for window in windows)


def _speaks_of(candidate: Found, spans: Sequence[tuple[int, int]]) -> bool:
    if not spans:
        return False
    named = years_in(f"{candidate.row['title']}\n{candidate.row['text']}")
    return any(
        first <= last_asked and first_asked <= last
        for first, last in named
        for first_asked, last_asked in spans
    )
