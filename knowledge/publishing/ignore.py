"""Ignore files (``.gitignore``, ``.knowledgeignore``) at any level, as git reads them."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Final

from pathspec import GitIgnoreSpec

KNOWLEDGEIGNORE: Final = ".knowledgeignore"
GITIGNORE: Final = ".gitignore"


class IgnoreRules:
    """The rules of every ignore file called ``name`` below ``base``.

    A deeper file overrides a shallower one, a later line an earlier one; below an excluded
    folder nothing is included again.
    """

    def __init__(self, base: Path, name: str) -> None:
        self._base = base
        self._name = name
        self._specs: dict[PurePosixPath, GitIgnoreSpec | None] = {}
        self._excluded: dict[PurePosixPath, bool] = {PurePosixPath(): False}

    def excludes(self, path: PurePosixPath, *, is_folder: bool = False) -> bool:
        """Whether the rules exclude ``path``, which is relative to the base."""
        if is_folder:
            return self._excludes_folder(path)
        return self._excludes_folder(path.parent) or self._matches(path, "")

    def _excludes_folder(self, folder: PurePosixPath) -> bool:
        excluded = self._excluded.get(folder)
        if excluded is None:
            excluded = self._excludes_folder(folder.parent) or self._matches(folder, "/")
            self._excluded[folder] = excluded
        return excluded

    def _matches(self, path: PurePosixPath, suffix: str) -> bool:
        for folder in path.parents:
            spec = self._spec(folder)
            if spec is None:
                continue
            included = spec.check_file(f"{path.relative_to(folder)}{suffix}").include
            if included is not None:
                return included
        return False

    def _spec(self, folder: PurePosixPath) -> GitIgnoreSpec | None:
        if folder not in self._specs:
            self._specs[folder] = _read(self._base / folder / self._name)
        return self._specs[folder]


def _read(file: Path) -> GitIgnoreSpec | None:
    try:
        lines = file.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    except OSError:
        return None
    return GitIgnoreSpec.from_lines(line for line in lines if _is_pattern(line))


def _is_pattern(line: str) -> bool:
    """Whether git would take the line as a pattern; it passes over those that are not."""
    try:
        GitIgnoreSpec.from_lines([line])
    except (ValueError, re.error):
        return False
    return True
