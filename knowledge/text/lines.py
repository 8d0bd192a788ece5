"""Text that others wrote, made safe to stand in one line of a report."""

from __future__ import annotations

from typing import Final
from unicodedata import category

_UNPRINTABLE: Final = frozenset(("Cc", "Cf", "Zl", "Zp"))
"""Control and format characters (bidirectional overrides too) and line separators."""


def one_line(text: str, limit: int) -> str:
    """The text as one line of at most ``limit`` characters, in which no character acts on others."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join("\N{REPLACEMENT CHARACTER}" if category(c) in _UNPRINTABLE else c for c in cut)
