"""Personal API keys on a request: proven by their hash, which is remembered for a minute."""

from __future__ import annotations

import hmac
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from knowledge.errors import Unauthenticated
from knowledge.model.scope import Caller
from knowledge.security.keys import parse_key
from knowledge.storage.postgres.catalogue import secret_hash
from knowledge.storage.postgres.database import AsyncDatabase
from knowledge.storage.postgres.keys import key_for_request

REMEMBERED_S: Final = 60.0
MAX_REMEMBERED: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Proven:
    """A key that was proven, when it expires, and until when that is remembered (monotonic)."""

    caller: Caller
    expires_at: datetime | None
    until: float


class KeyVerifier:
    """Verifies keys. What is remembered is the hash of a key, never the key.

    Who a key stands for never changes. What it may do is read with the plan of every request, so
    that a revoked key, or one whose scopes changed, is refused on its next request all the same.
    """

    def __init__(
        self, database: AsyncDatabase, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._clock = clock
        self._proven: OrderedDict[bytes, _Proven] = OrderedDict()

    async def verify(self, text: str) -> Caller:
        """The caller a key stands for.

        Raises `Unauthenticated` for an unknown, revoked or expired key, `DatabaseUnavailable`.
        """
        key = parse_key(text)
        if key is None:
            raise _unknown()
        found = self._proven.get(key.fingerprint)
        if found is None or found.until <= self._clock():
            found = await self._prove(key.client_id, key.secret)
            self._remember(key.fingerprint, found)
        if found.expires_at is not None and found.expires_at <= datetime.now(UTC):
            raise Unauthenticated(
                f"the API key expired on {found.expires_at:%Y-%m-%d}: make a new one with"
                " `knowledge keys create`"
            )
        return found.caller

    async def _prove(self, client_id: str, secret: str) -> _Proven:
        row = await key_for_request(self._database, client_id)
        stored = bytes(row["secret_hash"]) if row else b"\0" * 32
        if not hmac.compare_digest(stored, secret_hash(secret)) or row is None:
            raise _unknown()
        caller = Caller(row["client_id"], row["tenant_id"], tuple(row["scopes"]))
        return _Proven(caller, row["expires_at"], self._clock() + REMEMBERED_S)

    def _remember(self, fingerprint: bytes, proven: _Proven) -> None:
        self._proven[fingerprint] = proven
        self._proven.move_to_end(fingerprint)
        while len(self._proven) > MAX_REMEMBERED:
            self._proven.popitem(last=False)


def _unknown() -> Unauthenticated:
    return Unauthenticated(
        "the API key is not valid or was revoked: make one with `knowledge keys create`"
    )
