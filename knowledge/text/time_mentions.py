"""Where an English text names a time: the dates, years and spans in it, one by one.

One pass of one expression whose parts are all bounded, so that the time is linear in the text.
What the words around a mention make of it (ranges, open ends) is `time_windows`' work.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final, Literal

from knowledge.text.periods import GRAINS, Grain, TimeWindow, days, period, period_around, rolling

MAX_MENTIONS: Final = 64


def _numbered(words: str, first: int = 1) -> dict[str, int]:
    return {word: number for number, word in enumerate(words.split(), start=first)}


_MONTH_NUMBERS: Final = _numbered("jan feb mar apr may jun jul aug sep oct nov dec")
_CENTURIES: Final = _numbered(
    "eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"
    " twentieth twenty-first",
    first=11,
)
_COUNTS: Final = {"a": 1, "an": 1, "few": 3, "couple of": 2} | _numbered(
    "one two three four five six seven eight nine ten eleven twelve"
)
_YEAR: Final = r"(?:1\d|20)\d\d"
# A number that is part of another thing (v2024, 1.2024, #2024, CVE-2024-1, 2024ms, 2024-1) is none.
_START: Final = r"(?:(?<![\w.,$€£#:/@+=–-])|(?<=\bmid-)|(?<=\bpre-)|(?<=\bpost-))"
_END: Final = r"(?![\w%°$€£]|[.,:/–-]\d)"
_MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY: Final = r"\d{1,2}(?:st|nd|rd|th)?"
_COUNT: Final = rf"(?:\d{{1,3}}|{'|'.join(_COUNTS)})"
_UNIT: Final = r"(?:hour|day|week|month|quarter|year|decade|century)"
_UNITS: Final = r"(?:hour|day|week|month|quarter|year|decade)s?"
_ORDINALS: Final = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3}
_ORDINALS_OF_FOUR: Final = _ORDINALS | {"fourth": 4, "4th": 4, "last": 4, "final": 4}

_MENTION: Final = re.compile(
    rf"""
      (?P<iso>{_START}(?P<iso_y>{_YEAR})[-/](?P<iso_m>0[1-9]|1[0-2])[-/](?P<iso_d>\d\d)
        (?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{{1,9}})?)?(?:Z|[+-]\d\d:?\d\d)?)?(?![\w]|[-.:/]\d))
    | (?P<span>{_START}(?P<span_a>{_YEAR})(?P<dash>\ ?[–/-]\ ?)(?P<span_b>{_YEAR}|\d\d){_END})
    | (?P<dmy>(?<![\w.,$€£#:/@])(?P<d_d>{_DAY})(?:\ ?[–-]\ ?(?P<d_e>{_DAY}))?\ (?:of\ )?
        (?P<d_m>{_MONTH})(?:,?\ (?:of\ )?(?P<d_y>{_YEAR}){_END})?)
    | (?P<mdy>(?<!\w)(?P<m_m>{_MONTH})
        (?:\ (?:the\ )?(?P<m_d>{_DAY})(?:\ ?[–-]\ ?(?P<m_e>{_DAY}))?(?![\w%]|[.:]\d))?
        (?:(?:,?\ (?:of\ )?|[-/])(?P<m_y>{_YEAR}){_END})?)
    | (?P<part>\b(?P<p_k>[qh])(?P<p_n>[1-4])(?:[ ,/-]{{0,2}}(?:of\ )?(?P<p_y>{_YEAR}){_END}|\b))
    | (?P<tail>{_START}(?P<t_y>{_YEAR})[ -]?(?P<t_k>[qh])(?P<t_n>[1-4])\b)
    | (?P<nth>\b(?P<n_n>{"|".join(_ORDINALS_OF_FOUR)})\ (?P<n_k>quarter|half)\ of\ (?P<n_y>{_YEAR})
        {_END})
    | (?P<century>\b(?:(?P<c_n>1[1-9]|2[01])(?:th|st)|(?P<c_w>{"|".join(_CENTURIES)}))[ -]century\b
        (?!\ b\.?c))
    | (?P<decade>{_START}(?P<dec>(?:1\d|20)\d0)'?s\b)
    | (?P<short>(?:(?<=[a-z]\ )'|(?<=\b(?:in|of|by)\ the\ )|(?<=\b(?:from|till)\ the\ )
        |(?<=\b(?:since|until)\ the\ )|(?<=\bduring\ the\ ))(?P<s_d>[2-9]0)'?s\b)
    | (?P<fiscal>\bfy\ ?(?P<f_y>{_YEAR}){_END})
    | (?P<named>\b(?:today|yesterday|tomorrow|now|present)\b)
    | (?P<ago>\b(?P<a_n>{_COUNT})\ (?P<a_u>{_UNITS})\ ago\b)
    | (?P<rolling>\b(?P<r_w>last|past|previous|next|coming)\ (?P<r_n>{_COUNT})\ (?P<r_u>{_UNITS})\b)
    | (?P<nearby>\b(?P<w_w>this|current|last|past|previous|next|coming)\ (?P<w_u>{_UNIT})\b
        (?!\ of\b))
    | (?P<year>{_START}(?P<y>{_YEAR}){_END})
    """,
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)
# Nothing is recognised in a text without one of these: most queries cost no more than this.
_CUE: Final = re.compile(
    r"(?<!\d)(?:1\d|20)\d\d(?!\d)|[2-9]0'?s\b|\b(?:q[1-4]\b|today|yesterday|tomorrow|this|current"
    r"|last|past|previous|next|coming|jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)"
    r"|\bago\b|[ -]century\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Undated:
    """A month, day or quarter without its year. ``is_certain``: it can be nothing else."""

    of_year: Callable[[int], TimeWindow | None]
    is_certain: bool


@dataclass(frozen=True, slots=True)
class Mention:
    """One time named at ``[start, stop)`` of the text.

    A ``year`` and a ``span`` of years are bare numbers, which only their surroundings can tell
    from other numbers; ``now`` is the present as the end of something.
    """

    start: int
    stop: int
    kind: Literal["dated", "year", "span", "now"]
    window: TimeWindow | None
    undated: Undated | None = None


def find_mentions(text: str, now: datetime) -> list[Mention]:
    """The first `MAX_MENTIONS` mentions in order, none overlapping. ``now`` is in UTC."""
    if not _CUE.search(text):
        return []
    matches = islice(_MENTION.finditer(text), MAX_MENTIONS)
    found = (_READERS[match.lastgroup or ""](match, now) for match in matches)
    return [mention for mention in found if mention]


def _dated(
    match: re.Match[str], window: TimeWindow | None, undated: Undated | None = None
) -> Mention | None:
    if window is None and undated is None:
        return None
    return Mention(match.start(), match.end(), "dated", window, undated)


def _iso(match: re.Match[str], _now: datetime) -> Mention | None:
    day = int(match["iso_d"])
    return _dated(match, days(int(match["iso_y"]), int(match["iso_m"]), day, day))


def _span(match: re.Match[str], _now: datetime) -> Mention | None:
    """``1916-1920``, ``1916–20``, ``2018/19``; ``2026-05`` is a month as ISO 8601 writes it."""
    begin, end, dash = match["span_a"], match["span_b"], match["dash"]
    first, last = int(begin), int(end)
    if len(end) == 2:
        is_month = 1 <= last <= 12 and dash.strip() != "–"
        if is_month and not (dash == "/" and last == first % 100 + 1):
            return _dated(match, period("month", first, last)) if len(dash) == 1 else None
        last += first // 100 * 100
        if len(dash) > 1:
            return None
    if not first < last:
        return None
    window = TimeWindow(period("year", first).begin, period("year", last).end, "year")
    return Mention(match.start(), match.end(), "span", window)


def _day(digits: str) -> int:
    """Of ``1``, ``1st`` or ``31st``."""
    return int(digits[:2].rstrip("sSnNrRtT"))


def _named_date(match: re.Match[str], group: str) -> Mention | None:
    name, year = match[f"{group}_m"], match[f"{group}_y"]
    month = _MONTH_NUMBERS[name[:3].lower()]
    first, last = match[f"{group}_d"], match[f"{group}_e"]

    def of_year(number: int) -> TimeWindow | None:
        if first is None:
            return period("month", number, month)
        return days(number, month, _day(first), _day(last or first))

    if year is not None:
        return _dated(match, of_year(int(year)))
    if not name[0].isupper() or of_year(2000) is None:  # "may", "march"; 2000 has every day
        return None
    return _dated(match, None, Undated(of_year, is_certain=first is not None))


def _day_first(match: re.Match[str], _now: datetime) -> Mention | None:
    return _named_date(match, "d")


def _month_first(match: re.Match[str], _now: datetime) -> Mention | None:
    return _named_date(match, "m")


def _part(match: re.Match[str], year: str | None, kind: str, number: int) -> Mention | None:
    grain: Grain = "quarter" if kind.lower().startswith("q") else "half"
    if grain == "half" and number > 2:
        return None
    if year is not None:
        return _dated(match, period(grain, int(year), number))
    if kind != "Q":
        return None
    return _dated(match, None, Undated(lambda of: period(grain, of, number), is_certain=False))


def _quarter_first(match: re.Match[str], _now: datetime) -> Mention | None:
    return _part(match, match["p_y"], match["p_k"], int(match["p_n"]))


def _quarter_last(match: re.Match[str], _now: datetime) -> Mention | None:
    return _part(match, match["t_y"], match["t_k"], int(match["t_n"]))


def _nth_part(match: re.Match[str], _now: datetime) -> Mention | None:
    word, kind = match["n_n"].lower(), match["n_k"].lower()
    number = 2 if kind == "half" and word in ("last", "final") else _ORDINALS_OF_FOUR[word]
    return _part(match, match["n_y"], kind, number)


def _century(match: re.Match[str], _now: datetime) -> Mention | None:
    number = int(match["c_n"]) if match["c_n"] else _CENTURIES[match["c_w"].lower()]
    return _dated(match, period("century", number * 100 - 99))


def _decade(match: re.Match[str], _now: datetime) -> Mention | None:
    """ "the 1990s"; "the 1800s" are a hundred years, "the 2000s" ten."""
    first = int(match["dec"])
    grain: Grain = "century" if first % 100 == 0 and first < 2000 else "decade"
    return _dated(match, period(grain, first))


def _short_decade(match: re.Match[str], _now: datetime) -> Mention | None:
    return _dated(match, period("decade", 1900 + int(match["s_d"])))


def _fiscal(match: re.Match[str], _now: datetime) -> Mention | None:
    return _dated(match, period("year", int(match["f_y"])))


def _named(match: re.Match[str], now: datetime) -> Mention | None:
    word = match[0].lower()
    shift = {"yesterday": -1, "tomorrow": 1}.get(word, 0)
    window = period_around(now, "day", shift)
    kind: Literal["now", "dated"] = "now" if word in ("now", "present") else "dated"
    return Mention(match.start(), match.end(), kind, window)


def _count(word: str) -> int:
    return int(word) if word.isdigit() else _COUNTS[word.lower()]


def _grain(unit: str) -> Grain:
    return next(grain for grain in GRAINS if unit.lower().startswith(grain))


def _ago(match: re.Match[str], now: datetime) -> Mention | None:
    return _dated(match, period_around(now, _grain(match["a_u"]), -_count(match["a_n"])))


def _rolling(match: re.Match[str], now: datetime) -> Mention | None:
    ahead = match["r_w"].lower() in ("next", "coming")
    count = _count(match["r_n"])
    return _dated(match, rolling(now, _grain(match["r_u"]), -count if ahead else count))


def _nearby(match: re.Match[str], now: datetime) -> Mention | None:
    """ "last month" is the calendar month before this one, "the past month" the days up to now."""
    word, grain = match["w_w"].lower(), _grain(match["w_u"])
    if word == "past" or (grain in ("hour", "day") and word in ("last", "previous")):
        return _dated(match, rolling(now, grain, 1))
    shift = {"last": -1, "previous": -1, "next": 1, "coming": 1}.get(word, 0)
    return _dated(match, period_around(now, grain, shift))


def _bare_year(match: re.Match[str], _now: datetime) -> Mention | None:
    return Mention(match.start(), match.end(), "year", period("year", int(match["y"])))


_READERS: Final[dict[str, Callable[[re.Match[str], datetime], Mention | None]]] = {
    "iso": _iso,
    "span": _span,
    "dmy": _day_first,
    "mdy": _month_first,
    "part": _quarter_first,
    "tail": _quarter_last,
    "nth": _nth_part,
    "century": _century,
    "decade": _decade,
    "short": _short_decade,
    "fiscal": _fiscal,
    "named": _named,
    "ago": _ago,
    "rolling": _rolling,
    "nearby": _nearby,
    "year": _bare_year,
}
