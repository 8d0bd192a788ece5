"""A turn of a conversation: what its metadata must say, and where it stands in its session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from knowledge.errors import InvalidInput

MAX_NAME_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class Turn:
    """Who said it, and in which session (a name within its source)."""

    speaker: str
    session: str


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a turn stands: turns of a session are in the order of their places."""

    session: str
    place: float


def read_turn(metadata: Mapping[str, Any]) -> Turn:
    """The turn that a document's metadata tells. Raises `InvalidInput` naming what is wrong.

    ``speaker`` is a name, ``session`` a name or a whole number, ``time`` an ISO 8601 date or time.
    """
    speaker, session = metadata.get("speaker"), metadata.get("session")
    if isinstance(session, int) and not isinstance(session, bool):
        session = str(session)
    _require_name("speaker", speaker)
    _require_name("session", session)
    _require_time(metadata.get("time"))
    return Turn(str(speaker).strip(), str(session).strip())


def _require_name(key: str, value: object) -> None:
    if not isinstance(value, str) or not 1 <= len(value.strip()) <= MAX_NAME_CHARS:
        raise InvalidInput(
            f"a turn needs metadata.{key}, a name of 1 to {MAX_NAME_CHARS} characters"
        )


def _require_time(value: object) -> None:
    try:
        datetime.fromisoformat(value.strip() if isinstance(value, str) else "")
    except ValueError:
        raise InvalidInput(
            "a turn needs metadata.time, an ISO 8601 date or time such as 2026-05-01T09:30:00Z"
        ) from None
