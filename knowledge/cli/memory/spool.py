"""Turns that wait for the service to come back: only where a person asked for it.

One private file a request; at most `LARGEST_BYTES` in all and `LONGEST_S` old. What is dropped is
read from its transcript again, for the marker has not moved.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from knowledge.cli.memory.markers import Marker
from knowledge.cli.memory.state import read_json, write_private

LARGEST_BYTES: Final = 5_000_000
LONGEST_S: Final = 7 * 24 * 3600.0
_LARGEST_ENTRY_BYTES: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class SpoolSize:
    """What waits; ``oldest_at`` is ISO 8601 in UTC, None when nothing waits."""

    files: int
    size_bytes: int
    oldest_at: str | None

    def wire(self) -> dict[str, Any]:
        return {"files": self.files, "bytes": self.size_bytes, "oldestAt": self.oldest_at}


@dataclass(frozen=True, slots=True)
class SpooledRequest:
    """A request that was not sent: to which service, with which key's digest, and its marker.

    It is sent only to the same address with the same key: another key may be another tenant's.
    """

    destination: str
    transcript: str
    start: int
    marker: Marker
    body: dict[str, Any]

    def wire(self) -> dict[str, Any]:
        return {
            "version": 1,
            "destination": self.destination,
            "transcript": self.transcript,
            "start": self.start,
            "marker": self.marker.wire(),
            "body": self.body,
        }

    @classmethod
    def parse(cls, value: dict[str, Any]) -> SpooledRequest | None:
        marker = Marker.parse(value.get("marker"))
        destination, transcript = value.get("destination"), value.get("transcript")
        start, body = value.get("start"), value.get("body")
        if (
            marker is None
            or not isinstance(destination, str)
            or not isinstance(transcript, str)
            or not isinstance(start, int)
            or not isinstance(body, dict)
        ):
            return None
        return cls(destination, transcript, start, marker, body)


class Spool:
    """The requests in one folder, oldest first. An unreadable folder is an empty spool."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def lock_file(self) -> Path:
        """Held while the spool is sent, so that nothing is sent twice."""
        return self._folder / ".lock"

    def add(self, request: SpooledRequest) -> bool:
        """Keep a request; False when there is no room. Raises `OSError`."""
        value = request.wire()
        used = sum(size for _, size, _ in self._files())
        if used + len(json.dumps(value)) > LARGEST_BYTES:
            return False
        write_private(self._folder / f"{time.time_ns():020}.json", value)
        return True

    def waiting(self) -> Iterator[tuple[Path, SpooledRequest]]:
        """What waits; files that are too old or hold something else are removed on the way."""
        for path, _, modified_at in self._files():
            value = read_json(path, largest_bytes=_LARGEST_ENTRY_BYTES)
            request = SpooledRequest.parse(value) if value else None
            if request is None or time.time() - modified_at > LONGEST_S:
                path.unlink(missing_ok=True)
            else:
                yield path, request

    def size(self) -> SpoolSize:
        files = self._files()
        oldest = min((modified_at for _, _, modified_at in files), default=None)
        return SpoolSize(
            len(files),
            sum(size for _, size, _ in files),
            None
            if oldest is None
            else datetime.fromtimestamp(oldest, UTC).isoformat(timespec="seconds"),
        )

    def _files(self) -> list[tuple[Path, int, float]]:
        """Path, size in bytes and time of writing of every request, oldest first."""
        found = []
        try:
            for path in sorted(self._folder.glob("[0-9]*.json")):
                stat = path.stat()
                found.append((path, stat.st_size, stat.st_mtime))
        except OSError:
            return found
        return found
