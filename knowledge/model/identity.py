"""Names and ids: slugs, chunk ids, object ids, content hashes."""

from __future__ import annotations

import hashlib
import json
import re
import uuid

from knowledge.errors import InvalidName
from knowledge.model.chunk import Chunk
from knowledge.model.turn import Placed

SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,61}")
_CHUNKS = uuid.UUID("6f1c0a52-7d0e-5c1b-9a43-2f6d1b8e4c70")
_OBJECTS = uuid.UUID("b1f1f3a8-0a52-5f0e-8f3a-5a1c5b0f9d21")
_UNIT = "\x1f"


def require_slug(value: str, what: str) -> str:
    """Return ``value`` when it is a slug, else raise `InvalidName` naming ``what``."""
    if not SLUG.fullmatch(value):
        raise InvalidName(
            f"{what} {value[:80]!r} is not valid: use 1 to 62 of a-z, 0-9 and '-', "
            "starting with a letter or digit",
            what=what,
        )
    return value


def partition_key(tenant_id: str, collection: str) -> str:
    """``{tenant}.{collection}``: slugs hold no dot, so no two partitions collide."""
    return f"{tenant_id}.{collection}"


def split_partition_key(key: str) -> tuple[str, str]:
    tenant_id, _, collection = key.partition(".")
    return require_slug(tenant_id, "tenant"), require_slug(collection, "collection")


def chunk_id(tenant_id: str, collection: str, source_id: str, path: str, anchor: str) -> uuid.UUID:
    """The stable id of a chunk: uuid5 over where it stands, never over what it says.

    ``collection`` is the collection's slug, ``anchor`` the heading path, qualified name or
    ordinal (repeats within a path are numbered by the chunker).
    """
    return uuid.uuid5(_CHUNKS, _UNIT.join((tenant_id, collection, source_id, path, anchor)))


def object_id(collection_id: uuid.UUID, chunk: uuid.UUID, from_rev: int) -> uuid.UUID:
    """The id of one chunk *version* in every index: the same row gets the same id again."""
    return uuid.uuid5(_OBJECTS, f"{collection_id}{_UNIT}{chunk}{_UNIT}{from_rev}")


def embedding_text(chunk: Chunk) -> str:
    """What a profile embeds: ``title. text``; for code also the path in front of the name."""
    title = f"{chunk.path} {chunk.title}" if chunk.kind == "code" else chunk.title
    return f"{title}. {chunk.text}" if title else chunk.text


def text_hash(chunk: Chunk) -> bytes:
    """SHA-256 of the embedded text, 32 bytes: the key of a vector within tenant and profile."""
    return hashlib.sha256(embedding_text(chunk).encode()).digest()


def content_hash(chunk: Chunk) -> bytes:
    """SHA-256 over what makes a chunk *changed*: text, title, lines, tags, metadata, kind.

    The ACL is not part of it (it is not versioned), nor is the source's version.
    """
    canonical = json.dumps(
        [
            chunk.title,
            chunk.text,
            chunk.lines,
            sorted(chunk.tags),
            dict(chunk.metadata),
            chunk.kind,
            chunk.language,
            chunk.updated_at.isoformat() if chunk.updated_at else None,
        ],
        sort_keys=True,
        ensure_ascii=False,
        separators=(",", ":"),
    )
    return hashlib.sha256(canonical.encode()).digest()


def turn_hash(content: bytes, turn: Placed) -> bytes:
    """SHA-256 over what makes a turn of a conversation changed: its `content_hash` and its place."""
    return hashlib.sha256(content + f"{_UNIT}{turn.session}{_UNIT}{turn.place!r}".encode()).digest()
