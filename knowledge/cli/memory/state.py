"""The folder in which the hooks keep their status, markers and, if told to, a spool."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from knowledge.home import user_state_folder

_PRIVATE_FOLDER: Final = 0o700
_PRIVATE_FILE: Final = 0o600
_LARGEST_BYTES: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class StateFolder:
    """Paths only; `prepare` makes the folders, readable by their owner alone."""

    root: Path

    @classmethod
    def locate(cls, environ: Mapping[str, str]) -> StateFolder:
        """See `user_state_folder`."""
        return cls(user_state_folder(environ))

    @property
    def markers_dir(self) -> Path:
        return self.root / "offloaded"

    @property
    def spool_dir(self) -> Path:
        return self.root / "spool"

    def status_file(self, verb: str) -> Path:
        """One file a verb, so that two hooks at once need no lock."""
        return self.root / f"last-{verb}.json"

    def prepare(self) -> None:
        """Raises `OSError` where the folders cannot be made."""
        for folder in (self.root, self.markers_dir, self.spool_dir):
            folder.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)


def write_private(path: Path, value: object) -> int:
    """Write JSON aside and rename it, mode 0600: no reader ever sees half a file. Returns bytes.

    Not flushed to the disk: a hook has no time for it, and what is lost is told anew.
    """
    content = json.dumps(value).encode()
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE_FILE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    return len(content)


def read_json(path: Path, *, largest_bytes: int = _LARGEST_BYTES) -> dict[str, Any] | None:
    """The object in a file; None where there is no such file or it holds something else."""
    try:
        with path.open("rb") as file:
            value = json.loads(file.read(largest_bytes))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


@contextmanager
def alone(path: Path) -> Iterator[bool]:
    """Whether nobody else holds ``path`` for the length of the block; never waits."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE_FILE)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)
