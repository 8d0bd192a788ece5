from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Index, Knowledge, write, write_feed

Options = tuple[str, ...]


@pytest.fixture
def delta(knowledge: Knowledge, docs: Options) -> Any:
    """Publishes a delta; returns ``(documents, unchanged, deleted)``."""

    def publish(path: Path, *extra: object) -> tuple[int, int, int]:
        found = knowledge("publish", path, *docs, "--mode", "delta", *extra, "--json").json
        return found["documents"], found["unchanged"], found["deleted"]

    return publish


def test_a_delta_sends_only_what_changed(
    knowledge: Knowledge, docs: Options, folder: Path, delta: Any
) -> None:
    knowledge("publish", folder, *docs)
    write(folder, {"clock.md": "# Clock\n\nOne clock a collection.\n", "new.md": "# New\n\nNew.\n"})
    assert delta(folder) == (2, 2, 0)
    assert delta(folder) == (0, 4, 0)


def test_a_file_gone_from_the_same_folder_is_deleted(
    knowledge: Knowledge, docs: Options, folder: Path, delta: Any
) -> None:
    knowledge("publish", folder, *docs)
    (folder / "clock.md").unlink()
    assert delta(folder) == (0, 2, 1)
    assert delta(folder) == (0, 2, 0)


def test_a_first_delta_sends_everything_and_knows_its_folder_from_then_on(
    folder: Path, delta: Any
) -> None:
    assert delta(folder) == (3, 0, 0)
    (folder / "clock.md").unlink()
    assert delta(folder) == (0, 2, 1)


def test_another_folder_of_the_source_deletes_nothing(
    knowledge: Knowledge, docs: Options, folder: Path, tmp_path: Path, delta: Any
) -> None:
    knowledge("publish", folder, *docs)
    write(tmp_path / "elsewhere", {"new.md": "# New\n\nNew.\n"})
    assert delta(tmp_path / "elsewhere", "--source", "handbook") == (1, 0, 0)


def test_a_single_file_deletes_nothing_and_does_not_move_the_source(
    knowledge: Knowledge, docs: Options, folder: Path, delta: Any
) -> None:
    knowledge("publish", folder, *docs)
    write(folder, {"more/scope.md": "# Scope\n\nChanged.\n"})
    changed = folder / "more" / "scope.md"
    assert delta(changed, "--root", folder, "--source", "handbook") == (1, 0, 0)
    assert delta(folder / "more", "--source", "handbook") == (1, 0, 0)
    (folder / "clock.md").unlink()
    assert delta(folder)[2] == 2  # clock.md, and the scope.md that the delta above added


def test_a_delta_of_a_feed_never_deletes_what_it_does_not_name(
    knowledge: Knowledge, docs: Options, tmp_path: Path, delta: Any
) -> None:
    feed = write_feed(tmp_path / "feed.jsonl", *({"id": i, "text": i} for i in ("a", "b", "c")))
    knowledge("publish", feed, *docs)
    write_feed(feed, {"id": "b", "text": "changed"})
    assert delta(feed) == (1, 0, 0)
    assert delta(feed, "--delete", "a", "--delete", "c") == (0, 1, 2)


def test_deleting_what_the_source_does_not_hold_is_refused(
    knowledge: Knowledge, docs: Options, folder: Path
) -> None:
    knowledge("publish", folder, *docs)
    failure = knowledge("publish", folder, *docs, "--mode", "delta", "--delete", "typo.md").failure
    assert failure == "source handbook holds no typo.md that could be deleted"


def test_publishing_and_deleting_the_same_path_is_refused(
    knowledge: Knowledge, docs: Options, folder: Path
) -> None:
    knowledge("publish", folder, *docs)
    failure = knowledge("publish", folder, *docs, "--mode", "delta", "--delete", "clock.md").failure
    assert failure == "clock.md is published and deleted at once: leave one out"


def test_a_delta_changes_the_answers_and_the_pin_before_it_does_not(
    knowledge: Knowledge, docs: Options, folder: Path, tenant: str, index: Index, delta: Any
) -> None:
    knowledge("publish", folder, *docs)
    index(tenant, "docs")
    write(folder, {"clock.md": "# Clock\n\nTime is kept by a sundial.\n"})
    assert delta(folder) == (1, 2, 0)
    index(tenant, "docs")
    created = knowledge("clients", "create", "--tenant", tenant, "--projects", "p1", "--json").json
    asked = ("--tenant", tenant, "--project", "p1", "--as", created["clientId"], "--json")

    def texts(*extra: str) -> list[str]:
        found = knowledge("search", "clock", *asked, *extra).json["candidates"]
        return [candidate["text"] for candidate in found]

    assert [("sundial" in text) for text in texts()] == [True]
    assert [("sundial" in text) for text in texts("--pin", "docs=1")] == [False]
