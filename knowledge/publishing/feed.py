"""A feed: a ``.jsonl`` file with one document a line."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NoReturn

from knowledge.errors import InvalidDocument, InvalidInput
from knowledge.model.chunk import Chunk, ChunkKind
from knowledge.model.scope import parse_acl
from knowledge.model.turn import read_turn
from knowledge.publishing.chunking.chunkers import chunk_snippet
from knowledge.publishing.chunking.detection import looks_like_code
from knowledge.publishing.chunking.languages import PROGRAMMING_LANGUAGES
from knowledge.publishing.cleaning import clean_json, clean_line, clean_text, parse_time

FEED_KEYS: Final = ("id", "title", "text", "metadata", "acl", "tags")
MAX_LINE_BYTES: Final = 32 * 1024 * 1024
MAX_ID_CHARS: Final = 1024
MAX_TAG_CHARS: Final = 100
MAX_METADATA_BYTES: Final = 64 * 1024
MAX_METADATA_DEPTH: Final = 32
_UNFIT_FOR_ID: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class FeedDocument:
    """One document as its chunks; ``digest`` is the SHA-256 of everything it says.

    ``session`` is that of a turn of a conversation.
    """

    document_id: str
    chunks: tuple[Chunk, ...]
    digest: bytes
    session: str | None = None


def read_turns(path: Path) -> Iterator[FeedDocument]:
    """The turns of a conversation: `read_feed`, each document one chunk that knows its session.

    A turn without a title has its speaker's name. The digest tells the turn before it in its
    session too, so that a turn that moved is not taken for unchanged. Raises what `read_feed`
    raises, and `InvalidDocument` for a document that is no turn.
    """
    before: dict[str, str] = {}
    for number, document in _documents(path):
        where = _Where(path, number)
        metadata = _metadata(document.get("metadata"), where)
        try:
            turn = read_turn(metadata)
        except InvalidInput as error:
            where.refuse(error.message, error)
        read = _document({**document, "title": document.get("title") or turn.speaker}, where, None)
        told = f"{before.get(turn.session)!r} {turn.session!r}".encode()
        before[turn.session] = read.document_id
        [chunk] = read.chunks
        yield replace(
            read,
            chunks=(replace(chunk, updated_at=parse_time(metadata["time"])),),
            digest=hashlib.sha256(read.digest + told).digest(),
            session=turn.session,
        )


def read_feed(path: Path, *, rechunk: bool, max_tokens: int) -> Iterator[FeedDocument]:
    """The documents of a feed in order, read as they are asked for; blank lines are passed over.

    A document is one chunk with an empty anchor, whatever its length; with ``rechunk`` it is
    cut into chunks of at most ``max_tokens`` tokens, whose anchors are ordinals from 1. The
    chunk's path is the document's id; it has no lines.

    Raises `InvalidDocument` naming file and line at the first document that is not valid, and
    `InvalidInput` when the file cannot be read.
    """
    for number, document in _documents(path):
        yield _document(document, _Where(path, number), max_tokens if rechunk else None)


def _documents(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and JSON object of each document; no two have the same id."""
    first_seen: dict[str, int] = {}
    for number, line in _lines(path):
        where = _Where(path, number)
        document = _parse(line, where)
        document_id = document["id"]
        if document_id in first_seen:
            where.refuse(
                f"id {_short(document_id)} is already used in line {first_seen[document_id]}"
            )
        first_seen[document_id] = number
        yield number, document


@dataclass(frozen=True, slots=True)
class _Where:
    path: Path
    line: int

    def refuse(self, why: str, cause: Exception | None = None) -> NoReturn:
        message = f"{self.path}, line {self.line}: {why}"
        raise InvalidDocument(message, path=str(self.path), line=self.line) from cause


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(line) > MAX_LINE_BYTES:
                    _Where(path, number).refuse(f"longer than {MAX_LINE_BYTES} bytes")
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if line.strip():
                    yield number, line
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}", path=str(path)) from error


def _parse(line: bytes, where: _Where) -> dict[str, Any]:
    """The JSON object of a line, its keys and the types of its values checked."""
    try:
        document = json.loads(line.decode(), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        where.refuse("not UTF-8", error)
    except json.JSONDecodeError as error:
        where.refuse(f"not valid JSON: {error.msg} at column {error.colno}", error)
    except (ValueError, RecursionError) as error:
        where.refuse(f"not valid JSON: {_first_line(error)}", error)
    if not isinstance(document, dict):
        where.refuse("a document must be a JSON object")
    if unknown := sorted(document.keys() - set(FEED_KEYS)):
        where.refuse(f"unknown key {_short(unknown[0])}; the keys are {', '.join(FEED_KEYS)}")
    _require_id(document.get("id"), where)
    _require_text(document.get("text"), where)
    if not isinstance(document.get("title") or "", str):
        where.refuse("title must be a string")
    return document


def _document(document: Mapping[str, Any], where: _Where, max_tokens: int | None) -> FeedDocument:
    metadata = _metadata(document.get("metadata"), where)
    title = clean_line(document.get("title") or "")
    text = clean_text(document["text"])
    tags = _tags(document.get("tags"), where)
    acl = _acl(document.get("acl"), where)
    language = _language(metadata)
    kind = _kind(metadata, language, text)
    whole = Chunk(
        path=document["id"],
        anchor="",
        title=title,
        text=text,
        kind=kind,
        language=language,
        tags=tags,
        metadata=metadata,
        acl=acl,
        updated_at=_updated_at(metadata),
    )
    chunks = (whole,) if max_tokens is None else chunk_snippet(whole, max_tokens=max_tokens)
    said = json.dumps([document["id"], title, text, metadata, acl, tags], sort_keys=True)
    return FeedDocument(document["id"], tuple(chunks), hashlib.sha256(said.encode()).digest())


def _require_id(value: object, where: _Where) -> None:
    if not isinstance(value, str) or not value.strip():
        where.refuse("id is missing, empty or not a string")
    if len(value) > MAX_ID_CHARS:
        where.refuse(f"id is longer than {MAX_ID_CHARS} characters")
    if _UNFIT_FOR_ID.search(value):
        where.refuse("id has control characters or half a surrogate pair")


def _require_text(value: object, where: _Where) -> None:
    if not isinstance(value, str):
        where.refuse("text is missing or not a string")
    if not clean_text(value).strip():
        where.refuse("text is empty")


def _metadata(value: object, where: _Where) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        where.refuse("metadata must be a JSON object")
    if _depth_exceeds(value, MAX_METADATA_DEPTH):
        where.refuse(f"metadata is nested more than {MAX_METADATA_DEPTH} levels deep")
    cleaned: dict[str, Any] = clean_json(value)
    try:
        size = len(json.dumps(cleaned, allow_nan=False, ensure_ascii=False).encode())
    except ValueError as error:
        where.refuse("metadata has a number that is not finite", error)
    if size > MAX_METADATA_BYTES:
        where.refuse(f"metadata is {size} bytes as JSON, more than {MAX_METADATA_BYTES}")
    return cleaned


def _depth_exceeds(value: object, limit: int) -> bool:
    level = [value]
    for _ in range(limit + 1):
        level = [
            inner
            for item in level
            if isinstance(item, dict | list)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return True


def _tags(value: object, where: _Where) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
        where.refuse("tags must be a list of strings")
    tags = tuple(dict.fromkeys(clean_line(tag) for tag in value))
    if any(not 1 <= len(tag) <= MAX_TAG_CHARS for tag in tags):
        where.refuse(f"a tag must have 1 to {MAX_TAG_CHARS} characters")
    return tags


def _acl(value: object, where: _Where) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        where.refuse("acl must be null or a list of strings, user:NAME or group:NAME")
    if any(_UNFIT_FOR_ID.search(entry) for entry in value):
        where.refuse("an acl entry has control characters or half a surrogate pair")
    try:
        return parse_acl(value)
    except InvalidInput as error:
        where.refuse(error.message, error)


def _language(metadata: Mapping[str, Any]) -> str | None:
    language = metadata.get("language")
    return language.strip().lower() or None if isinstance(language, str) else None


def _kind(metadata: Mapping[str, Any], language: str | None, text: str) -> ChunkKind:
    is_code = metadata.get("kind") == "code" or language in PROGRAMMING_LANGUAGES
    return "code" if is_code or looks_like_code(text) else "document"


def _updated_at(metadata: Mapping[str, Any]) -> datetime | None:
    return parse_time(metadata.get("updatedAt")) or parse_time(metadata.get("time"))


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["too deeply nested"])[0]


def _short(value: str) -> str:
    return repr(value if len(value) <= 80 else f"{value[:80]}…")
