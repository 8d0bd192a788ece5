"""A feed of turns: each knows its session and who said it; what is no turn is named by its line."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from knowledge.errors import InvalidDocument, InvalidInput
from knowledge.publishing.feed import FeedDocument, read_turns
from knowledge.publishing.reading import read_conversation
from tests.publishing.test_feed import feed

SAID: dict[str, Any] = {"speaker": "Ada", "session": "1", "time": "2026-05-01T09:30:00Z"}


def turn(name: str, **metadata: Any) -> dict[str, Any]:
    return {"id": name, "text": f"{name} it is", "metadata": {**SAID, **metadata}}


def read(folder: Path, *turns: dict[str, Any]) -> list[FeedDocument]:
    return list(read_turns(feed(folder, *turns)))


def test_a_turn_is_one_chunk_titled_by_its_speaker_and_dated_by_its_time(tmp_path: Path) -> None:
    (first, second) = read(tmp_path, turn("t1"), {**turn("t2", session=2), "title": "Standup"})
    [chunk] = first.chunks
    assert (chunk.path, chunk.anchor, chunk.title, chunk.text) == ("t1", "", "Ada", "t1 it is")
    assert chunk.metadata == SAID
    assert chunk.updated_at == datetime(2026, 5, 1, 9, 30, tzinfo=UTC)
    assert (first.session, second.session) == ("1", "2")
    assert second.chunks[0].title == "Standup"


def test_a_digest_tells_the_turn_before_it_in_the_session(tmp_path: Path) -> None:
    digests = {d.document_id: d.digest for d in read(tmp_path, turn("a"), turn("b"), turn("c"))}
    other = turn("x", session="2")
    beside = {d.document_id: d.digest for d in read(tmp_path, turn("a"), other, turn("b"))}
    assert (beside["a"], beside["b"]) == (digests["a"], digests["b"])
    moved = {d.document_id: d.digest for d in read(tmp_path, turn("a"), turn("c"), turn("b"))}
    assert moved["a"] == digests["a"]
    assert moved["c"] != digests["c"]


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"speaker": None}, "a turn needs metadata.speaker, a name of 1 to 200 characters"),
        ({"speaker": "  "}, "a turn needs metadata.speaker, a name of 1 to 200 characters"),
        ({"session": True}, "a turn needs metadata.session, a name of 1 to 200 characters"),
        ({"time": "noon"}, "a turn needs metadata.time, an ISO 8601 date or time such as"),
        ({"time": None}, "a turn needs metadata.time, an ISO 8601 date or time such as"),
        ({"time": 1777627800}, "a turn needs metadata.time, an ISO 8601 date or time such as"),
    ],
)
def test_what_is_no_turn_is_refused_with_its_line(
    tmp_path: Path, metadata: dict[str, Any], why: str
) -> None:
    with pytest.raises(InvalidDocument) as refused:
        read(tmp_path, turn("a"), turn("b", **metadata))
    assert refused.value.message.startswith(f"{tmp_path / 'feed.jsonl'}, line 2: {why}")


def test_a_document_without_metadata_is_no_turn(tmp_path: Path) -> None:
    with pytest.raises(InvalidDocument, match=r"line 1: a turn needs metadata\.speaker"):
        read(tmp_path, {"id": "a", "text": "hello"})


def test_a_conversation_takes_one_feed_and_nothing_else(tmp_path: Path) -> None:
    one = feed(tmp_path, turn("a"))
    for paths in ([tmp_path], [one, one], [tmp_path / "notes.md"]):
        with pytest.raises(InvalidInput, match=r"kind conversation takes one \.jsonl of turns"):
            read_conversation(paths, rechunk=False)
    with pytest.raises(InvalidInput, match="leave --chunk out"):
        read_conversation([one], rechunk=True)
