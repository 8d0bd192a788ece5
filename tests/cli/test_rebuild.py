"""``knowledge rebuild``: asked for, built, shown, cancelled; and ``collections collect``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Build, Index, Knowledge

Options = tuple[str, ...]


@pytest.fixture
def place(knowledge: Knowledge, docs: Options, folder: Path, tenant: str, index: Index) -> Options:
    """A collection that serves revision 1."""
    knowledge("publish", folder, *docs)
    index(tenant, "docs")
    return ("--tenant", tenant, "--collection", "docs")


def test_a_rebuild_is_asked_for_built_and_shown(
    knowledge: Knowledge, place: Options, tenant: str, build: Build
) -> None:
    asked = knowledge("rebuild", *place)
    assert "requested; it starts when the stack runs" in asked.out
    build(tenant, "docs")
    shown = knowledge("rebuild", *place, "--status", "--json").json
    assert (shown["state"], shown["revision"], shown["attempts"]) == ("switched", 2, 1)
    assert "serving as revision 2" in knowledge("rebuild", *place, "--status").out
    (found,) = knowledge("collections", "list", "--tenant", tenant, "--json").json["collections"]
    assert {entry["revision"] for entry in found["indexes"]} == {2}


def test_a_cancelled_rebuild_pins_the_serving_profile_again(
    knowledge: Knowledge, place: Options, tenant: str
) -> None:
    knowledge("rebuild", *place, "--profile", "minilm@1")
    done = knowledge("rebuild", *place, "--cancel", "--json").json
    assert done["state"] == "cancelled"
    assert "has ended already" in knowledge("rebuild", *place, "--cancel").failure
    (found,) = knowledge("collections", "list", "--tenant", tenant, "--json").json["collections"]
    assert found["embeddingProfile"] is None


def test_a_collection_without_an_index_says_that_publishing_builds_one(
    knowledge: Knowledge, docs: Options, tenant: str
) -> None:
    failure = knowledge("rebuild", "--tenant", tenant, "--collection", "docs").failure
    assert failure == (
        "collection docs has no index yet: its first publish builds one with no model"
    )
    failure = knowledge("rebuild", "--tenant", tenant, "--collection", "docs", "--status").failure
    assert failure == "collection docs was never rebuilt"


def test_options_that_exclude_each_other_are_a_usage_error(
    knowledge: Knowledge, place: Options
) -> None:
    done = knowledge("rebuild", *place, "--cancel", "--status")
    assert done.code == 2
    assert "give one of --profile, --cancel and --status" in done.err


def test_collecting_says_what_is_kept(knowledge: Knowledge, place: Options) -> None:
    done = knowledge("collections", "collect", *place)
    assert "revision 1 is the oldest that can be pinned" in done.out
