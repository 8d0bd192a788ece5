"""Listing the files below a folder that its owner wants seen."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from knowledge.publishing.git import nul_separated, run_git
from knowledge.publishing.ignore import GITIGNORE, KNOWLEDGEIGNORE, IgnoreRules

NEVER_ENTERED: Final = frozenset({".git", ".knowledge", ".venv", "node_modules", "__pycache__"})


@dataclass(frozen=True, slots=True)
class Listing:
    """Files and symbolic links found, and folders that could not be read; in no set order."""

    files: list[Path] = field(default_factory=list)
    unreadable: list[Path] = field(default_factory=list)


def list_folder(folder: Path) -> Listing:
    """Everything below ``folder`` (absolute, resolved) that no ignore rule excludes.

    In a git working tree git is asked, so its global excludes count as well; elsewhere, and
    without git, the ``.gitignore`` files are read here. ``.knowledgeignore`` counts in both.
    Rules of the enclosing working tree apply unless they exclude ``folder`` itself: who names
    a folder wants it. Symbolic links are listed, never entered.
    """
    listing = Listing()
    names = _ask_git(folder)
    if names is None:
        _walk(folder, listing)
        return listing
    rules = _Rules(folder, KNOWLEDGEIGNORE)
    for name in names:
        path = folder / name
        if not NEVER_ENTERED.isdisjoint(PurePosixPath(name).parts) or rules.exclude(path):
            continue
        if path.is_dir() and not path.is_symlink():
            if (path / ".git").exists():  # a submodule, or a repository inside this one
                _add_repository(path, listing, [rules])
        else:
            listing.files.append(path)
    return listing


class _Rules:
    """The rules of one kind of ignore file that apply below a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._base = _working_tree(folder) or folder
        rules = IgnoreRules(self._base, name)
        if rules.excludes(PurePosixPath(folder.relative_to(self._base)), is_folder=True):
            self._base = folder
            rules = IgnoreRules(folder, name)
        self._rules = rules

    def exclude(self, path: Path, *, is_folder: bool = False) -> bool:
        relative = PurePosixPath(path.relative_to(self._base))
        return self._rules.excludes(relative, is_folder=is_folder)


def _ask_git(folder: Path) -> list[str] | None:
    """Tracked and untracked files git does not ignore; None where git has no say."""
    if _working_tree(folder) is None:
        return None
    if run_git(folder, "check-ignore", "--quiet", ".") is not None:
        return None  # the folder itself is ignored, yet it was named
    output = run_git(folder, "ls-files", "-co", "--exclude-standard", "-z")
    return None if output is None else list(dict.fromkeys(nul_separated(output)))


def _working_tree(folder: Path) -> Path | None:
    return next((at for at in (folder, *folder.parents) if (at / ".git").exists()), None)


def _walk(top: Path, listing: Listing) -> None:
    rules = [_Rules(top, GITIGNORE), _Rules(top, KNOWLEDGEIGNORE)]
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        try:
            entries = list(_entries(folder))
        except OSError:
            listing.unreadable.append(folder)
            continue
        for path, is_folder in entries:
            if any(rule.exclude(path, is_folder=is_folder) for rule in rules):
                continue
            if not is_folder:
                listing.files.append(path)
            elif (path / ".git").exists():
                _add_repository(path, listing, rules)
            else:
                waiting.append(path)


def _entries(folder: Path) -> Iterator[tuple[Path, bool]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name not in NEVER_ENTERED:
                yield folder / entry.name, entry.is_dir(follow_symlinks=False)


def _add_repository(path: Path, listing: Listing, rules: list[_Rules]) -> None:
    """Add a repository nested in what is being listed: its own rules, then the outer ones."""
    inner = list_folder(path)
    listing.unreadable.extend(inner.unreadable)
    listing.files.extend(
        file for file in inner.files if not any(rule.exclude(file) for rule in rules)
    )
