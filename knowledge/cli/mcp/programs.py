"""Agents' programs: where each keeps its MCP servers, and how it writes one of ours.

No file ever holds a key: each refers to the variable KNOWLEDGE_API_KEY in its program's own way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

VARIABLE: Final = "KNOWLEDGE_API_KEY"
NAME: Final = "knowledge"

Scope = Literal["project", "user"]
Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Launch:
    """How the server is reached: at ``url`` over HTTP, or else by starting ``command``."""

    url: str | None
    command: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Program:
    """One agent's program. ``files`` by scope, the default one first; paths begin at the project's
    folder, or with ``~``. ``section`` holds the servers by name."""

    files: Mapping[Scope, str]
    section: str
    entry: Callable[[Launch], Entry]

    @property
    def default_scope(self) -> Scope:
        return next(iter(self.files))

    def path(self, scope: Scope, folder: Path) -> Path:
        found = Path(self.files[scope]).expanduser()
        return found if found.is_absolute() else folder / found


def _json_entry(reference: str, *, typed: bool) -> Callable[[Launch], Entry]:
    """Entries as most programs write them, with ``reference`` for the key's variable."""

    def entry(launch: Launch) -> Entry:
        if launch.url is not None:
            kind: Entry = {"type": "http"} if typed else {}
            return {
                **kind,
                "url": launch.url,
                "headers": {"Authorization": f"Bearer {reference}"},
            }
        kind = {"type": "stdio"} if typed else {}
        return {
            **kind,
            "command": launch.command,
            "args": list(launch.arguments),
            "env": {**launch.environment, VARIABLE: reference},
        }

    return entry


def _codex_entry(launch: Launch) -> Entry:
    if launch.url is not None:
        return {"url": launch.url, "bearer_token_env_var": VARIABLE}
    made: Entry = {
        "command": launch.command,
        "args": list(launch.arguments),
        "env_vars": [VARIABLE],
    }
    return {**made, "env": dict(launch.environment)} if launch.environment else made


PROGRAMS: Final[Mapping[str, Program]] = {
    "claude-code": Program(
        {"project": ".mcp.json", "user": "~/.claude.json"},
        "mcpServers",
        # An empty variable leaves the server there, which then says what is missing; a missing one
        # without a default would drop it.
        _json_entry("${KNOWLEDGE_API_KEY:-}", typed=True),
    ),
    "cursor": Program(
        {"user": "~/.cursor/mcp.json", "project": ".cursor/mcp.json"},
        "mcpServers",
        _json_entry("${env:KNOWLEDGE_API_KEY}", typed=False),
    ),
    "codex": Program(
        {"user": "~/.codex/config.toml", "project": ".codex/config.toml"},
        "mcp_servers",
        _codex_entry,
    ),
    "vscode": Program(
        {"project": ".vscode/mcp.json"},
        "servers",
        _json_entry("${env:KNOWLEDGE_API_KEY}", typed=True),
    ),
}


def default_scopes() -> str:
    """For people: which program has which scope unless another is chosen."""
    scopes: dict[Scope, list[str]] = {}
    for name, program in PROGRAMS.items():
        scopes.setdefault(program.default_scope, []).append(name)
    return "; ".join(f"{', '.join(names)}: {scope}" for scope, names in scopes.items())
