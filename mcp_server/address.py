"""Where the API is: named, or the running stack of the home, looked up anew for each call.

A stack that was started again may have another port; a program that took the port of one that
was stopped must not be sent a key.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from knowledge.errors import InvalidConfiguration, Unauthenticated
from knowledge.home import Home
from knowledge.security.keys import parse_key
from knowledge.stack.record import api_address
from mcp_server.door import ApiUnreachable


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

    def find(self) -> str:
        """The base URL. Raises `ApiUnreachable` where the home's stack does not run."""
        if self.url is not None:
            return self.url
        address = api_address(self.home, self.host)
        if address is None:
            raise ApiUnreachable(
                f"no knowledge service runs for {self.home.root}: start it with `knowledge up`, or"
                " say where it is with KNOWLEDGE_URL"
            )
        return address


@dataclass(frozen=True, slots=True)
class Credential:
    """The caller's key or token: given, or read from a file for each call."""

    text: str | None = field(repr=False)
    file: Path | None = None

    def read(self) -> str:
        """The key. Raises `Unauthenticated` where there is none."""
        text = self.text
        if self.file is not None:
            try:
                text = self.file.read_text()
            except (OSError, UnicodeDecodeError) as error:
                raise Unauthenticated(f"the key file {self.file} cannot be read") from error
        text = (text or "").strip()
        if not text:
            raise Unauthenticated(
                "no API key: set KNOWLEDGE_API_KEY to a key from `knowledge keys create`"
            )
        if not (text.isascii() and text.isprintable()) or " " in text:
            raise Unauthenticated("the API key has characters that no key has: copy it again")
        return text


def known_as(credential: str) -> str:
    """Tells credentials apart without holding them: a key's id, or the hash of a token."""
    key = parse_key(credential)
    return key.client_id if key else hashlib.sha256(credential.encode()).hexdigest()
