"""Long texts matched a window at a time: the interpreter lets no other thread run in a match."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

WINDOW_CHARS: Final = 16_384
"""Some milliseconds of the slowest pattern."""

MAX_MATCH_CHARS: Final = 6_144
"""What is longer than this may be found in part only."""


def matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """As ``pattern.finditer(text)``: what stands before a window is still seen by lookbehinds."""
    position = limit = 0
    while limit < len(text):
        limit = position + WINDOW_CHARS
        position = limit
        for match in pattern.finditer(text, limit - WINDOW_CHARS, limit + MAX_MATCH_CHARS):
            if match.start() >= limit:
                break
            position = max(limit, match.end())
            yield match


def has_match(pattern: re.Pattern[str], text: str) -> bool:
    return next(matches(pattern, text), None) is not None
