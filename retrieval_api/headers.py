"""Request headers that mean the same to every operation that reads them."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request

from knowledge.errors import InvalidInput

DEADLINE_HEADER: Final = "x-request-timeout-ms"
KEY_HEADER: Final = "idempotency-key"
MAX_KEY_CHARS: Final = 200


def deadline_s(request: Request) -> float | None:
    """The client's own deadline, which can only shorten ours. Raises `InvalidInput`."""
    value = request.headers.get(DEADLINE_HEADER)
    if value is None:
        return None
    if not value.isdecimal() or len(value) > 6 or not 1 <= int(value) <= 600_000:
        raise InvalidInput(f"{DEADLINE_HEADER} must be a number of milliseconds, 1 to 600000")
    return int(value) / 1000


def idempotency_key(request: Request) -> str | None:
    """How the client names this request, to be able to send it again. Raises `InvalidInput`."""
    key = request.headers.get(KEY_HEADER)
    if key is not None and not 1 <= len(key) <= MAX_KEY_CHARS:
        raise InvalidInput(f"Idempotency-Key must have 1 to {MAX_KEY_CHARS} characters")
    return key
