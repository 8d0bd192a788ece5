"""Text as PostgreSQL, Parquet and the analysers can hold it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final

_NEWLINE: Final = re.compile(r"\r\n")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


def clean_text(text: str) -> str:
    r"""Return ``text`` with ``\n`` line ends and without what no store can hold.

    ``\r\n`` becomes ``\n``, so line numbers stay. Other control characters except tab become
    a space, lone surrogates become U+FFFD; nothing else changes. Linear in the length.
    """
    text = _NEWLINE.sub("\n", text) if "\r" in text else text
    return _SURROGATE.sub("\ufffd", _CONTROL.sub(" ", text))


def clean_line(text: str) -> str:
    """`clean_text` on one line: every run of white space is a single space, none at the ends."""
    return " ".join(clean_text(text).split())


def clean_json(value: Any) -> Any:
    """Return a JSON value with every string in it, keys included, cleaned."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(key): clean_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clean_json(item) for item in value]
    return value


def parse_time(value: object) -> datetime | None:
    """An ISO 8601 date or time as an aware datetime (UTC when it names no zone), else None."""
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
