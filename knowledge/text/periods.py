"""Calendar periods as half-open windows in UTC."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, get_args

Grain = Literal["hour", "day", "week", "month", "quarter", "half", "year", "decade", "century"]
GRAINS: Final[tuple[Grain, ...]] = get_args(Grain)
"""Finest first."""

_SPANS: Final[dict[Grain, timedelta]] = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}
_MONTHS: Final[dict[Grain, int]] = {
    "month": 1,
    "quarter": 3,
    "half": 6,
    "year": 12,
    "decade": 120,
    "century": 1200,
}
_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_LAST: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """Half-open ``[begin, end)`` in UTC; None is unbounded.

    ``grain`` is the precision it was named with ("May 2026" is a month), of a range the coarser
    of its ends'. ``is_relative`` says that it was counted from now ("last month").
    """

    begin: datetime | None
    end: datetime | None
    grain: Grain
    is_relative: bool = False

    def contains(self, moment: datetime) -> bool:
        """Whether an aware ``moment`` lies in the window."""
        return (self.begin is None or self.begin <= moment) and (
            self.end is None or moment < self.end
        )

    def years(self) -> tuple[int, int]:
        """First and last calendar year that the window touches; 1 and 9999 where unbounded."""
        last = _LAST if self.end is None else moved(self.end, timedelta(microseconds=-1))
        return (_FIRST if self.begin is None else self.begin).year, last.year


def hull(windows: Iterable[TimeWindow]) -> TimeWindow | None:
    """The smallest window that covers all of them, None of none.

    Its grain is the coarsest, and it is relative when one of them is.
    """
    parts = list(windows)
    if not parts:
        return None
    begins = [part.begin for part in parts if part.begin is not None]
    ends = [part.end for part in parts if part.end is not None]
    return TimeWindow(
        min(begins) if len(begins) == len(parts) else None,
        max(ends) if len(ends) == len(parts) else None,
        coarsest(part.grain for part in parts),
        any(part.is_relative for part in parts),
    )


def coarsest(grains: Iterable[Grain]) -> Grain:
    return max(grains, key=GRAINS.index)


def in_utc(moment: datetime) -> datetime:
    """An aware moment in UTC; at the ends of the calendar its wall time is kept."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return moment.replace(tzinfo=UTC)


def moved(moment: datetime, by: timedelta) -> datetime:
    """``moment + by``, held within the calendar."""
    try:
        return moment + by
    except OverflowError:
        return _FIRST if by < timedelta() else _LAST


def months_from(first: int, count: int, grain: Grain) -> TimeWindow:
    """``count`` months from month number ``first`` (year * 12 + month - 1)."""
    return TimeWindow(_month_start(first), _month_start(first + count), grain)


def period(grain: Grain, year: int, number: int = 1) -> TimeWindow:
    """The ``number``-th (from 1) month, quarter or half of a year, or from there on a year's."""
    count = _MONTHS[grain]
    return months_from(year * 12 + (number - 1) * count, count, grain)


def days(year: int, month: int, first: int, last: int) -> TimeWindow | None:
    """The days ``first`` to ``last`` of a month; None where the month has no such days."""
    if not 1 <= first <= last <= monthrange(year, month)[1]:
        return None
    begin = datetime(year, month, first, tzinfo=UTC)
    return TimeWindow(begin, moved(begin, timedelta(days=last - first + 1)), "day")


def period_around(now: datetime, grain: Grain, shift: int = 0) -> TimeWindow:
    """The calendar period that holds ``now``, or the one ``shift`` periods later."""
    if grain in _MONTHS:
        count, offset = _MONTHS[grain], 12 if grain == "century" else 0
        number = (now.year * 12 + now.month - 1 - offset) // count * count + offset
        window = months_from(number + shift * count, count, grain)
    else:
        step = _SPANS[grain]
        floor = now.replace(minute=0, second=0, microsecond=0)
        if grain != "hour":
            floor = floor.replace(hour=0)
        if grain == "week":
            floor = moved(floor, timedelta(days=-floor.weekday()))
        begin = moved(floor, step * shift)
        window = TimeWindow(begin, moved(begin, step), grain)
    return TimeWindow(window.begin, window.end, grain, is_relative=True)


def rolling(now: datetime, grain: Grain, count: int) -> TimeWindow:
    """The last ``count`` hours up to now, or today and the whole days that far before it.

    A negative count looks as far ahead: the rest of today and what follows.
    """
    if grain == "hour":
        begin, end = sorted((now, moved(now, -count * _SPANS["hour"])))
        return TimeWindow(begin, end, grain, is_relative=True)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if grain in _MONTHS:
        start = _month_start(today.year * 12 + today.month - 1 - count * _MONTHS[grain])
        far = start.replace(day=min(today.day, monthrange(start.year, start.month)[1]))
    else:
        far = moved(today, -count * _SPANS[grain])
    begin, last = sorted((today, far))
    return TimeWindow(begin, moved(last, timedelta(days=1)), grain, is_relative=True)


def _month_start(number: int) -> datetime:
    year, month = divmod(number, 12)
    if year < 1:
        return _FIRST
    return _LAST if year > 9999 else datetime(year, month + 1, 1, tzinfo=UTC)
