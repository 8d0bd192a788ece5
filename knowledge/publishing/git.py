"""Asking git about a working tree, without trusting what the tree configures."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_TIMEOUT_S = 120.0


def run_git(folder: Path, *arguments: str) -> bytes | None:
    """Standard output of ``git ARGUMENTS`` in ``folder``; None when git is absent or fails.

    Neither the caller's GIT_* variables nor a file-system monitor named by the repository
    take effect, and nothing is written to the repository.
    """
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", *arguments],
            cwd=folder,
            env={**environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def nul_separated(output: bytes | None) -> list[str]:
    """File names of a ``-z`` listing, in git's order; empty when git failed."""
    return [os.fsdecode(name) for name in (output or b"").split(b"\0") if name]
