from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from knowledge.home import Home, write_json
from knowledge.runtime import Runtime
from knowledge.storage.postgres.migrations import HEAD
from tests.cli.conftest import Knowledge


@pytest.fixture
def schema(runtime: Runtime) -> Iterator[Callable[[str], None]]:
    """Says another version of the schema was found; the right one is put back."""

    def pretend(version: str) -> None:
        with runtime.owner.transaction() as connection:
            connection.execute("update alembic_version set version_num = %s", [version])

    yield pretend
    pretend(HEAD)


def test_a_current_home_needs_nothing(knowledge: Knowledge) -> None:
    assert knowledge("migrate").out == f"Nothing to do: layout 1, schema {HEAD}.\n"
    assert knowledge("migrate", "--json").json == {
        "layoutVersion": 1,
        "schemaVersion": HEAD,
        "schemaBefore": HEAD,
    }


@pytest.mark.parametrize("verb", [("migrate",), ("collections", "list")])
def test_a_newer_schema_is_refused(
    knowledge: Knowledge, schema: Callable[[str], None], verb: tuple[str, ...]
) -> None:
    schema("9999")
    assert knowledge(*verb).failure == (
        f"the database has schema version 9999, this program works with {HEAD}: use a newer program"
    )


def test_an_older_schema_is_not_migrated_by_the_way(
    knowledge: Knowledge, schema: Callable[[str], None]
) -> None:
    schema("0000")
    assert knowledge("collections", "list").failure == (
        f"the database has schema version 0000, this program works with {HEAD}:"
        " run `knowledge migrate`"
    )


@pytest.mark.parametrize("verb", [("migrate",), ("collections", "list")])
def test_a_newer_home_is_refused(
    knowledge: Knowledge,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    verb: tuple[str, ...],
) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    write_json(home.root / "home.json", {"layoutVersion": 99, "installationId": "0" * 32})
    monkeypatch.setenv("KNOWLEDGE_HOME", str(home.root))
    assert knowledge(*verb).failure.endswith(
        "has layout version 99, this program works with 1: use a newer program"
    )


@pytest.mark.parametrize(
    "verb", [("migrate",), ("collections", "list"), ("clients", "list", "--tenant", "t")]
)
def test_a_verb_that_only_reads_creates_no_home(
    knowledge: Knowledge,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    verb: tuple[str, ...],
) -> None:
    monkeypatch.setenv("KNOWLEDGE_HOME", str(tmp_path / "absent"))
    assert knowledge(*verb).failure.startswith(f"there is no installation in {tmp_path}/absent")
    assert not (tmp_path / "absent").exists()
