"""What a benchmark found, kept as JSON so that one part can be measured without the others."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from benchmarks.machine import Machine, this_machine

ROOT: Final = Path(__file__).parents[1]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Bar(_Value):
    """A budget, what was measured, and whether it is kept."""

    what: str
    bar: str
    figure: str
    is_met: bool


class Table(_Value):
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Provenance(_Value):
    measured_at: datetime
    commit: str
    command: str
    machine: Machine


class Section(_Value):
    """One topic measured on one backend. ``data`` are the bare numbers behind the tables."""

    name: str
    backend: str
    title: str
    bars: tuple[Bar, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    data: dict[str, Any] = Field(default_factory=dict)
    provenance: Provenance = Field(default_factory=lambda: _provenance())


def write_section(folder: Path, section: Section) -> None:
    """Put it in the place of the last measurement of this topic and backend."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{section.name}-{section.backend}.json"
    path.write_text(section.model_dump_json(indent=1) + "\n")


def read_sections(folder: Path) -> list[Section]:
    """Everything measured so far, whenever that was."""
    return [Section.model_validate_json(path.read_text()) for path in sorted(folder.glob("*.json"))]


def _provenance() -> Provenance:
    # Folders of this machine say nothing to a reader.
    shown = shlex.join(re.sub(r"/\S*/", "", word) for word in sys.argv[1:])
    return Provenance(
        measured_at=datetime.now(UTC).replace(microsecond=0),
        commit=_commit(),
        command=f"python -m benchmarks {shown}",
        machine=this_machine(),
    )


def _commit() -> str:
    """The commit that is checked out, with ``+`` where files differ from it."""
    commit = _git("rev-parse", "--short=12", "HEAD") or "unknown"
    changed = _git("status", "--porcelain", "--", ".", ":!benchmarks")
    return f"{commit}+" if changed else commit


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""
