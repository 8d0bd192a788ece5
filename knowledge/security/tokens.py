"""Access tokens of the built-in issuer: who and which tenant; everything else is read per request."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import jwt

from knowledge.errors import Unauthenticated
from knowledge.model.scope import Caller

_ALGORITHM: Final = "HS256"
_AUDIENCE: Final = "factory.knowledge"


@dataclass(frozen=True, slots=True)
class TokenIssuer:
    """Issues and verifies tokens with the installation's own key (HMAC-SHA-256)."""

    issuer: str
    signing_key: str
    lifetime_s: int

    def issue(self, *, client_id: str, tenant_id: str, scopes: Sequence[str]) -> str:
        now = int(time.time())
        return jwt.encode(
            {
                "iss": self.issuer,
                "aud": _AUDIENCE,
                "sub": client_id,
                "tenant": tenant_id,
                "scope": " ".join(scopes),
                "iat": now,
                "exp": now + self.lifetime_s,
                "jti": secrets.token_hex(8),
            },
            self.signing_key,
            algorithm=_ALGORITHM,
        )

    def verify(self, token: str) -> Caller:
        """The caller a token stands for. Raises `Unauthenticated` with what to do."""
        try:
            claims = jwt.decode(
                token,
                self.signing_key,
                algorithms=[_ALGORITHM],
                audience=_AUDIENCE,
                issuer=self.issuer,
                options={"require": ["exp", "iss", "aud", "sub", "tenant"]},
            )
        except jwt.ExpiredSignatureError as error:
            raise Unauthenticated(
                "the access token has expired: ask for a new one at /oauth/token"
            ) from error
        except (jwt.InvalidTokenError, ValueError, RecursionError) as error:
            raise Unauthenticated(
                "the access token is not one of this installation: ask for one at /oauth/token"
            ) from error
        return Caller(
            client_id=str(claims["sub"]),
            tenant_id=str(claims["tenant"]),
            scopes=tuple(str(claims.get("scope", "")).split()),
        )
