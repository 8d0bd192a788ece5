"""A feed is read a line at a time, and what is wrong with it is named by its line."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from knowledge.errors import InvalidDocument, InvalidInput
from knowledge.publishing.chunking.tokens import count_tokens
from knowledge.publishing.feed import FeedDocument, read_feed


def feed(folder: Path, *documents: dict[str, Any] | str | bytes) -> Path:
    path = folder / "feed.jsonl"
    lines = [
        line
        if isinstance(line, bytes)
        else (line if isinstance(line, str) else json.dumps(line)).encode()
        for line in documents
    ]
    path.write_bytes(b"\n".join(lines))
    return path


def read(path: Path, *, rechunk: bool = False, max_tokens: int = 40) -> list[FeedDocument]:
    return list(read_feed(path, rechunk=rechunk, max_tokens=max_tokens))


def test_a_document_is_one_chunk_that_says_all_it_said(tmp_path: Path) -> None:
    document = {
        "id": "/wiki/A#1",
        "title": "On A",
        "text": "All about A. " * 200,
        "metadata": {"time": "2026-03-01T10:00:00+02:00", "page": 3},
        "acl": ["group:x", "user:a"],
        "tags": ["one", "two", "one"],
    }
    (read_back,) = read(feed(tmp_path, document))
    (chunk,) = read_back.chunks
    assert read_back.document_id == chunk.path == "/wiki/A#1"
    assert (chunk.anchor, chunk.title, chunk.text) == ("", "On A", document["text"])
    assert (chunk.kind, chunk.language, chunk.lines) == ("document", None, None)
    assert (chunk.acl, chunk.tags) == (("group:x", "user:a"), ("one", "two"))
    assert chunk.metadata == document["metadata"]
    expected = datetime(2026, 3, 1, 10, tzinfo=timezone(timedelta(hours=2)))
    assert chunk.updated_at == expected


def test_only_id_and_text_are_needed_and_null_is_absent(tmp_path: Path) -> None:
    bare = {"id": "b", "text": "x"}
    nulls = {"id": "n", "text": "x", "title": None, "metadata": None, "acl": None, "tags": None}
    for document in read(feed(tmp_path, bare, "", nulls, "  ")):
        (chunk,) = document.chunks
        assert (chunk.title, chunk.metadata, chunk.acl, chunk.tags) == ("", {}, None, ())


def test_an_empty_acl_is_nobody(tmp_path: Path) -> None:
    (document,) = read(feed(tmp_path, {"id": "a", "text": "x", "acl": []}))
    assert document.chunks[0].acl == ()


def test_rechunked_documents_have_ordinals_as_anchors_and_keep_the_bound(tmp_path: Path) -> None:
    text = "One sentence of six words here. " * 30
    (document,) = read(feed(tmp_path, {"id": "a", "title": "T", "text": text}), rechunk=True)
    assert [chunk.anchor for chunk in document.chunks] == [
        str(n) for n in range(1, len(document.chunks) + 1)
    ]
    assert len(document.chunks) > 3
    assert all(count_tokens(chunk.text) <= 40 for chunk in document.chunks)
    assert {(chunk.path, chunk.title, chunk.lines) for chunk in document.chunks} == {
        ("a", "T", None)
    }


@pytest.mark.parametrize(
    ("text", "metadata", "kind", "language"),
    [
        ("plain words", {}, "document", None),
        ("plain words", {"kind": "code"}, "code", None),
        ("plain words", {"language": "Python"}, "code", "python"),
        ("plain words", {"language": "English"}, "document", "english"),
        ("plain words", {"language": 7}, "document", None),
        ("def f(a):\n    return a", {}, "code", None),
    ],
)
def test_the_kind_is_stated_or_recognised(
    tmp_path: Path, text: str, metadata: dict[str, Any], kind: str, language: str | None
) -> None:
    (document,) = read(feed(tmp_path, {"id": "a", "text": text, "metadata": metadata}))
    assert (document.chunks[0].kind, document.chunks[0].language) == (kind, language)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"updatedAt": "2026-01-02"}, datetime(2026, 1, 2, tzinfo=UTC)),
        (
            {"updatedAt": "soon", "time": "2026-01-02T03:04:05Z"},
            datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        ),
        ({"time": "1:56 pm on 8 May, 2023"}, None),
        ({"time": 12}, None),
    ],
)
def test_the_time_of_change_is_read_when_it_is_iso_8601(
    tmp_path: Path, metadata: dict[str, Any], expected: datetime | None
) -> None:
    (document,) = read(feed(tmp_path, {"id": "a", "text": "x", "metadata": metadata}))
    assert document.chunks[0].updated_at == expected


def test_what_no_store_can_hold_is_replaced_everywhere(tmp_path: Path) -> None:
    line = (
        r'{"id": "a", "title": "t\u0000\r\nu", "text": "a\u0000b\ud800c\r\n\td\u001b",'
        r' "metadata": {"k\u0000": ["v\u0007", {"x": "\udfff"}]}, "tags": ["t\u0001g"]}'
    )
    (document,) = read(feed(tmp_path, b"\xef\xbb\xbf" + line.encode()))
    (chunk,) = document.chunks
    assert chunk.text == "a b\ufffdc\n\td "
    assert chunk.title == "t u"
    assert chunk.metadata == {"k ": ["v ", {"x": "\ufffd"}]}
    assert chunk.tags == ("t g",)


def test_the_digest_changes_with_everything_a_document_says(tmp_path: Path) -> None:
    base: dict[str, Any] = {"id": "a", "text": "x"}
    variants: list[dict[str, Any]] = [
        base,
        base | {"id": "b"},
        base | {"text": "y"},
        base | {"title": "t"},
        base | {"metadata": {"k": 1}},
        base | {"acl": []},
        base | {"tags": ["t"]},
    ]
    digests = {read(feed(tmp_path, variant))[0].digest for variant in variants}
    assert len(digests) == len(variants)
    again = read(feed(tmp_path, {"text": "x", "title": None, "id": "a"}))
    assert again[0].digest in digests


GOOD = '{"id": "ok", "text": "x"}'


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "not valid JSON"),
        ('{"id": "a", "text": "x"} x', "not valid JSON"),
        (b'{"id": "a", "text": "\xff"}', "not UTF-8"),
        ("[" * 100_000, "not valid JSON"),
        ('{"id": "a", "text": "x", "metadata": {"n": %s}}' % ("9" * 5000), "not valid JSON"),
        ("[1]", "must be a JSON object"),
        ('{"text": "x"}', "id is missing"),
        ('{"_id": "a", "text": "x"}', "unknown key '_id'; the keys are id, title, text"),
        ('{"id": "", "text": "x"}', "id is missing"),
        ('{"id": " ", "text": "x"}', "id is missing"),
        ('{"id": 7, "text": "x"}', "id is missing"),
        ('{"id": "%s", "text": "x"}' % ("i" * 1025), "longer than 1024"),
        (r'{"id": "a\nb", "text": "x"}', "control characters"),
        (r'{"id": "a\ud800", "text": "x"}', "control characters"),
        ('{"id": "a"}', "text is missing"),
        ('{"id": "a", "text": null}', "text is missing"),
        (r'{"id": "a", "text": " \n\u0000"}', "text is empty"),
        ('{"id": "a", "text": "x", "title": 1}', "title must be a string"),
        ('{"id": "a", "text": "x", "metadata": []}', "metadata must be a JSON object"),
        ('{"id": "a", "text": "x", "metadata": {"n": NaN}}', "NaN is not a JSON number"),
        ('{"id": "a", "text": "x", "metadata": {"n": 1e999}}', "not finite"),
        ('{"id": "a", "text": "x", "metadata": {"n": "%s"}}' % ("x" * 65_536), "more than 65536"),
        (
            '{"id": "a", "text": "x", "metadata": {"n": ' + "[" * 40 + "]" * 40 + "}}",
            "nested more than 32",
        ),
        ('{"id": "a", "text": "x", "acl": "group:x"}', "acl must be null or a list"),
        ('{"id": "a", "text": "x", "acl": [["group:x"]]}', "acl must be null or a list"),
        ('{"id": "a", "text": "x", "acl": ["x"]}', "write user:NAME or group:NAME"),
        ('{"id": "a", "text": "x", "tags": "t"}', "tags must be a list"),
        ('{"id": "a", "text": "x", "tags": [1]}', "tags must be a list"),
        ('{"id": "a", "text": "x", "tags": [""]}', "a tag must have 1 to 100"),
        ('{"id": "a", "text": "x", "tags": ["%s"]}' % ("t" * 101), "a tag must have 1 to 100"),
        ('{"id": "ok", "text": "y"}', "id 'ok' is already used in line 1"),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, str) else "bytes",
)
def test_a_line_that_is_not_valid_is_named_with_the_reason(
    tmp_path: Path, line: str | bytes, why: str
) -> None:
    documents = read_feed(feed(tmp_path, GOOD, "", line), rechunk=False, max_tokens=40)
    assert next(documents).document_id == "ok"
    with pytest.raises(InvalidDocument) as caught:
        next(documents)
    message = caught.value.message
    assert "feed.jsonl, line 3: " in message and why in message
    assert "\n" not in message and len(message) < 500
    assert caught.value.facts["line"] == 3


def test_the_limits_themselves_are_valid(tmp_path: Path) -> None:
    document: dict[str, Any] = {"id": "i" * 1024, "text": "x", "tags": ["t" * 100]}
    nested: Any = 1
    for _ in range(31):
        nested = [nested]
    document["metadata"] = {"n": nested}
    assert len(read(feed(tmp_path, document))) == 1


def test_a_feed_that_cannot_be_read_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        read(tmp_path / "nowhere.jsonl")


def test_a_feed_without_documents_is_empty(tmp_path: Path) -> None:
    assert read(feed(tmp_path, "", "\n")) == []
