"""The files that a publish covers."""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Final

from knowledge.errors import InvalidInput, NothingToPublish
from knowledge.publishing.cleaning import clean_text
from knowledge.publishing.walking import NEVER_ENTERED, list_folder
from knowledge.settings import PublishingSettings

# fmt: off
_BINARY_SUFFIXES: Final = frozenset({
    ".7z", ".a", ".avi", ".bin", ".bmp", ".bz2", ".class", ".dll", ".dmg", ".doc", ".docx",
    ".dylib", ".ear", ".eot", ".exe", ".flac", ".gif", ".gz", ".ico", ".iso", ".jar", ".jpeg",
    ".jpg", ".lib", ".mov", ".mp3", ".mp4", ".npy", ".npz", ".o", ".obj", ".odt", ".onnx",
    ".otf", ".parquet", ".pdf", ".png", ".ppt", ".pptx", ".pyc", ".pyd", ".rar", ".safetensors",
    ".so", ".sqlite", ".tar", ".tgz", ".tif", ".tiff", ".ttf", ".war", ".wasm", ".wav", ".webm",
    ".webp", ".whl", ".woff", ".woff2", ".xls", ".xlsx", ".xz", ".zip", ".zst",
})
# fmt: on
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_EXAMPLES: Final = 3


class SkipReason(StrEnum):
    """Why a file that was found is not published."""

    BINARY = "binary"
    NOT_UTF8 = "not UTF-8"
    TOO_LARGE = "too large"
    EMPTY = "empty"
    UNREADABLE = "unreadable"
    LINK = "link outside the root or to a folder"
    SPECIAL = "not a regular file"
    NAME = "name with control characters or not UTF-8"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of text. ``path`` is relative to the root, ``digest`` the SHA-256 of its bytes."""

    path: str
    absolute: Path
    size_bytes: int
    digest: bytes

    def read_text(self) -> str:
        r"""The text, ``\n`` line ends, without a byte order mark or control characters.

        Raises `InvalidInput` when the file is not what it was when it was collected.
        """
        try:
            content = self.absolute.read_bytes()
        except OSError as error:
            raise InvalidInput(f"{self.path} cannot be read any more: {error.strerror}") from error
        if hashlib.sha256(content).digest() != self.digest:
            raise InvalidInput(f"{self.path} changed while it was being published: publish again")
        return clean_text(content.decode("utf-8-sig"))


@dataclass(frozen=True, slots=True)
class FileSet:
    """What was found: files in order of path; counts of what was skipped, up to 3 examples."""

    root: Path
    files: tuple[SourceFile, ...]
    skipped: Mapping[str, int]
    skipped_examples: Mapping[str, tuple[str, ...]]

    @property
    def digests(self) -> dict[str, bytes]:
        """Path to SHA-256, in order of path."""
        return {file.path: file.digest for file in self.files}

    def describe_skipped(self) -> str:
        """One line, e.g. ``2 binary (a.png, b.png), 1 empty (c.txt)``; empty without any."""
        return ", ".join(
            f"{count} {reason} ({_examples(self.skipped_examples[reason], count)})"
            for reason, count in self.skipped.items()
        )


def collect(paths: Sequence[Path], *, root: Path | None, settings: PublishingSettings) -> FileSet:
    """The files below ``paths``: folders, files, git working trees.

    Paths are relative to the one folder, else to the parent folder the PATHs have in common
    (so one file has its name), else to ``root`` when given. Ignore files are honoured below
    folders; a file that is named is not asked about. A symbolic link to a file within the
    root is read, any other is counted as skipped.

    Raises `InvalidInput` for a PATH that does not exist or lies outside ``root``, and
    `NothingToPublish` when no file is left, saying what was skipped.
    """
    resolved = [_resolve(path) for path in paths]
    if not resolved:
        raise InvalidInput("name at least one PATH to publish")
    base = _root(resolved, root)
    found: set[Path] = set()
    skipped = _Skipped()
    for path in resolved:
        if not path.is_dir():
            found.add(path)
            continue
        listing = list_folder(path)
        found.update(listing.files)
        for folder in listing.unreadable:
            skipped.add(SkipReason.UNREADABLE, _relative(folder, base))
    files = []
    for name, absolute in sorted((_relative(file, base), file) for file in found):
        outcome = _inspect(name, absolute, base, settings.max_file_bytes)
        if isinstance(outcome, SourceFile):
            files.append(outcome)
        elif outcome is not None:
            skipped.add(outcome, name)
    file_set = FileSet(base, tuple(files), skipped.counts(), skipped.examples())
    if not files:
        names = ", ".join(str(path) for path in paths[:_EXAMPLES])
        why = file_set.describe_skipped()
        raise NothingToPublish(
            f"nothing to publish in {names}: "
            + (f"skipped {why}" if why else "no file that is not ignored"),
            skipped=file_set.skipped,
        )
    return file_set


class _Skipped:
    def __init__(self) -> None:
        self._paths: dict[SkipReason, list[str]] = {}

    def add(self, reason: SkipReason, path: str) -> None:
        self._paths.setdefault(reason, []).append(path)

    def counts(self) -> dict[str, int]:
        return {str(reason): len(self._paths[reason]) for reason in sorted(self._paths)}

    def examples(self) -> dict[str, tuple[str, ...]]:
        return {
            str(reason): tuple(_printable(path) for path in sorted(self._paths[reason])[:_EXAMPLES])
            for reason in sorted(self._paths)
        }


def _resolve(path: Path) -> Path:
    try:
        return path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise InvalidInput(f"{path} does not exist or cannot be reached", path=str(path)) from error


def _root(paths: Sequence[Path], root: Path | None) -> Path:
    if root is None:
        return Path(os.path.commonpath([p if p.is_dir() else p.parent for p in paths]))
    root = _resolve(root)
    for path in paths:
        if not path.is_relative_to(root):
            raise InvalidInput(f"{path} lies outside the root {root}", path=str(path))
    return root


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def _inspect(
    path: str, absolute: Path, root: Path, max_bytes: int
) -> SourceFile | SkipReason | None:
    """The file, or why it is skipped; None when it is gone (a tracked file that was deleted)."""
    try:
        status = absolute.lstat()
        if stat.S_ISLNK(status.st_mode):
            if not _leads_inside(absolute, root):
                return SkipReason.LINK
            status = absolute.stat()
        reason = _reason_by_status(path, status, max_bytes)
        if reason is not None:
            return reason
        with absolute.open("rb") as file:
            content = file.read(max_bytes + 1)
    except FileNotFoundError:
        return None
    except OSError:
        return SkipReason.UNREADABLE
    reason = _reason_by_content(content, max_bytes)
    if reason is not None:
        return reason
    return SourceFile(path, absolute, len(content), hashlib.sha256(content).digest())


def _leads_inside(link: Path, root: Path) -> bool:
    """Whether a link leads to a file within the root that could be published itself."""
    target = Path(os.path.realpath(link))
    if not target.is_file() or not target.is_relative_to(root):
        return False
    return NEVER_ENTERED.isdisjoint(target.relative_to(root).parts)


def _reason_by_status(path: str, status: os.stat_result, max_bytes: int) -> SkipReason | None:
    if not stat.S_ISREG(status.st_mode):
        return SkipReason.SPECIAL
    if _CONTROL.search(path) or _printable(path) != path:
        return SkipReason.NAME
    if PurePosixPath(path).suffix.lower() in _BINARY_SUFFIXES:
        return SkipReason.BINARY
    if status.st_size > max_bytes:
        return SkipReason.TOO_LARGE
    return None


def _reason_by_content(content: bytes, max_bytes: int) -> SkipReason | None:
    if len(content) > max_bytes:
        return SkipReason.TOO_LARGE
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return SkipReason.NOT_UTF8
    if b"\0" in content:
        return SkipReason.BINARY
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return SkipReason.NOT_UTF8
    return None if clean_text(text).strip() else SkipReason.EMPTY


def _printable(path: str) -> str:
    """The path without bytes that are no UTF-8 and without control characters."""
    return _CONTROL.sub("?", path.encode("utf-8", "replace").decode())


def _examples(paths: Iterable[str], count: int) -> str:
    shown = list(paths)
    return ", ".join(shown) + (", …" if count > len(shown) else "")
