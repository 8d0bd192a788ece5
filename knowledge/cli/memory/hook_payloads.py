"""What coding agents write to a hook's standard input, and what they expect on its output.

Claude Code, Codex and VS Code send ``hook_event_name`` in PascalCase and take context in
``hookSpecificOutput``; Cursor sends camelCase names and takes ``additional_context``. Codex refuses
keys it does not know, so an answer holds nothing but what its agent documents.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from knowledge.errors import InvalidInput

LARGEST_BYTES: Final = 4_000_000
EMPTY: Final = "{}"
"""An answer that says nothing, valid for every agent and event."""

_CHUNK_BYTES: Final = 65_536
_NAME: Final = re.compile(r"[A-Za-z0-9._:@-]{1,128}")
_EVENTS: Final = {
    "sessionstart": "SessionStart",
    "userpromptsubmit": "UserPromptSubmit",
    "beforesubmitprompt": "UserPromptSubmit",
    "precompact": "PreCompact",
    "precompress": "PreCompact",
    "sessionend": "SessionEnd",
    "stop": "Stop",
}


@dataclass(frozen=True, slots=True)
class HookPayload:
    """One call of a hook, in Claude Code's words whichever agent made it.

    ``event`` is one of SessionStart, UserPromptSubmit, PreCompact, SessionEnd and Stop; ``source``
    is why a session starts or what set off a compaction; text that was not sent is None.
    """

    event: str
    client: str
    session_id: str | None = None
    transcript_path: str | None = None
    cwd: str | None = None
    source: str | None = None
    prompt: str | None = None


def read_payload(descriptor: int) -> dict[str, Any]:
    """The JSON object on a descriptor, read until it is whole: not every agent closes the pipe.

    Raises `InvalidInput` for anything else, and for more than `LARGEST_BYTES`.
    """
    received = bytearray()
    while chunk := os.read(descriptor, _CHUNK_BYTES):
        received += chunk
        if len(received) > LARGEST_BYTES:
            raise InvalidInput(f"standard input holds more than {LARGEST_BYTES} bytes")
        if chunk.rstrip().endswith(b"}") and (value := _object(received)) is not None:
            return value
    if (value := _object(received)) is not None:
        return value
    raise InvalidInput("standard input holds no JSON object of a hook")


def _object(content: bytearray) -> dict[str, Any] | None:
    try:
        value = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def parse_payload(value: Mapping[str, Any], client: str | None) -> HookPayload:
    """``client`` overrides what the payload's shape says about who sent it.

    Raises `InvalidInput` for an event no hook of memory is for.
    """
    named = _text(value, "hook_event_name", "hookEventName") or ""
    event = _EVENTS.get(named.replace("_", "").lower())
    if event is None:
        known = "SessionStart, UserPromptSubmit, PreCompact, SessionEnd or Stop"
        raise InvalidInput(f"standard input holds no event of a hook: it must be {known}")
    path = _text(value, "transcript_path", "transcriptPath")
    session = _text(value, "session_id", "sessionId", "conversation_id")
    return HookPayload(
        event=event,
        client=client or _client(value, named, path),
        session_id=session if session and _NAME.fullmatch(session) else None,
        transcript_path=path,
        cwd=_text(value, "cwd") or _first_root(value),
        source=_word(_text(value, "source", "trigger", "reason")),
        prompt=_text(value, "prompt"),
    )


def context_answer(payload: HookPayload, context: str) -> str:
    """The document that puts ``context`` before the agent; an empty one says nothing."""
    if payload.event not in ("SessionStart", "UserPromptSubmit"):
        return EMPTY
    if payload.client != "cursor":
        shown = {"hookEventName": payload.event, "additionalContext": context}
        return json.dumps({"hookSpecificOutput": shown})
    if takes_context(payload):
        return json.dumps({"additional_context": context}) if context else EMPTY
    return json.dumps({"continue": True})


def takes_context(payload: HookPayload) -> bool:
    """Whether the agent reads context from this event: Cursor takes none with a prompt."""
    if payload.client == "cursor":
        return payload.event == "SessionStart"
    return payload.event in ("SessionStart", "UserPromptSubmit")


def _client(value: Mapping[str, Any], event: str, path: str | None) -> str:
    if "cursor_version" in value or "conversation_id" in value or event[:1].islower():
        return "cursor"
    if "turn_id" in value or _is_codex_path(path) or "codex" in (_text(value, "model") or ""):
        return "codex"
    if "timestamp" in value:
        return "vscode"
    # Claude Code always names its transcript; Codex has none yet when a session starts.
    has_no_transcript = "transcript_path" in value and value["transcript_path"] is None
    return "codex" if has_no_transcript else "claude-code"


def _is_codex_path(path: str | None) -> bool:
    if path is None:
        return False
    place = PurePath(path)
    return place.name.startswith("rollout-") or ".codex" in place.parts


def _first_root(value: Mapping[str, Any]) -> str | None:
    roots = value.get("workspace_roots")
    return roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) else None


def _text(value: Mapping[str, Any], *names: str) -> str | None:
    for name in names:
        found = value.get(name)
        if isinstance(found, str) and found:
            return found
    return None


def _word(text: str | None) -> str | None:
    return text if text and _NAME.fullmatch(text) else None
