"""How far each transcript has been offloaded: what was accepted once is never sent again."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from knowledge.cli.memory.state import read_json, write_private

_DIGEST_BYTES: Final = 256
_KEPT: Final = 500
_KEPT_S: Final = 60 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Marker:
    """Everything before ``offset`` (bytes) was accepted.

    ``digest`` is of the last bytes before the offset and tells a transcript that was written anew;
    ``uuid``, of the last turn, finds the place in a copy of the transcript.
    """

    offset: int
    digest: str
    uuid: str | None

    @classmethod
    def at(cls, descriptor: int, offset: int, uuid: str | None) -> Marker:
        return cls(offset, _digest(descriptor, offset), uuid)

    @classmethod
    def parse(cls, value: Any) -> Marker | None:
        if not isinstance(value, dict):
            return None
        offset, digest, uuid = value.get("offset"), value.get("digest"), value.get("uuid")
        if not isinstance(offset, int) or not isinstance(digest, str):
            return None
        return cls(offset, digest, uuid if isinstance(uuid, str) else None)

    def fits(self, descriptor: int) -> bool:
        """Whether the open transcript is the one the marker was made for."""
        return self.offset >= 0 and _digest(descriptor, self.offset) == self.digest

    def wire(self) -> dict[str, Any]:
        return {"offset": self.offset, "digest": self.digest, "uuid": self.uuid}


def transcript_key(path: str) -> str:
    """A file name for a transcript's marker, 32 hex digits; for a path that could be opened."""
    place = os.fsencode(Path(path).expanduser().resolve())
    return hashlib.sha256(place).hexdigest()[:32]


class Markers:
    """The markers in one folder, one file a transcript."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def lock_file(self, transcript: str) -> Path:
        return self._folder / f"{transcript}.lock"

    def get(self, transcript: str) -> Marker | None:
        return Marker.parse(read_json(self._file(transcript)))

    def advance(self, transcript: str, marker: Marker) -> None:
        """Move a marker, from wherever it was. Raises `OSError`."""
        write_private(self._file(transcript), marker.wire())

    def uuids(self) -> frozenset[str]:
        """The last turns of all transcripts that were offloaded lately."""
        markers = (Marker.parse(read_json(path)) for path in self._files())
        return frozenset(marker.uuid for marker in markers if marker and marker.uuid)

    def forget_old(self) -> None:
        """Keep the newest 500 markers, and nothing of what is older than 60 days."""
        for path in self._files()[_KEPT:]:
            path.unlink(missing_ok=True)
        oldest = time.time() - _KEPT_S
        for path in self._folder.glob("[0-9a-f]*"):
            if path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)

    def _file(self, transcript: str) -> Path:
        return self._folder / f"{transcript}.json"

    def _files(self) -> list[Path]:
        """Newest first."""
        found = [(path.stat().st_mtime, path) for path in self._folder.glob("[0-9a-f]*.json")]
        return [path for _, path in sorted(found, reverse=True)]


def _digest(descriptor: int, offset: int) -> str:
    start = max(0, offset - _DIGEST_BYTES)
    return hashlib.sha256(os.pread(descriptor, offset - start, start)).hexdigest()[:32]
