"""``run/stack.json``: what the supervisor has started, for whoever comes next."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from knowledge.home import Home, write_json
from knowledge.stack.process import ProcessId

State = Literal["starting", "running", "stopping"]


@dataclass(frozen=True, slots=True)
class StackRecord:
    """The supervisor, the ports it chose, and the process of each part it started."""

    supervisor: ProcessId
    state: State
    api_port: int
    dagster_port: int
    parts: dict[str, ProcessId] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "supervisor": self.supervisor.to_json(),
            "state": self.state,
            "apiPort": self.api_port,
            "dagsterPort": self.dagster_port,
            "parts": {name: process.to_json() for name, process in self.parts.items()},
        }


def write_record(home: Home, record: StackRecord) -> None:
    write_json(_path(home), record.to_json())


def read_record(home: Home) -> StackRecord | None:
    """The record of the last start, whether it still runs or not; None when there is none."""
    try:
        value: dict[str, Any] = json.loads(_path(home).read_text())
    except FileNotFoundError:
        return None
    return StackRecord(
        supervisor=ProcessId.from_json(value["supervisor"]),
        state=value["state"],
        api_port=value["apiPort"],
        dagster_port=value["dagsterPort"],
        parts={name: ProcessId.from_json(entry) for name, entry in value["parts"].items()},
    )


def api_address(home: Home, host: str = "127.0.0.1") -> str | None:
    """The base URL of the API of a home whose stack runs; None where none does.

    A port alone could be another program's by now, which must not be sent a key.
    """
    record = read_record(home)
    if record is None or record.api_port == 0 or running_supervisor(home) is None:
        return None
    return f"http://{host}:{record.api_port}"


def remove_record(home: Home) -> None:
    _path(home).unlink(missing_ok=True)


@contextmanager
def only_supervisor(home: Home) -> Iterator[bool]:
    """Be the home's one supervisor for the length of the block; False when another one is."""
    with _lock(home).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            file.truncate(0)
            json.dump(ProcessId.of_self().to_json(), file)
            file.flush()
            yield True


def running_supervisor(home: Home) -> ProcessId | None:
    """The supervisor that holds the home's lock; None when nobody does."""
    if not _lock(home).exists():
        return None
    with _lock(home).open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            text = file.read()
            return ProcessId.from_json(json.loads(text)) if text else None
    return None


def _lock(home: Home) -> Path:
    return home.run_dir / "supervisor.lock"


def _path(home: Home) -> Path:
    return home.run_dir / "stack.json"
