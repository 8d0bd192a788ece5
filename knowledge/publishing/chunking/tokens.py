"""Counting tokens cheaply, and splitting what is too long for one chunk.

A token is a word, a punctuation mark or an ideograph. So that a chunk bounded in tokens is
bounded in characters too, a word counts once for every 24 characters (an embedded image is
one word of a megabyte), and so does a run of blanks.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

_IDEOGRAPHS: Final = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
TOKEN: Final = re.compile(rf"[^\W{_IDEOGRAPHS}]{{1,24}}|[{_IDEOGRAPHS}]|[^\w\s]|[^\S\n]{{24}}")
_SENTENCE_END: Final = ".!?\u2026"
_IDEOGRAPHIC_END: Final = "\u3002\uff01\uff1f"

_LEAST_FILL: Final = 3
"""A better kind of break is taken when at least one third of the bound lies before it."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text with its lines, 1-based and inclusive."""

    text: str
    first: int
    last: int


def count_tokens(text: str) -> int:
    """Number of tokens of ``text``; additive over its lines."""
    return len(TOKEN.findall(text))


def split_lines(
    lines: Sequence[str], *, max_tokens: int, first: int = 1, whole: Sequence[tuple[int, int]] = ()
) -> list[Piece]:
    """Cut ``lines`` into pieces of at most ``max_tokens`` tokens, in order.

    ``first`` is the number of the first line. Breaks fall between paragraphs where that
    leaves no small piece, else between lines, else (a line that is too long by itself)
    between sentences, words or tokens. ``whole`` names ranges of line numbers, inclusive,
    that are not broken when they fit the bound by themselves. Blank lines at the ends of a
    piece are not part of it; every other line is in exactly one piece, a too long one in
    several. Time is linear in the text.
    """
    layout = _Layout(lines, max_tokens, [(start - first, end - first) for start, end in whole])
    return [Piece(piece.text, piece.first + first, piece.last + first) for piece in layout.pieces()]


class _Layout:
    """The lines of one text, numbered from 0, with the running sum of their tokens."""

    def __init__(
        self, lines: Sequence[str], max_tokens: int, whole: Sequence[tuple[int, int]]
    ) -> None:
        self.lines = lines
        self.max_tokens = max_tokens
        costs = _costs(lines)
        self.sums = list(accumulate(costs, initial=0))
        self.too_long = [index for index, cost in enumerate(costs) if cost > max_tokens]
        self.joined = {
            index
            for start, end in whole
            if self.sums[end + 1] - self.sums[start] <= max_tokens
            for index in range(start + 1, end + 1)
        }

    def pieces(self) -> Iterator[Piece]:
        start, count = 0, len(self.lines)
        while start < count:
            if not self.lines[start] or self.lines[start].isspace():
                start += 1
                continue
            if self.sums[start + 1] - self.sums[start] > self.max_tokens:
                for text in _split_line(self.lines[start], self.max_tokens):
                    yield Piece(text, start, start)
                start += 1
                continue
            end = self._break_after(start)
            last = end - 1
            while not self.lines[last] or self.lines[last].isspace():
                last -= 1
            yield Piece("\n".join(self.lines[start : last + 1]), start, last)
            start = end

    def _break_after(self, start: int) -> int:
        """Index of the line that begins the next piece."""
        limit = self._limit(self.sums[-1] - self.sums[start])
        obstacle = bisect_left(self.too_long, start)
        stop = self.too_long[obstacle] if obstacle < len(self.too_long) else len(self.lines)
        end = bisect_right(self.sums, self.sums[start] + limit) - 1
        if end >= stop:
            return stop
        paragraph = bisect_left(self.sums, self.sums[start] + limit / _LEAST_FILL)
        for index in range(end, max(paragraph, start + 1) - 1, -1):
            if index not in self.joined and not self.lines[index - 1].strip():
                return index
        for index in range(end, start, -1):
            if index not in self.joined:
                return index
        end = max(end, start) + 1
        while end < stop and end in self.joined:
            end += 1
        return end

    def _limit(self, remaining: int) -> int:
        """The bound of the next piece: the last two share what is left, so none is a scrap."""
        if self.max_tokens < remaining < 1.5 * self.max_tokens:
            return math.ceil(0.6 * remaining)
        return self.max_tokens


def _costs(lines: Sequence[str]) -> list[int]:
    """Tokens of each line; a blank line after a blank one counts, so their number is bounded."""
    find = TOKEN.findall
    costs = []
    blank_before = False
    for line in lines:
        cost = 0 if not line or line.isspace() else len(find(line))
        costs.append(cost or int(blank_before))
        blank_before = not cost
    return costs


def _split_line(line: str, max_tokens: int) -> Iterator[str]:
    """Parts of one line of at most ``max_tokens`` tokens each, blanks at their ends removed."""
    starts = [match.start() for match in TOKEN.finditer(line)]
    begin, count = 0, len(starts)
    while begin < count:
        end = begin + max_tokens
        if end < count:
            end = _break_in_line(line, starts, begin, end)
            part = line[starts[begin] : starts[end]]
        else:
            end, part = count, line[starts[begin] :]
        begin = end
        if part := part.strip():
            yield part


def _break_in_line(line: str, starts: list[int], begin: int, end: int) -> int:
    """The best token in ``(begin, end]`` to begin the next part with."""
    least = begin + max(1, (end - begin) // _LEAST_FILL)
    for index in range(end, least - 1, -1):
        before = line[starts[index] - 1]
        if before in _IDEOGRAPHIC_END or (
            before.isspace() and line[starts[index - 1]] in _SENTENCE_END
        ):
            return index
    for index in range(end, least - 1, -1):
        if line[starts[index] - 1].isspace():
            return index
    return end
