"""Where the API is: named, or the running stack of the home, looked up anew for each call.

A stack that was started again may have another port; a program that took the port of one that
was stopped must not be sent a key.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from knowledge.errors import InvalidConfiguration, Unauthenticated
from knowledge.home import Home
from knowledge.security.keys import parse_key
from knowledge.stack.record import api_address
from mcp_server.door import ApiUnreachable

_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+){2}")
"""A JSON Web Token's three parts."""


@dataclass(frozen=True, slots=True)
class Address:
    """The API at ``url``, or where that is None, of the home's running stack."""

    url: str | None
    home: Home
    host: str = "127.0.0.1"

    def __post_init__(self) -> None:
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise InvalidConfiguration(f"{self.url[:200]} is no address: write http://HOST:PORT")

    @property
    def label(self) -> str:
        """What it is known as while it is away."""
        return self.url or str(self.home.root)

    @property
    def away(self) -> str:
        """The line for people while nothing answers there."""
        if self.url is not None:
            return f"the knowledge service cannot be reached at {self.url}: is it running?"
        return (
            f"no knowledge service runs for {self.home.root}: start it with `knowledge up`, or say"
            " where it is with KNOWLEDGE_URL"
        )

    def find(self) -> str:
        """The base URL. Raises `ApiUnreachable` where the home's stack does not run."""
        if self.url is not None:
            return self.url
        address = api_address(self.home, self.host)
        if address is None:
            raise ApiUnreachable(self.away)
        return address


@dataclass(frozen=True, slots=True)
class Credential:
    """The caller's key or token: given, or read from a file for each call."""

    text: str | None = field(repr=False)
    file: Path | None = None

    def read(self) -> str:
        """The key or token. Raises `Unauthenticated` where there is none."""
        text, holder = self.text, "KNOWLEDGE_API_KEY"
        if self.file is not None:
            holder = f"the key file {self.file}"
            try:
                text = self.file.read_text()
            except (OSError, UnicodeDecodeError) as error:
                raise Unauthenticated(f"the key file {self.file} cannot be read") from error
        text = (text or "").strip()
        if not text:
            raise Unauthenticated(
                "no API key: set KNOWLEDGE_API_KEY to a key from `knowledge keys create`"
            )
        if parse_key(text) is None and not _TOKEN.fullmatch(text):
            raise Unauthenticated(
                f"{holder} holds no key (kk_…) nor access token: make a key with"
                " `knowledge keys create`"
            )
        return text


def known_as(credential: str) -> str:
    """Tells credentials apart without holding them: a key's id, or the hash of a token."""
    key = parse_key(credential)
    return key.client_id if key else hashlib.sha256(credential.encode()).hexdigest()
