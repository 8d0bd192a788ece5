"""Personal API keys: ``kk_<client id>_<secret>``, the credential of one person's agent.

A key is a client of one project that is used as it is, without a token. Only a hash of its secret
is stored.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import Final

PREFIX: Final = "kk_"
_FORMAT: Final = re.compile(r"kk_(key-[0-9a-f]{16})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """The two parts of a key. ``secret`` has 256 random bits and never appears in a repr."""

    client_id: str
    secret: str

    def __repr__(self) -> str:
        return f"ApiKey({self.client_id!r})"

    @property
    def text(self) -> str:
        """The key as it is given to its owner and sent by the agent."""
        return f"{shown_prefix(self.client_id)}_{self.secret}"

    @property
    def fingerprint(self) -> bytes:
        """SHA-256 of the whole key, 32 bytes: what may be remembered of it."""
        return hashlib.sha256(self.text.encode()).digest()


def draw_key() -> ApiKey:
    """A new key from the operating system's random numbers."""
    return ApiKey(f"key-{secrets.token_hex(8)}", secrets.token_urlsafe(32))


def parse_key(text: str) -> ApiKey | None:
    """The parts of a key; None for what is not written like one."""
    found = _FORMAT.fullmatch(text)
    return ApiKey(*found.groups()) if found else None


def shown_prefix(client_id: str) -> str:
    """How a key is listed and named: all of it but the secret."""
    return f"{PREFIX}{client_id}"
