from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Index, Knowledge

Options = tuple[str, ...]


@pytest.fixture
def place(knowledge: Knowledge, docs: Options, folder: Path, tenant: str, index: Index) -> Options:
    """Options of a collection that serves the source ``handbook``."""
    knowledge("publish", folder, *docs)
    index(tenant, "docs")
    return ("--tenant", tenant, "--collection", "docs")


@pytest.fixture
def found(knowledge: Knowledge, place: Options, tenant: str) -> Any:
    """Paths that a client of the group ``eng`` finds."""
    made = knowledge(
        *("clients", "create", "--tenant", tenant, "--projects", "p1"),
        *("--groups", "eng", "--json"),
    ).json
    options = ("--tenant", tenant, "--project", "p1", "--as", made["clientId"], "--json")

    def paths(query: str) -> list[str]:
        answer = knowledge("search", query, *options).json
        return [candidate["citation"]["path"] for candidate in answer["candidates"]]

    return paths


def test_list_shows_version_readers_and_origin(
    knowledge: Knowledge, place: Options, folder: Path, tenant: str
) -> None:
    (source,) = knowledge("sources", "list", *place, "--json").json["sources"]
    assert source["sourceVersion"].startswith("sha256:")
    assert source == {
        "tenantId": tenant,
        "collection": "docs",
        "sourceId": "handbook",
        "projectId": "p1",
        "sourceVersion": source["sourceVersion"],
        "acl": None,
        "trustTier": "SourceFact",
        "origin": str(folder),
        "deletedAt": None,
    }
    shown = knowledge("sources", "list", *place).out.splitlines()[1].split()
    assert shown[:2] == ["handbook", "p1"]
    assert shown[3:6] == ["everyone", "SourceFact", "active"]


def test_an_acl_acts_on_the_next_request_without_a_run(
    knowledge: Knowledge, place: Options, found: Any
) -> None:
    assert found("heartbeat") == ["lease.md"]
    knowledge("sources", "acl", "handbook", *place, "--acl", "group:ops")
    assert found("heartbeat") == []
    done = knowledge("sources", "acl", "handbook", *place, "--acl", "group:eng")
    assert done.out == "Source handbook is read by group:eng, from the next request on.\n"
    assert found("heartbeat") == ["lease.md"]
    knowledge("sources", "acl", "handbook", *place, "--acl", "nobody")
    assert found("heartbeat") == []
    done = knowledge("sources", "acl", "handbook", *place, "--acl", "everyone", "--json")
    assert done.json["acl"] is None
    assert found("heartbeat") == ["lease.md"]


def test_deleting_hides_at_once(knowledge: Knowledge, place: Options, found: Any) -> None:
    done = knowledge("sources", "delete", "handbook", *place)
    assert done.out.startswith("Source handbook is hidden from every query.")
    assert found("heartbeat") == []
    (source,) = knowledge("sources", "list", *place, "--json").json["sources"]
    assert source["deletedAt"]


def test_an_unknown_source_is_one_line(knowledge: Knowledge, place: Options) -> None:
    line = "collection docs has no source typo"
    assert knowledge("sources", "delete", "typo", *place).failure == line
    assert knowledge("sources", "acl", "typo", *place, "--acl", "nobody").failure == line
