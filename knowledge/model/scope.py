"""Who asks, and what they may see."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from knowledge.errors import InvalidInput

EVERYONE: Final = "*"
"""How an index spells "no chunk ACL": entries must carry a prefix, so none can forge it."""

_ENTRY = re.compile(r"(?:user|group):[^\s,\x00-\x1f\x7f\ud800-\udfff]{1,200}")

READ: Final = "factory.knowledge.read"
WRITE: Final = "factory.knowledge.write"
ADMIN: Final = "factory.knowledge.admin"
OAUTH_SCOPES: Final = (READ, WRITE, ADMIN)


class TrustTier(StrEnum):
    SOURCE_FACT = "SourceFact"
    INFERRED_FACT = "InferredFact"
    AGENT_OBSERVATION = "AgentObservation"
    UNVERIFIED_MEMORY = "UnverifiedMemory"

    @property
    def rank(self) -> int:
        """0 for the most trusted tier."""
        return _RANKS[self]

    def at_least(self, minimum: TrustTier) -> bool:
        return self.rank <= minimum.rank


_RANKS: Final = {tier: rank for rank, tier in enumerate(TrustTier)}


@dataclass(frozen=True, slots=True)
class Caller:
    """The verified credential: who, of which tenant, with which OAuth scopes."""

    client_id: str
    tenant_id: str
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope one request runs under, resolved from the credential."""

    tenant_id: str
    project_id: str
    principal: str
    groups: tuple[str, ...]

    @property
    def acl_entries(self) -> tuple[str, ...]:
        """The ACL entries this caller satisfies, without `EVERYONE`."""
        return (f"user:{self.principal}", *(f"group:{group}" for group in self.groups))


def parse_acl(entries: Iterable[str] | None) -> tuple[str, ...] | None:
    """Validate an ACL: ``None`` is everyone with the project, an empty list is nobody.

    Raises `InvalidInput` for an entry that is not ``user:NAME`` or ``group:NAME``.
    """
    if entries is None:
        return None
    cleaned = tuple(dict.fromkeys(entries))
    for entry in cleaned:
        if not isinstance(entry, str) or not _ENTRY.fullmatch(entry):
            raise InvalidInput(
                f"ACL entry {str(entry)[:80]!r} is not valid: write user:NAME or group:NAME"
            )
    return tuple(sorted(cleaned))
