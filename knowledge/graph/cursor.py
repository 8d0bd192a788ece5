"""Where a page of facts ended: opaque to clients, and good for the very same question only."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from knowledge.errors import InvalidInput
from knowledge.storage.postgres.facts.filters import Place

_REFUSED = "cursor is not one that this question gave: repeat the question without a cursor"


@dataclass(frozen=True, slots=True)
class Cursor:
    """The place, and the times that the first page was answered as of, so that pages agree."""

    place: Place
    as_of: datetime | None
    known_at: datetime


def fingerprint(parts: Iterable[object]) -> str:
    """Of the question and who asks it: another tenant's cursor does not fit."""
    return hashlib.sha256(repr(tuple(parts)).encode("utf-8", "replace")).hexdigest()[:24]


def write_cursor(cursor: Cursor, question: str) -> str:
    begins = cursor.place.begins
    written = json.dumps(
        [
            question,
            None if begins is None else begins.isoformat(),
            str(cursor.place.fact_id),
            None if cursor.as_of is None else cursor.as_of.isoformat(),
            cursor.known_at.isoformat(),
        ]
    )
    return base64.urlsafe_b64encode(written.encode()).decode().rstrip("=")


def read_cursor(text: str, question: str) -> Cursor:
    """Raises `InvalidInput` for what `write_cursor` did not write for this question."""
    try:
        written = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        asked, begins, fact_id, as_of, known_at = written
        if asked != question:
            raise InvalidInput(_REFUSED)
        return Cursor(
            Place(None if begins is None else _time(begins), uuid.UUID(fact_id)),
            None if as_of is None else _time(as_of),
            _time(known_at),
        )
    except (
        ValueError,
        TypeError,
        AttributeError,
        RecursionError,
        OverflowError,
        binascii.Error,
    ) as error:
        raise InvalidInput(_REFUSED) from error


def _time(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError
    return at.astimezone(UTC)
