"""The time windows that an English text names, and the years that a text names.

A year ``until``, ``till``, ``up to``, ``through`` or ``by`` which something holds is included:
"until 2019" ends with 2020-01-01. ``before 2019`` ends with 2019-01-01, ``after 2010`` begins with
2011-01-01, ``since 2019`` with 2019-01-01. A range covers both its ends: "from 1811 to 1827" is
``[1811-01-01, 1828-01-01)``. "since", "before" and so on do to a month or day what they do to a year.

A four-digit number counts as a year only where it reads like one: after "in", "since", "from" and
the like, in a range, or before a word such as "season"; "error 2024" and "2000 items" name none.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from typing import Final

from knowledge.text.periods import TimeWindow, coarsest, hull, in_utc
from knowledge.text.time_mentions import Mention, find_mentions

__all__ = ["MAX_CHARS", "TimeWindow", "hull", "time_windows", "years_in"]

MAX_CHARS: Final = 8192
"""Of a longer text only the beginning is read."""

_CONTEXT: Final = 40
"""Characters before and after a mention that may decide what it is."""
_FORM: Final = str.maketrans({"—": "–", "−": "–", "‒": "–", "‐": "-", "‑": "-", "’": "'", "‘": "'"})

_LOOSE: Final = (
    r"(?: (?:the|a|about|around|circa|early|mid|late|year|(?:start|beginning|end|middle|month) of))"
)
_DIRECTION: Final = re.compile(
    rf"(?:(?P<before>\b(?:before|prior to|earlier than|older than|pre))"
    rf"|(?P<after>\b(?:after|later than|newer than|post))"
    rf"|(?P<since>\b(?:since|(?:starting|beginning) (?:in|from|on)|as from))"
    rf"|(?P<until>\b(?:until|till|up to|through|thru|by|no later than)))"
    rf"{_LOOSE}{{0,3}}[ -]$",
    re.IGNORECASE,
)
_FROM: Final = re.compile(rf"\b(?:from|since){_LOOSE}{{0,3}} $", re.IGNORECASE)
_BETWEEN: Final = re.compile(rf"\bbetween{_LOOSE}{{0,3}} $", re.IGNORECASE)
_ONWARD: Final = re.compile(r" (?:on|onwards?|forward|and (?:later|after))\b", re.IGNORECASE)
_JOINT: Final = re.compile(
    rf"(?: ?[–-] ?| (?:to|until|till|through|thru|up to|(?P<and>and|&)){_LOOSE}{{0,3}} )",
    re.IGNORECASE,
)
_LIST: Final = re.compile(r",? (?:and |or |and/or )?(?:in )?", re.IGNORECASE)
_BOTH: Final = re.compile(
    r",? (?:and|but) (?:(?:also )?(?:not )?)(?:before|after|since|until|till|up to) ", re.IGNORECASE
)

# What may stand before a year: the first kind whatever follows, the second unless it is counted.
_STRONG: Final = re.compile(
    rf"\b(?:in|since|during|years?|throughout|circa|ca\.|dated?|early|mid|late|spring|summer|autumn"
    rf"|fall|winter|christmas|easter){_LOOSE}{{0,3}}(?: of)?[ -]$",
    re.IGNORECASE,
)
_WEAK: Final = re.compile(
    rf"\b(?:from|to|by|of|for|between|after|before|until|till|than|through|thru|pre|post|on|season"
    rf"|as of|prior to|around){_LOOSE}{{0,3}}[ -]$",
    re.IGNORECASE,
)
_THE: Final = re.compile(r"\b(?:the|a|this|that|its|his|her|their|our) $", re.IGNORECASE)
_NUMBERED: Final = re.compile(
    r"\b(?:ports?|pages?|pp?\.|lines?|rows?|ids?|rfcs?|errors?|codes?|http|status|range|items?"
    r"|versions?|no\.|numbers?|issues?|isbn|tel|phone|sections?|top|first|values?|limit|sizes?"
    r"|max(?:imum)?|min(?:imum)?|timeout|batch|total|length|width|height|depth|count|capacity"
    r"|threshold|dimensions?|resolution) (?:(?:from|to|of|by|between|is) )?$",
    re.IGNORECASE,
)
_COUNTED: Final = re.compile(
    r" ?(?:ms|s|secs?|px|kb|mb|gb|tb|bits?|bytes?|items?|rows?|records?|users?|people|words?|tokens?"
    r"|chars?|characters?|lines?|requests?|times|percent|dollars?|euros?|km|m|kg|g|met(?:er|re)s?"
    r"|miles?|feet|hz|files?|documents?|chunks?|entries|elements?|results?|points?|steps?"
    r"|iterations?|epochs?|rpm|qps|dim(?:ension(?:s|al)?|s)?|vectors?|nodes?|threads?|objects?"
    r"|queries|messages|tests|commits|patients?|participants?|children|men|women|seconds?"
    r"|minutes?|hours?|days?|weeks?|months?|years?|or more|more|others?|different|concurrent|base)"
    r"\b",
    re.IGNORECASE,
)
_PLURAL: Final = re.compile(r" (?!was\b|is\b|has\b|does\b|as\b|this\b|its\b|his\b)[a-z]+[^s\W]s\b")
_ANNUAL: Final = re.compile(
    r" (?:(?:\w{1,20} ){0,2})(?:seasons?|elections?|olympics|census|editions?|championships?|cup"
    r"|tournament|campaign|budget|roadmap|report|review|planning|plan|audit|survey|goals|okrs"
    r"|summit|conference|festival|awards?)\b",
    re.IGNORECASE,
)
_NOUN: Final = re.compile(r" [a-z]{3,}", re.IGNORECASE)
_ALONE: Final = re.compile(r"[?.!]?$")
_LONGEST_RANGE: Final = 500
_LONGEST_UNSAID_RANGE: Final = 200
_FIRST_UNSAID: Final = 1500
_YEARS_AHEAD: Final = 10

# The digits come first, what may not stand before them second: twice as fast.
_YEARS: Final = re.compile(
    r"(1\d{3}|20\d\d)(?<![\w.,$€£#]\d{4})"
    r"(?:(?: ?[-–—/] ?| (?:to|until|till|through) )(1\d{3}|20\d\d|(?<=[-–—/])\d\d)(?![\w-]))?"
    r"('?s)?(?![\w%]|[.,:]\d)"
)


def time_windows(text: str, now: datetime) -> list[TimeWindow]:
    """The windows that a text names, in order of appearance; ``now`` (aware) anchors "last month".

    What words join is one window ("between May 2019 and June 2020", "after 2010 and before 2015").
    A month, day or quarter without its year is that of the range it is in, or the latest begun.
    "last month" is the calendar month before this one; "the past month" and "last 30 days" end
    with today. Linear in the text, of which the first `MAX_CHARS` characters are read; never raises.
    """
    now = in_utc(now)
    reading = _Reading(" ".join(text[:MAX_CHARS].split()).translate(_FORM), now)
    return reading.windows()


class _Reading:
    """One text with its mentions, while their surroundings are looked at."""

    def __init__(self, text: str, now: datetime) -> None:
        self.text = text
        self.now = now
        self.mentions = find_mentions(text, now)

    def windows(self) -> list[TimeWindow]:
        found: list[TimeWindow] = []
        previous: Mention | None = None  # the last that was taken
        number = 0
        while number < len(self.mentions):
            mention = self.mentions[number]
            following = self.mentions[number + 1] if number + 1 < len(self.mentions) else None
            taken = 1
            window: TimeWindow | None
            if following is not None and self._are_range(mention, following):
                window, last, taken = self._range(mention, following), following, 2
            else:
                window, last = self._single(mention, previous), mention
            if window is not None:
                self._add(found, window, previous, mention)
                previous = last
            number += taken
        return found

    def _add(
        self, found: list[TimeWindow], window: TimeWindow, previous: Mention | None, at: Mention
    ) -> None:
        """Append, or narrow the window before: "after 2010 and before 2015" is one."""
        if found and previous and _BOTH.fullmatch(self.text[previous.stop : at.start][:_CONTEXT]):
            both = _intersection(found[-1], window)
            if both is not None:
                found[-1] = both
                return
        found.append(window)

    def _are_range(self, a: Mention, b: Mention) -> bool:
        gap = self.text[a.stop : b.start] if b.start - a.stop <= _CONTEXT else ""
        joint = _JOINT.fullmatch(gap)
        if joint is None or a.kind in ("span", "now") or b.kind == "span":
            return False
        return not joint["and"] or bool(_BETWEEN.search(self._before(a)))

    def _range(self, a: Mention, b: Mention) -> TimeWindow | None:
        """None where the numbers are no years or the range runs backwards."""
        if {a.kind, b.kind} <= {"year", "now"} and not self._are_years(a, b):
            return None
        end = b.window or self._resolved(b, a.window)
        begin = a.window or self._resolved(a, end)
        if not begin or not end or not begin.begin or not end.end or begin.begin >= end.end:
            return None
        is_relative = begin.is_relative or end.is_relative
        return TimeWindow(begin.begin, end.end, coarsest((begin.grain, end.grain)), is_relative)

    def _are_years(self, a: Mention, b: Mention) -> bool:
        """Whether two bare numbers joined to a range are years."""
        before, after = self._before(a), self._after(b)
        if not a.window or not b.window or _NUMBERED.search(before) or _COUNTED.match(after):
            return False
        first, last = a.window.years()[0], b.window.years()[1]
        if _STRONG.search(before) or (_WEAK.search(before) and not _PLURAL.match(after)):
            return last - first <= _LONGEST_RANGE
        return first >= _FIRST_UNSAID and last - first <= _LONGEST_UNSAID_RANGE

    def _single(self, mention: Mention, previous: Mention | None) -> TimeWindow | None:
        if mention.kind == "now":
            return None
        if mention.kind == "year" and not self._is_year(mention, previous):
            return None
        if mention.kind == "span":
            return mention.window if self._is_span(mention) else None
        window = mention.window or self._undated(mention)
        return window and self._directed(mention, window)

    def _is_year(self, mention: Mention, previous: Mention | None) -> bool:
        before, after = self._before(mention), self._after(mention)
        if _NUMBERED.search(before) or _COUNTED.match(after):
            return False
        if _STRONG.search(before) or _ANNUAL.match(after) or _ONWARD.match(after):
            return True
        if _WEAK.search(before):
            return not _PLURAL.match(after)
        if previous and _LIST.fullmatch(self.text[previous.stop : mention.start][:_CONTEXT]):
            return not _PLURAL.match(after)
        year = mention.window.years()[0] if mention.window else 0
        if not _FIRST_UNSAID <= year <= self.now.year + _YEARS_AHEAD:
            return False
        if _THE.search(before):
            return bool(_NOUN.match(after)) and not _PLURAL.match(after)
        if before.endswith("("):
            return after.startswith(")")
        return (not before or before.endswith(", ")) and bool(_ALONE.match(after))

    def _is_span(self, mention: Mention) -> bool:
        return mention.window is not None and self._are_years(mention, mention)

    def _undated(self, mention: Mention) -> TimeWindow | None:
        """A month, day or quarter without a year, where the words before it make it one."""
        before = self._before(mention)
        is_said = _STRONG.search(before) or _DIRECTION.search(before) or _FROM.search(before)
        if not is_said and not (
            mention.undated and mention.undated.is_certain and before.lower().endswith("on ")
        ):
            return None
        return self._resolved(mention, None)

    def _resolved(self, mention: Mention, other: TimeWindow | None) -> TimeWindow | None:
        """The undated mention in the year of the range's ``other`` end, or the latest begun."""
        if mention.undated is None:
            return None
        if other is None:
            year, latest = self.now.year, self.now
        else:
            year, latest = other.years()[0], other.end or self.now
        window = mention.undated.of_year(year)
        if year > 1 and (window is None or (window.begin and window.begin >= latest)):
            window = mention.undated.of_year(year - 1)
        return window and replace(window, is_relative=other is None or other.is_relative)

    def _directed(self, mention: Mention, window: TimeWindow) -> TimeWindow:
        """The window open to one side, where the words before or after it say so."""
        before = self._before(mention)
        said = _DIRECTION.search(before)
        if said is None:
            is_open = _FROM.search(before) and _ONWARD.match(self._after(mention))
            return replace(window, end=None) if is_open else window
        return {
            "before": replace(window, begin=None, end=window.begin),
            "after": replace(window, begin=window.end, end=None),
            "since": replace(window, end=None),
            "until": replace(window, begin=None),
        }[said.lastgroup or ""]

    def _before(self, mention: Mention) -> str:
        return self.text[max(0, mention.start - _CONTEXT) : mention.start]

    def _after(self, mention: Mention) -> str:
        return self.text[mention.stop : mention.stop + _CONTEXT]


def _intersection(a: TimeWindow, b: TimeWindow) -> TimeWindow | None:
    """Of a window with an open end and one with an open beginning, where they meet."""
    begins = [w.begin for w in (a, b) if w.begin is not None]
    ends = [w.end for w in (a, b) if w.end is not None]
    if len(begins) != 1 or len(ends) != 1 or begins[0] >= ends[0]:
        return None
    grain = coarsest((a.grain, b.grain))
    return TimeWindow(begins[0], ends[0], grain, a.is_relative or b.is_relative)


def years_in(text: str) -> list[tuple[int, int]]:
    """The years from 1000 to 2099 that a text names, as (first, last), in order.

    ``1916-1920`` and ``1916 to 1920`` are one entry, ``the 1990s`` are (1990, 1999), a year alone
    is first and last. Cheap, and generous: any number that looks like a year counts.
    """
    found = []
    for begin, end, plural in _YEARS.findall(text):
        first = int(begin)
        last = first
        if end:
            last = int(end) if len(end) == 4 else first // 100 * 100 + int(end)
        elif plural:
            last = first + (99 if first % 100 == 0 and first < 2000 else 9)
        found.append((first, max(first, last)))
    return found
