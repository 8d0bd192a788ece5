"""A chunk: the unit that is published, indexed, found and cited."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

ChunkKind = Literal["document", "code"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk as a chunker makes it and a snapshot carries it.

    ``path`` is relative to what was published, with forward slashes. ``anchor`` is unique
    within the path. ``lines`` are 1-based and inclusive; ``None`` where the source has no
    lines. ``acl`` is ``None`` for everyone with the project, ``()`` for nobody, else entries
    ``user:…`` or ``group:…``.
    """

    path: str
    anchor: str
    title: str
    text: str
    kind: ChunkKind = "document"
    language: str | None = None
    lines: tuple[int, int] | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    acl: tuple[str, ...] | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ChunkVersion:
    """A row of the clock: one chunk as it stands in the revisions ``from_rev <= R < to_rev``.

    ``analysed`` are the terms an index ranks by, joined by spaces: those of title and text, and
    the title's once more, which nearly stands for the weight titles have in the final score.
    """

    object_id: uuid.UUID
    chunk_id: uuid.UUID
    from_rev: int
    to_rev: int
    source_id: str
    project_id: str
    chunk: Chunk
    analysed: str
    text_hash: bytes
