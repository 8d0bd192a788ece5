"""The time windows that questions name, read on 20 May 2026."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.text.periods import GRAINS
from knowledge.text.time_windows import MAX_CHARS, TimeWindow, hull, time_windows, years_in

NOW = datetime(2026, 5, 20, 12, 30, tzinfo=UTC)  # a Wednesday
OPEN = ".."


def _read(text: str) -> list[str]:
    """Windows as ``begin/end`` with midnights short and an unbounded side as two dots."""
    return [f"{_short(w.begin)}/{_short(w.end)}" for w in time_windows(text, NOW)]


def _short(moment: datetime | None) -> str:
    return OPEN if moment is None else moment.isoformat().removesuffix("T00:00:00+00:00")


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("Who owned the house from 1811 to 1827?", "1811-01-01/1828-01-01"),
        ("between 2009 and 2014", "2009-01-01/2015-01-01"),
        ("who was secretary 1916-1920", "1916-01-01/1921-01-01"),
        ("who was secretary 1916–20", "1916-01-01/1921-01-01"),
        ("who was secretary 1916 — 1920", "1916-01-01/1921-01-01"),
        ("After the season 2018/2019, who coached?", "2018-01-01/2020-01-01"),
        ("the 2010/11 season", "2010-01-01/2012-01-01"),
        ("between May 2019 and June 2020", "2019-05-01/2020-07-01"),
        ("from Sep 1940 to 1945", "1940-09-01/1946-01-01"),
        ("Apr 1950-May 1951", "1950-04-01/1951-06-01"),
        ("between May and June 2020", "2020-05-01/2020-07-01"),
        ("from November to February 2020", "2019-11-01/2020-03-01"),
        ("from Nov 11, 1950 to 3 January 1952", "1950-11-11/1952-01-04"),
        ("from 2026-05-01 until 2026-05-03", "2026-05-01/2026-05-04"),
        ("May 1-5, 2026", "2026-05-01/2026-05-06"),
        ("Q1 to Q3 2025", "2025-01-01/2025-10-01"),
        ("from 2010 to the present", "2010-01-01/2026-05-21"),
        ("between last week and today", "2026-05-11/2026-05-21"),
        ("from 2019 until now", "2019-01-01/2026-05-21"),
    ],
)
def test_words_that_join_two_times_make_one_window_that_covers_both(text: str, window: str) -> None:
    assert _read(text) == [window]


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("what failed in 2019?", "2019-01-01/2020-01-01"),
        ("the release of 2019", "2019-01-01/2020-01-01"),
        ("summer of 1969", "1969-01-01/1970-01-01"),
        ("mid-2019", "2019-01-01/2020-01-01"),
        ("at the end of 2019", "2019-01-01/2020-01-01"),
        ("who won the 2016 election", "2016-01-01/2017-01-01"),
        ("2018 season", "2018-01-01/2019-01-01"),
        ("the festival (2010)", "2010-01-01/2011-01-01"),
        ("FY2025 budget", "2025-01-01/2026-01-01"),
        ("2019", "2019-01-01/2020-01-01"),
        ("decisions of May 2026", "2026-05-01/2026-06-01"),
        ("decisions of May of 2026", "2026-05-01/2026-06-01"),
        ("member since when, mar 2011?", "2011-03-01/2011-04-01"),
        ("logs of 2026-05", "2026-05-01/2026-06-01"),
        ("2026-05-01", "2026-05-01/2026-05-02"),
        ("at 2026-05-01T10:00:00Z", "2026-05-01/2026-05-02"),
        ("1 May 2026", "2026-05-01/2026-05-02"),
        ("the 1st of May, 2026", "2026-05-01/2026-05-02"),
        ("May 1st, 2026", "2026-05-01/2026-05-02"),
        ("Q3 2025 revenue", "2025-07-01/2025-10-01"),
        ("2025Q3", "2025-07-01/2025-10-01"),
        ("the last quarter of 2025", "2025-10-01/2026-01-01"),
        ("H2 2025", "2025-07-01/2026-01-01"),
        ("the 1990s", "1990-01-01/2000-01-01"),
        ("the early 1990s", "1990-01-01/2000-01-01"),
        ("the 1940's class", "1940-01-01/1950-01-01"),
        ("in the '90s", "1990-01-01/2000-01-01"),
        ("in the 1800s", "1800-01-01/1900-01-01"),
        ("in the 2000s", "2000-01-01/2010-01-01"),
        ("the 19th century", "1801-01-01/1901-01-01"),
        ("the nineteenth century", "1801-01-01/1901-01-01"),
    ],
)
def test_a_period_is_the_whole_of_what_was_named(text: str, window: str) -> None:
    assert _read(text) == [window]


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("before May 2026", "../2026-05-01"),
        ("prior to 2010", "../2010-01-01"),
        ("pre-2010", "../2010-01-01"),
        ("before the year 2000", "../2000-01-01"),
        ("until the end of 2019", "../2020-01-01"),
        ("after 2010", "2011-01-01/.."),
        ("later than May 2026", "2026-06-01/.."),
        ("since 2019", "2019-01-01/.."),
        ("since last month", "2026-04-01/.."),
        ("starting in May 2026", "2026-05-01/.."),
        ("from 2019 onwards", "2019-01-01/.."),
        ("until 2019", "../2020-01-01"),
        ("till May 2026", "../2026-06-01"),
        ("up to 2019", "../2020-01-01"),
        ("done by 2019", "../2020-01-01"),
        ("by 1 May 2026", "../2026-05-02"),
        ("after 2010 and before 2015", "2011-01-01/2015-01-01"),
        ("before 2015 but after 2010", "2011-01-01/2015-01-01"),
    ],
)
def test_a_direction_opens_one_end(text: str, window: str) -> None:
    assert _read(text) == [window]


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("today", "2026-05-20/2026-05-21"),
        ("yesterday", "2026-05-19/2026-05-20"),
        ("tomorrow", "2026-05-21/2026-05-22"),
        ("this week", "2026-05-18/2026-05-25"),
        ("last week", "2026-05-11/2026-05-18"),
        ("this month", "2026-05-01/2026-06-01"),
        ("last month", "2026-04-01/2026-05-01"),
        ("next month", "2026-06-01/2026-07-01"),
        ("last quarter", "2026-01-01/2026-04-01"),
        ("this year", "2026-01-01/2027-01-01"),
        ("last year", "2025-01-01/2026-01-01"),
        ("this decade", "2020-01-01/2030-01-01"),
        ("last century", "1901-01-01/2001-01-01"),
        ("the past month", "2026-04-20/2026-05-21"),
        ("the last 30 days", "2026-04-20/2026-05-21"),
        ("the past two years", "2024-05-20/2026-05-21"),
        ("the last few days", "2026-05-17/2026-05-21"),
        ("the last 24 hours", "2026-05-19T12:30:00+00:00/2026-05-20T12:30:00+00:00"),
        ("the next 2 weeks", "2026-05-20/2026-06-04"),
        ("3 days ago", "2026-05-17/2026-05-18"),
        ("two years ago", "2024-01-01/2025-01-01"),
        ("in May", "2026-05-01/2026-06-01"),
        ("in September", "2025-09-01/2025-10-01"),
        ("on May 3", "2026-05-03/2026-05-04"),
        ("in Q2", "2026-04-01/2026-07-01"),
    ],
)
def test_what_is_said_from_now_is_counted_from_now(text: str, window: str) -> None:
    assert _read(text) == [window]
    assert time_windows(text, NOW)[0].is_relative


@pytest.mark.parametrize(
    "text",
    [
        "error 2024",
        "port 8080",
        "RFC 2119",
        "top 2000 items",
        "in 2000 items",
        "of 2000 patients",
        "by 1500 points",
        "from 1024 to 2048",
        "from 1024 to 2048 bytes",
        "ports 1900-1910",
        "pages 1901 to 1910",
        "a limit of 2000",
        "raise the timeout from 1500 to 2000",
        "vectors in 1536 dimensions",
        "a 1536 dimensional vector",
        "index of 2000 chunks",
        "resize from 1920 to 1080",
        "a genome of 2140 base pairs",
        "CVE-2024-1234",
        "in v2024.1",
        "in 2024ms",
        "over 2,024 rows",
        "$2000",
        "issue #2024",
        "deadbeef-2024-4a1c",
        "http://host:2024/x",
        "the 30s timeout",
        "may I cancel in march",
        "May the lease be renewed?",
        "the last day of the lease",
        "now",
        "2026-13-45",
        "31 February 2026",
        "the 12th century BC",
        "",
    ],
)
def test_other_numbers_and_words_are_no_time(text: str) -> None:
    assert _read(text) == []


def test_windows_come_in_the_order_of_the_text() -> None:
    text = "built between 1772 and 1774, who lived there in 1783, 1790 and 1802?"
    assert _read(text) == [
        "1772-01-01/1775-01-01",
        "1783-01-01/1784-01-01",
        "1790-01-01/1791-01-01",
        "1802-01-01/1803-01-01",
    ]


def test_a_window_tells_its_grain_and_a_range_the_coarser() -> None:
    grains = {
        text: time_windows(text, NOW)[0].grain
        for text in ("May 2026", "in 2026", "from May 2019 to 2020", "last 30 days", "Q3 2025")
    }
    assert list(grains.values()) == ["month", "year", "year", "day", "quarter"]
    assert not time_windows("May 2026", NOW)[0].is_relative


def test_now_is_taken_in_utc() -> None:
    east = datetime(2026, 5, 20, 1, tzinfo=timezone(timedelta(hours=9)))
    [window] = time_windows("today", east)
    assert window.begin == datetime(2026, 5, 19, tzinfo=UTC)


def test_a_window_holds_its_begin_and_not_its_end() -> None:
    [window] = time_windows("in May 2026", NOW)
    assert window.begin is not None and window.end is not None
    assert window.contains(window.begin) and not window.contains(window.end)
    assert window.years() == (2026, 2026)
    assert time_windows("in 2025", NOW)[0].years() == (2025, 2025)
    assert time_windows("after 2025", NOW)[0].years() == (2026, 9999)
    assert time_windows("before 2025", NOW)[0].years() == (1, 2024)


def test_the_hull_covers_all_windows() -> None:
    windows = time_windows("in 2012, and in May 2010", NOW)
    begin, end = datetime(2010, 5, 1, tzinfo=UTC), datetime(2013, 1, 1, tzinfo=UTC)
    assert hull(windows) == TimeWindow(begin, end, "year")
    assert hull([]) is None
    opened = hull([*windows, *time_windows("since last month", NOW)])
    assert opened == TimeWindow(begin, None, "year", is_relative=True)


_PIECES = (
    "from to until between and in since before after by the last next past this 30 two few years"
    " days months ago May march 1st 31 2026 1811 20 – - / , Q3 of quarter half century 19th '90s"
    " 1990s 2026-05-01 T10:00 now present today ſep ٣ İ"
)
_MOMENTS = st.datetimes(timezones=st.timezones())


@settings(max_examples=400, deadline=None)
@given(
    st.one_of(
        st.text(max_size=200), st.lists(st.sampled_from(_PIECES.split()), max_size=30).map(" ".join)
    ),
    _MOMENTS,
)
def test_any_text_at_any_time_gives_sound_windows(text: str, now: datetime) -> None:
    for window in time_windows(text, now):
        first, last = window.years()
        assert first <= last
        assert window.grain in GRAINS
        assert window.begin or window.end
        if window.begin and window.end:
            assert window.begin <= window.end
    for begin, end in years_in(text):
        assert 1000 <= begin <= end <= 2099


@pytest.mark.parametrize(
    "piece",
    [
        *("2020-", "May 1 ", "from 2010 to ", "2010, ", "last ", "between 2010 and ", "the early "),
        *(
            "first quarter of ",
            "1 ",
            "1",
            " ",
            "since May ",
            "last 30 days ",
            "twenty-",
            "2026-05-",
        ),
    ],
)
def test_a_hostile_text_takes_little_time(piece: str) -> None:
    text = "in 2010 " + piece * (MAX_CHARS // len(piece))

    def seconds() -> float:
        started = time.perf_counter()
        time_windows(text, NOW)
        return time.perf_counter() - started

    assert min(seconds() for _ in range(3)) < 0.05


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    assert _read("a" * MAX_CHARS + " in 2010") == []


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("built in 1794, sold 1811", [(1794, 1794), (1811, 1811)]),
        ("secretary during 1916-1920", [(1916, 1920)]),
        ("1916 – 1920", [(1916, 1920)]),
        ("1916–20", [(1916, 1920)]),
        ("1916 to 1920", [(1916, 1920)]),
        ("on 2026-05-01", [(2026, 2026)]),
        ("the 1990s", [(1990, 1999)]),
        ("the 1800s", [(1800, 1899)]),
        ("1990-1980", [(1990, 1990)]),
        ("$2000, 20,24 and 12345, v2024, 1.1999, 2000%", []),
        ("", []),
    ],
)
def test_the_years_of_a_text_are_found(text: str, years: list[tuple[int, int]]) -> None:
    assert years_in(text) == years
