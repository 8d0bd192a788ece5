"""Transcripts of coding agents (.jsonl), read from their end: turns, prompts and exchanges.

Three shapes of a line are known: Claude Code's (``type`` user or assistant with a ``message``),
Codex's (``response_item`` with a ``payload``) and Cursor's (``role`` with a ``message``). Whatever
else a line holds is passed over: what tools returned, thinking, summaries, side chains, notes of
the agent's own.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from knowledge.errors import InvalidInput, NotFound

LARGEST_READ_BYTES: Final = 16 * 1024 * 1024
LARGEST_LINE_BYTES: Final = 1024 * 1024
LARGEST_TURN_CHARS: Final = 20_000
CUT: Final = " […]"

Role = Literal["user", "assistant"]

_READ_BYTES: Final = 1024 * 1024
_TEXT_BLOCKS: Final = ("text", "input_text", "output_text")
_NOT_SPOKEN: Final = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly")
_INJECTED: Final = ("system-reminder", "environment_context", "user_instructions")
# What starts so in a user's message was written by the agent: commands, output, notifications.
_OF_THE_AGENT: Final = re.compile(
    r"<(command-name|command-message|command-args|local-command-\w+|bash-(input|stdout|stderr)"
    r"|task-notification|turn_aborted|INSTRUCTIONS|ide_\w+)>"
    r"|\[Request interrupted by user|# AGENTS\.md instructions|Caveat: The messages below"
    r"|This session is being continued from a previous conversation"
)
_MODEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}")


@dataclass(frozen=True, slots=True)
class Turn:
    """What one line says. ``start`` and ``end`` are the line's bytes in the transcript.

    A user's turn is a prompt and begins an exchange; ``time`` is ISO 8601.
    """

    role: Role
    content: str
    start: int
    end: int
    time: str | None = None
    model: str | None = None
    uuid: str | None = None


@dataclass(frozen=True, slots=True)
class Transcript:
    """The turns of the bytes that were read, in order.

    ``skipped_bytes`` were older than what is read at most, ``skipped_lines`` were broken or longer
    than `LARGEST_LINE_BYTES`.
    """

    turns: tuple[Turn, ...]
    skipped_bytes: int = 0
    skipped_lines: int = 0

    def prompts(self) -> list[Turn]:
        return [turn for turn in self.turns if turn.role == "user"]

    def older_than(self, exchanges: int) -> tuple[tuple[Turn, ...], int]:
        """The turns before the last ``exchanges`` (>= 1), and the byte where those begin.

        Nothing is older than what there is: without enough prompts, no turn and byte 0.
        """
        prompts = self.prompts()
        if len(prompts) <= exchanges:
            return (), 0
        boundary = prompts[-exchanges].start
        return tuple(turn for turn in self.turns if turn.end <= boundary), boundary


@contextmanager
def opened(path: str) -> Iterator[int]:
    """A descriptor of the transcript. Never blocks on what is not a regular file.

    Raises `NotFound` where there is none, `InvalidInput` for what cannot be a transcript.
    """
    if "\0" in path:
        raise InvalidInput("the transcript is not a .jsonl file")
    try:
        place = Path(path).expanduser()
        if not path.endswith(".jsonl"):
            place.lstat()
            raise InvalidInput("the transcript is not a .jsonl file")
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        descriptor = os.open(place, flags)
    except FileNotFoundError:
        raise NotFound("the transcript that the agent named does not exist") from None
    except (OSError, RuntimeError) as error:
        raise InvalidInput(f"the transcript cannot be opened: {_why(error)}") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InvalidInput("the transcript is not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def read_transcript(
    descriptor: int,
    *,
    start: int = 0,
    known_uuids: Collection[str] = (),
    largest_bytes: int = LARGEST_READ_BYTES,
) -> Transcript:
    """Read from ``start``, a line's beginning, but at most the last ``largest_bytes``.

    Turns up to a line whose uuid is among ``known_uuids`` are left out: they are copies.
    """
    size = os.fstat(descriptor).st_size
    begin = max(start, size - largest_bytes, 0)
    turns: list[Turn] = []
    skipped = 0
    for at, line in _lines(descriptor, begin, size):
        if at == begin > start:
            continue  # the rest of a line whose beginning was not read
        value = _parsed(line)
        if value is None:
            skipped += bool(line.strip())
            continue
        if (turn := _turn(value, at, at + len(line))) is not None:
            turns.append(turn)
        if known_uuids and value.get("uuid") in known_uuids:
            turns.clear()
    return Transcript(tuple(turns), begin - start if begin > start else 0, skipped)


def _lines(descriptor: int, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Whole lines and where they begin; a last line that is not ended yet is left out."""
    rest, at, position = b"", begin, begin
    while position < end:
        block = os.pread(descriptor, min(_READ_BYTES, end - position), position)
        if not block:
            return
        position += len(block)
        *lines, rest = (rest + block).split(b"\n") if b"\n" in block else (rest + block,)
        for line in lines:
            yield at, line + b"\n"
            at += len(line) + 1


def _parsed(line: bytes) -> dict[str, Any] | None:
    if len(line) > LARGEST_LINE_BYTES:
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _turn(line: Mapping[str, Any], start: int, end: int) -> Turn | None:
    if any(line.get(flag) is True for flag in _NOT_SPOKEN):
        return None
    message = line.get("payload") if line.get("type") == "response_item" else line.get("message")
    if not isinstance(message, dict):
        return None
    role = message.get("role") or line.get("role") or line.get("type")
    if role not in ("user", "assistant"):
        return None
    text = _spoken(message.get("content"), is_prompt=role == "user")
    if not text:
        return None
    uuid, model = line.get("uuid"), message.get("model")
    return Turn(
        role="user" if role == "user" else "assistant",
        content=text if len(text) <= LARGEST_TURN_CHARS else text[:LARGEST_TURN_CHARS] + CUT,
        start=start,
        end=end,
        time=_time(line.get("timestamp")),
        model=model if isinstance(model, str) and _MODEL.fullmatch(model) else None,
        uuid=uuid if isinstance(uuid, str) and len(uuid) <= 64 else None,
    )


def _spoken(content: Any, *, is_prompt: bool) -> str:
    """The text of a message, without what was put around it for the model alone."""
    parts = [_without_injected(text) for text in _texts(content)]
    said = [part for part in parts if part and not (is_prompt and _OF_THE_AGENT.match(part))]
    text = "\n".join(said).replace("<user_query>", "").replace("</user_query>", "").strip()
    # Half of a surrogate pair is valid in JSON and cannot be sent.
    return text.encode("utf-8", "replace").decode("utf-8")


def _texts(content: Any) -> list[str]:
    """The blocks of text; none where the message brings what a tool returned."""
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    blocks = [block for block in content if isinstance(block, dict)]
    if any(block.get("type") == "tool_result" for block in blocks):
        return []
    texts = (block.get("text") for block in blocks if block.get("type") in _TEXT_BLOCKS)
    return [text for text in texts if isinstance(text, str)]


def _without_injected(text: str) -> str:
    for tag in _INJECTED:
        opening, closing = f"<{tag}>", f"</{tag}>"
        kept, position = [], 0
        while (at := text.find(opening, position)) >= 0:
            kept.append(text[position:at])
            ended = text.find(closing, at)
            position = len(text) if ended < 0 else ended + len(closing)
        if position:
            text = "".join([*kept, text[position:]])
    return text.strip()


def _time(value: Any) -> str | None:
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment.isoformat() if moment.tzinfo else None


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
