"""Collections and their sources."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from knowledge.model.identity import partition_key
from knowledge.model.scope import TrustTier

CollectionKind = Literal["documents", "conversation"]


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection; ``embedding_profile`` is ``None`` where it is searched without a model.

    A ``conversation`` holds turns, each found with the turns around it.
    """

    collection_id: uuid.UUID
    tenant_id: str
    slug: str
    project_id: str
    embedding_profile: str | None
    allow_remote: bool
    head_rev: int
    kind: CollectionKind = "documents"

    @property
    def partition(self) -> str:
        return partition_key(self.tenant_id, self.slug)


@dataclass(frozen=True, slots=True)
class Source:
    """One repository, folder, file set or feed of a collection."""

    source_id: str
    project_id: str
    acl: tuple[str, ...] | None
    trust_tier: TrustTier
    origin: str | None
    deleted_at: datetime | None
