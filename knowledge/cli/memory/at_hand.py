"""What is at hand when a session starts: the words a recall asks with."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

from knowledge.cli.memory.hook_payloads import HookPayload
from knowledge.cli.memory.transcripts import opened, read_transcript
from knowledge.errors import KnowledgeError

LARGEST_QUERY_CHARS: Final = 1000
_PROMPTS: Final = 3
_LARGEST_PROMPT_CHARS: Final = 250
_TAIL_BYTES: Final = 2 * 1024 * 1024
_COMMITS: Final = 5
_GIT_S: Final = 0.5
# A repository's own settings must not run programs: neither a monitor nor a check of signatures.
_GIT: Final = ("git", "--no-pager", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false")


def query_of(payload: HookPayload, *, with_git: bool) -> str:
    """At most `LARGEST_QUERY_CHARS` characters; empty when nothing is known of where the agent is.

    A prompt is its own query. A session asks with the last prompts of what it goes on with, the
    project's folder and, ``with_git``, its branch and last commit subjects.
    """
    if payload.event == "UserPromptSubmit":
        return _words(payload.prompt or "", LARGEST_QUERY_CHARS)
    parts: list[str] = []
    if payload.source in ("resume", "compact") and payload.transcript_path:
        parts += last_prompts(payload.transcript_path)
    parts += project_words(Path(payload.cwd), with_git=with_git) if payload.cwd else []
    return _words("\n".join(part for part in parts if part), LARGEST_QUERY_CHARS)


def last_prompts(transcript_path: str) -> list[str]:
    """The last three prompts of a transcript's last 2 MiB, newest first; none if unreadable."""
    try:
        with opened(transcript_path) as descriptor:
            transcript = read_transcript(descriptor, largest_bytes=_TAIL_BYTES)
    except (KnowledgeError, OSError):
        return []
    prompts = reversed(transcript.prompts()[-_PROMPTS:])
    return [_words(prompt.content, _LARGEST_PROMPT_CHARS) for prompt in prompts]


def project_words(folder: Path, *, with_git: bool) -> list[str]:
    """The project's name, its branch and the subjects of its last five commits."""
    if not folder.is_dir():
        return [folder.name]
    asked = (
        ("rev-parse", "--show-toplevel", "--abbrev-ref", "HEAD"),
        ("log", f"-{_COMMITS}", "--format=%s"),
    )
    place, subjects = _git_lines(folder, *asked) if with_git else ([], [])
    root = Path(place[0]) if place else folder
    name = "" if root == Path(os.environ.get("HOME", "/")) else root.name
    branch = [branch for branch in place[1:2] if branch != "HEAD"]
    return [name, *branch, *subjects[:_COMMITS]]


def _git_lines(folder: Path, *commands: tuple[str, ...]) -> list[list[str]]:
    """What each command prints, all run at once; nothing for one that fails or is slow."""
    environ = {
        **os.environ,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
    }
    try:
        running = [
            subprocess.Popen(
                [*_GIT, *command],
                cwd=folder,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            for command in commands
        ]
    except OSError:
        return [[] for _ in commands]
    return [_lines_of(process) for process in running]


def _lines_of(process: subprocess.Popen[bytes]) -> list[str]:
    try:
        printed, _ = process.communicate(timeout=_GIT_S)
    except subprocess.TimeoutExpired:
        process.kill()  # and not waited for: what it started may hold the pipe open
        return []
    return printed.decode("utf-8", "replace").splitlines()


def _words(text: str, largest_chars: int) -> str:
    """One line of words, cut; half a surrogate pair cannot be sent."""
    line = " ".join(text[: largest_chars * 4].split())[:largest_chars]
    return line.encode("utf-8", "replace").decode("utf-8")
