"""Collections of conversations on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Index, Knowledge, write_feed

Options = tuple[str, ...]


def turn(name: str, text: str, **metadata: Any) -> dict[str, Any]:
    said = {"speaker": "Ada", "session": "1", "time": "2026-05-01T09:30:00Z", **metadata}
    return {"id": name, "text": text, "metadata": said}


TURNS = (
    turn("t1", "the zeppelin landed"),
    turn("t2", "who saw it?", speaker="Grace"),
    turn("t3", "everyone"),
)


@pytest.fixture
def talk(knowledge: Knowledge, tenant: str) -> Options:
    """The options that address a new conversation ``talk`` without a model."""
    options = ("--tenant", tenant, "--project", "p1", "--collection", "talk")
    made = knowledge("collections", "create", *options, "--profile", "none", "--kind=conversation")
    assert made.out == f"Created collection {tenant}/talk (conversation, no model).\n"
    return options


def test_a_conversation_is_listed_with_its_kind(
    knowledge: Knowledge, talk: Options, tenant: str
) -> None:
    listed = knowledge("collections", "list", "--tenant", tenant)
    assert "conversation" in listed.out.splitlines()[1].split()
    shown = knowledge("collections", "list", "--tenant", tenant, "--json").json
    assert [one["kind"] for one in shown["collections"]] == ["conversation"]


def test_turns_are_published_found_and_shown_with_a_confidence(
    knowledge: Knowledge, talk: Options, tenant: str, tmp_path: Path, index: Index
) -> None:
    feed = write_feed(tmp_path / "talk.jsonl", *TURNS)
    done = knowledge("publish", feed, *talk)
    assert done.out.splitlines()[0] == "Published as turns"
    assert "3 turns, 3 chunks" in done.out
    index(tenant, "talk")
    client = knowledge("clients", "create", "--tenant", tenant, "--projects", "p1", "--json").json
    ask = ("--tenant", tenant, "--project", "p1", "--as", client["clientId"])
    found = knowledge("search", "zeppelin", *ask, "--json").json
    assert [one["citation"]["path"] for one in found["candidates"]] == ["t1", "t3", "t2"]
    assert found["candidates"][2]["metadata"]["speaker"] == "Grace"
    assert found["confidence"] > 0.5
    assert found["lowSupport"] is False
    shown = knowledge("search", "zeppelin", *ask).out.splitlines()
    assert shown[1] == f"confidence {found['confidence']:.2f}"
    shown = knowledge("search", "weather in Paris and the zeppelin fare", *ask).out.splitlines()
    assert shown[1].startswith("confidence 0.")
    assert shown[1].endswith(" (low support)")


def test_a_delta_of_the_whole_talk_sends_what_is_new_and_the_turn_before_it(
    knowledge: Knowledge, talk: Options, tmp_path: Path
) -> None:
    feed = write_feed(tmp_path / "talk.jsonl", *TURNS)
    knowledge("publish", feed, *talk)
    write_feed(feed, *TURNS, turn("t4", "nobody"))
    sent = knowledge("publish", feed, *talk, "--mode", "delta", "--json").json
    assert (sent["publishedAs"], sent["documents"], sent["unchanged"]) == ("turns", 2, 2)
    again = knowledge("publish", feed, *talk, "--mode", "delta", "--json").json
    assert (again["documents"], again["unchanged"]) == (0, 4)


def _folder(path: Path) -> Path:
    (path / "notes").mkdir()
    (path / "notes" / "a.md").write_text("# A\n")
    return path / "notes"


BAD: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a folder": (
        _folder,
        "a collection of kind conversation takes one .jsonl of turns, no other files",
    ),
    "no speaker": (
        lambda path: write_feed(path / "a.jsonl", {"id": "a", "text": "a", "metadata": {}}),
        "line 1: a turn needs metadata.speaker, a name of 1 to 200 characters",
    ),
    "no time": (
        lambda path: write_feed(path / "a.jsonl", *TURNS, turn("t4", "a", time="yesterday")),
        "line 4: a turn needs metadata.time, an ISO 8601 date or time such as 2026-05-01T09:30:00Z",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_conversation_is_refused_in_one_line_and_creates_nothing(
    knowledge: Knowledge, tenant: str, tmp_path: Path, name: str
) -> None:
    make, why = BAD[name]
    place = ("--tenant", tenant, "--project", "p1", "--collection", "new", "--kind", "conversation")
    assert knowledge("publish", make(tmp_path), *place).failure.endswith(why)
    assert knowledge("collections", "list", "--tenant", tenant, "--json").json["collections"] == []


def test_the_kind_of_a_collection_stays(
    knowledge: Knowledge, talk: Options, docs: Options, tenant: str, tmp_path: Path
) -> None:
    feed = write_feed(tmp_path / "talk.jsonl", *TURNS)
    failure = knowledge("publish", feed, *docs, "--kind", "conversation").failure
    assert failure.startswith(f"collection {tenant}/docs is of kind documents, which stays")
    assert knowledge("publish", feed, *docs).out.startswith("Published as documents")
    failure = knowledge("publish", feed, *talk, "--as", "documents").failure
    assert failure == "a conversation is published as turns: leave --as out"
