"""Names that a memory was last known to hold, to answer by while the API cannot be reached.

Kept a file a memory in the user's state folder, readable by the user alone: names and types, as
the API gave them to this credential, never facts.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from knowledge.home import write_json

MAX_NAMES: Final = 10_000


@dataclass(frozen=True, slots=True)
class Place:
    """One memory as one credential sees it. ``graph`` is its name without the tenant."""

    address: str
    credential: str
    project_id: str | None
    graph: str

    @classmethod
    def of(cls, address: str, credential: str, body: dict[str, Any]) -> Place:
        graph = str(body.get("graph") or "main").rpartition("|")[2]
        return cls(address, credential, body.get("projectId"), graph)

    @property
    def file_name(self) -> str:
        memory = _digest(self.project_id or "", self.graph)
        return f"{_digest(self.address, self.credential)}-{memory}.json"

    @property
    def file_names_of_credential(self) -> str:
        """A pattern: every memory that this credential was given names of at this address."""
        return f"{_digest(self.address, self.credential)}-*.json"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Entities with name and type, as they were known at ``known_at``."""

    entities: tuple[dict[str, Any], ...]
    known_at: str
    namespace: str | None

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Snapshot:
        """What is kept of the API's answer. Raises `KeyError` or `TypeError` for what is none."""
        entities = tuple(
            {"name": str(entity["name"]), "type": entity.get("type")}
            for entity in answer["entities"][:MAX_NAMES]
        )
        return cls(entities, str(answer["asKnownAt"]), answer.get("namespace"))

    def to_json(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace,
            "asKnownAt": self.known_at,
            "entities": list(self.entities),
        }


class KnownNames:
    """Snapshots of names, in memory and on disk, each written aside and renamed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loaded: dict[Place, Snapshot] = {}

    def keep(self, place: Place, snapshot: Snapshot) -> None:
        """Take a snapshot in the place of the last. A folder that cannot be written is done without."""
        self._loaded[place] = snapshot
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_json(self._folder / place.file_name, snapshot.to_json(), mode=0o600)

    def forget(self, place: Place) -> None:
        """Drop all that the place's credential was given: it may not ask any more."""
        self._loaded.clear()
        with contextlib.suppress(OSError):
            for path in self._folder.glob(place.file_names_of_credential):
                path.unlink()

    def find(self, place: Place) -> Snapshot | None:
        """The last known names, this process's or an earlier one's; None where there are none."""
        if place not in self._loaded:
            try:
                found = json.loads((self._folder / place.file_name).read_text())
                self._loaded[place] = Snapshot.of(found)
            except (OSError, ValueError, KeyError, TypeError):  # none, or none that is whole
                return None
        return self._loaded[place]
