"""Plain text is packed by paragraph, and what is too long is cut where it hurts least."""

from __future__ import annotations

import time

import pytest

from knowledge.publishing.chunking import chunk_file
from knowledge.publishing.chunking.tokens import count_tokens, split_lines


def test_paragraphs_are_packed_up_to_the_bound() -> None:
    paragraph = "word " * 9 + "end.\n"
    chunks = chunk_file("notes.txt", (paragraph + "\n") * 12, max_tokens=50)
    assert [chunk.anchor for chunk in chunks] == ["1", "2", "3"]
    assert [chunk.lines for chunk in chunks] == [(1, 7), (9, 15), (17, 23)]


def test_the_last_two_pieces_share_what_is_left() -> None:
    sizes = [count_tokens(piece.text) for piece in split_lines(["a"] * 55, max_tokens=50)]
    assert sizes == [33, 22]


def test_an_edit_leaves_the_chunks_before_it_alone() -> None:
    text = "\n\n".join(f"paragraph {n} " + "word " * 20 for n in range(40))
    before = chunk_file("a.txt", text, max_tokens=60)
    after = chunk_file("a.txt", f"{text}\n\none more paragraph", max_tokens=60)
    assert len(before) > 10 and before[:-3] == after[: len(before) - 3]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Release notes\n\nAll is well.", "Release notes"),
        ("=======\nWelcome\n=======\n\nAll is well.", "Welcome"),
        ("Welcome\n-------\nAll is well.", "Welcome"),
        ("All is well, and so\nare we.", "notes.rst"),
        ("All is well.\n\nSo are we.", "notes.rst"),
        ("x = 1;\n\ny = 2;", "notes.rst"),
        ("All is well", "notes.rst"),
        ("w" * 101 + "\n\nx", "notes.rst"),
    ],
)
def test_the_title_is_the_first_line_only_when_it_reads_like_one(text: str, title: str) -> None:
    assert {chunk.title for chunk in chunk_file("a/notes.rst", text, max_tokens=60)} == {title}


def test_a_file_of_unknown_type_is_text_under_its_name() -> None:
    (chunk,) = chunk_file("deploy/app.yaml", "a: 1\nb: 2\n", max_tokens=60)
    assert (chunk.title, chunk.kind, chunk.language, chunk.lines) == (
        "app.yaml",
        "document",
        None,
        (1, 2),
    )


def test_a_long_line_is_cut_between_sentences_and_keeps_its_line() -> None:
    sentence = "This is one sentence of nine words in all. "
    pieces = split_lines(["short", "", sentence * 10], max_tokens=40)
    assert [(piece.first, piece.last) for piece in pieces] == [(1, 1), (3, 3), (3, 3), (3, 3)]
    assert all(piece.text.endswith("all.") for piece in pieces[1:])


def test_a_long_sentence_is_cut_between_words() -> None:
    pieces = split_lines(["word-pair " * 60], max_tokens=40)
    assert all(piece.text.endswith("word-pair") for piece in pieces)


def test_text_without_spaces_is_bounded_too() -> None:
    pieces = split_lines(["x" * 10_000], max_tokens=40)
    assert {len(piece.text) for piece in pieces[:-1]} == {40 * 24}
    assert "".join(piece.text for piece in pieces) == "x" * 10_000


def test_ideographs_count_one_by_one() -> None:
    assert count_tokens("検索 index") == 3


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "word, " * 170_000),
        ("a.txt", "x" * 1_000_000),
        ("a.txt", " " * 1_000_000 + "x"),
        ("a.txt", "x\n" + "\n" * 500_000 + "y\n" * 100_000),
        ("a.md", "> " * 200_000),
        ("a.md", "# a\n" * 50_000),
        ("a.js", "function a(){return 1};" * 40_000),
        ("a.py", "(\n" * 100_000),
        ("a.ts", "a<b,\n" * 100_000),
        ("a.java", "class A {\n" * 30_000),
    ],
    ids=lambda value: value[:8].strip() or "blank",
)
def test_a_hostile_file_takes_bounded_time_and_gives_bounded_chunks(name: str, text: str) -> None:
    begun = time.process_time()
    chunks = chunk_file(name, text, max_tokens=200)
    assert time.process_time() - begun < 5.0
    assert max(count_tokens(chunk.text) for chunk in chunks) <= 200
    assert max(len(chunk.text) for chunk in chunks) <= 26 * 200
