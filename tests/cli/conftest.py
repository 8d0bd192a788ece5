"""The command line in this process, on the worker's home with its real servers."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from knowledge.cli.main import run
from knowledge.home import Home
from knowledge.indexing.convergence import converge_hybrid, converge_metadata
from knowledge.indexing.embeddings import embed_missing
from knowledge.indexing.rebuilding import rebuild
from knowledge.indexing.serving import serve
from knowledge.indexing.tick import leased, tick
from knowledge.runtime import Runtime
from knowledge.storage.postgres import rebuilds
from knowledge.storage.snapshots import Snapshot


@dataclass(frozen=True)
class Done:
    """What a command left: exit code, standard output and standard error."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)

    @property
    def failure(self) -> str:
        """The one line of a command that failed."""
        assert self.code == 1, (self.code, self.out, self.err)
        (line,) = self.err.splitlines()
        assert line.startswith("knowledge: ")
        return line.removeprefix("knowledge: ")


Knowledge = Callable[..., Done]
Index = Callable[[str, str], None]
Build = Callable[[str, str], None]


@pytest.fixture
def knowledge(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Knowledge:
    """Runs ``knowledge ARGUMENTS…``."""
    monkeypatch.setenv("KNOWLEDGE_HOME", str(home.root))

    def invoke(*arguments: object) -> Done:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return invoke


@pytest.fixture
def index(runtime: Runtime) -> Index:
    """Does what a run of the assets does, without Dagster."""

    def accept(_snapshot: Snapshot) -> None:
        pass

    def materialise(tenant_id: str, collection: str) -> None:
        with leased(runtime, tenant_id, collection, f"test-{uuid.uuid4()}") as held:
            tick(runtime, held, check=accept)
            embed_missing(runtime, held)
            converge_hybrid(runtime, held)
            converge_metadata(runtime, held)
            serve(runtime, held)

    return materialise


@pytest.fixture
def build(runtime: Runtime) -> Build:
    """Does the rebuild that was asked for, without Dagster."""

    def rebuilt(tenant_id: str, slug: str) -> None:
        wanted = rebuilds.latest(runtime.app, runtime.collection(tenant_id, slug))
        assert wanted is not None
        rebuild(runtime, wanted, owner=f"test-{uuid.uuid4()}")

    return rebuilt


@pytest.fixture
def docs(knowledge: Knowledge, tenant: str) -> tuple[str, ...]:
    """The options that address a new collection ``docs`` without a model."""
    options = ("--tenant", tenant, "--project", "p1", "--collection", "docs")
    assert knowledge("collections", "create", *options, "--profile", "none").code == 0
    return options


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder ``handbook`` of three documents."""
    made = tmp_path / "handbook"
    write(
        made,
        {
            "lease.md": "# Lease\n\nA lease is renewed by its heartbeat.\n",
            "clock.md": "# Clock\n\nA collection has one clock.\n",
            "more/scope.md": "# Scope\n\nThe scope filters before top-k.\n",
        },
    )
    return made


@pytest.fixture
def snapshots(home: Home) -> Callable[[str], list[Path]]:
    """Every file below a tenant's snapshots, hidden ones too."""
    return lambda tenant: [
        path for path in (home.snapshots_dir / tenant).rglob("*") if path.is_file()
    ]


@pytest.fixture
def events(runtime: Runtime) -> Callable[[str], list[str]]:
    """The types of a tenant's announced events, in order."""

    def announced(tenant: str) -> list[str]:
        with runtime.owner.transaction() as connection:
            rows = connection.execute(
                "select event_type from inbox where tenant_id = %s order by sequence", [tenant]
            ).fetchall()
        return [row["event_type"] for row in rows]

    return announced


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def write_feed(path: Path, *documents: Mapping[str, Any]) -> Path:
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    return path
