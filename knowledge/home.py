"""KNOWLEDGE_HOME: where one installation keeps its state, and the version of that layout.

Layout (version 1)::

    home.json        version of the layout, id of the installation
    secrets.json     signing key and database passwords, mode 0600
    knowledge.toml   configuration, optional
    postgres/        data directory of the embedded PostgreSQL
    weaviate/        data directory of the embedded Weaviate
    dagster/         the Dagster instance (dagster.yaml)
    snapshots/       published snapshots, one folder a tenant
    vectors/         embedding cache, one folder a tenant and profile
    run/             addresses of running servers, locks, process ids
    logs/            one file a part
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from knowledge.errors import VersionMismatch

LAYOUT_VERSION: Final = 1
DEFAULT_HOME: Final = ".knowledge"


@dataclass(frozen=True, slots=True)
class Home:
    """One installation's folder. Paths only: opening or starting anything happens elsewhere."""

    root: Path

    @classmethod
    def locate(cls, root: str | os.PathLike[str] | None = None) -> Home:
        """``root``, else the variable KNOWLEDGE_HOME, else ``.knowledge`` of this folder."""
        return cls(Path(root or os.environ.get("KNOWLEDGE_HOME") or DEFAULT_HOME).resolve())

    # folders and files, in the order of the module docstring

    @property
    def config_file(self) -> Path:
        return self.root / "knowledge.toml"

    @property
    def postgres_dir(self) -> Path:
        return self.root / "postgres"

    @property
    def weaviate_dir(self) -> Path:
        return self.root / "weaviate"

    @property
    def dagster_dir(self) -> Path:
        return self.root / "dagster"

    @property
    def snapshots_dir(self) -> Path:
        return self.root / "snapshots"

    @property
    def vectors_dir(self) -> Path:
        return self.root / "vectors"

    @property
    def run_dir(self) -> Path:
        return self.root / "run"

    @property
    def logs_dir(self) -> Path:
        return self.root / "logs"

    # state of the home itself

    def exists(self) -> bool:
        return (self.root / "home.json").is_file()

    def prepare(self) -> None:
        """Create the home on first use, its folders readable by their owner alone.

        Raises `VersionMismatch` when the layout is newer than this program.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        for folder in (
            self.snapshots_dir,
            self.vectors_dir,
            self.run_dir,
            self.logs_dir,
            self.dagster_dir,
        ):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o700)
        with (self.run_dir / "prepare.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two first commands must agree on the secrets
            if not self.exists():
                write_json(
                    self.root / "home.json",
                    {"layoutVersion": LAYOUT_VERSION, "installationId": uuid.uuid4().hex},
                )
            self.require_version()
            if not (self.root / "secrets.json").exists():
                write_json(
                    self.root / "secrets.json",
                    {"signingKey": secrets.token_hex(32), "databaseKey": secrets.token_hex(32)},
                    mode=0o600,
                )

    def require_version(self) -> None:
        found = self._read("home.json").get("layoutVersion")
        if found != LAYOUT_VERSION:
            newer = isinstance(found, int) and found > LAYOUT_VERSION
            raise VersionMismatch(
                f"{self.root} has layout version {found}, this program works with "
                f"{LAYOUT_VERSION}: "
                + ("use a newer program" if newer else "run `knowledge migrate`"),
                found=found,
                expected=LAYOUT_VERSION,
            )

    @property
    def installation_id(self) -> str:
        """32 hex digits, drawn once when the home was made."""
        return str(self._read("home.json")["installationId"])

    @property
    def signing_key(self) -> str:
        return str(self._read("secrets.json")["signingKey"])

    @property
    def database_key(self) -> str:
        """The secret that the passwords of the embedded database's roles derive from."""
        return str(self._read("secrets.json")["databaseKey"])

    def _read(self, name: str) -> dict[str, Any]:
        value: dict[str, Any] = json.loads((self.root / name).read_text())
        return value


def write_json(path: Path, value: object, *, mode: int = 0o644) -> None:
    """Write aside and rename, so that no reader ever sees half a file."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w") as file:
            json.dump(value, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def user_state_folder(environ: Mapping[str, str]) -> Path:
    """What a user's programs keep of an installation that may be elsewhere: KNOWLEDGE_STATE_DIR,
    else ``knowledge`` in XDG_STATE_HOME or in ``~/.local/state``."""
    if chosen := environ.get("KNOWLEDGE_STATE_DIR"):
        return Path(chosen)
    base = environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "knowledge"
