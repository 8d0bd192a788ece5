"""Markdown is cut at its headings."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from knowledge.model.chunk import Chunk
from knowledge.publishing.chunking import chunk_file


def chunks_of(text: str, max_tokens: int = 220) -> list[Chunk]:
    return chunk_file("docs/guide.md", text, max_tokens=max_tokens)


def outline_of(text: str) -> list[tuple[str, str, tuple[int, int] | None]]:
    return [(chunk.anchor, chunk.title, chunk.lines) for chunk in chunks_of(text)]


def test_a_section_has_its_heading_path_as_title_and_anchor_and_its_exact_lines() -> None:
    text = "intro\n\n# Guide\n\nhello\n\n## Install\n\nrun it\n\n\n# End\nbye\n"
    assert outline_of(text) == [
        ("", "guide.md", (1, 1)),
        ("Guide", "Guide", (3, 5)),
        ("Guide > Install", "Guide > Install", (7, 9)),
        ("End", "End", (12, 13)),
    ]
    assert chunks_of(text)[2].text == "## Install\n\nrun it"


def test_repeated_headings_are_numbered() -> None:
    text = "# A\n## X\none\n## X\ntwo\n## X\nthree\n"
    assert [chunk.anchor for chunk in chunks_of(text)] == ["A > X", "A > X~2", "A > X~3"]


def test_a_numbered_repeat_never_takes_the_name_of_another_heading() -> None:
    anchors = [chunk.anchor for chunk in chunks_of("# X~2\na\n# X\nb\n# X\nc\n")]
    assert anchors == ["X~2", "X", "X~3"]


def test_a_heading_without_text_of_its_own_goes_with_its_first_section() -> None:
    assert outline_of("Guide\n=====\n\n## Install\nrun\n") == [
        ("Guide > Install", "Guide > Install", (1, 5))
    ]


def test_markup_in_a_heading_is_not_part_of_the_title() -> None:
    (chunk,) = chunks_of("# Use `knowledge up` **now**, [see](http://localhost/x_y) *it*\nx\n")
    assert chunk.title == "Use knowledge up now, see it"


def test_names_with_underscores_stay_as_they_are_in_a_title() -> None:
    (chunk,) = chunks_of("# The max_chunk_tokens setting\nx\n")
    assert chunk.title == "The max_chunk_tokens setting"


@pytest.mark.parametrize("fence", ["```", "~~~"])
def test_a_hash_inside_fenced_code_is_no_heading(fence: str) -> None:
    (chunk,) = chunks_of(f"# A\n{fence}sh\n# comment\n{fence}\n")
    assert chunk.lines == (1, 4)


def test_a_heading_inside_a_quotation_does_not_divide() -> None:
    assert len(chunks_of("# A\n> # quoted\n> text\n\nmore\n")) == 1


def test_fenced_code_that_fits_is_kept_in_one_piece() -> None:
    code = "```python\n" + "call(a, b)\n\n" * 6 + "```"
    text = "# A\n" + "some words here. " * 8 + "\n\n" + code + "\n\n" + "tail words. " * 10
    chunks = chunks_of(text, max_tokens=50)
    assert sum(code in chunk.text for chunk in chunks) == 1
    assert [chunk.anchor for chunk in chunks] == ["A", "A#2", "A#3"]


def test_fenced_code_that_does_not_fit_is_cut_at_lines() -> None:
    text = "# A\n```\n" + "call(a, b)\n" * 40 + "```\n"
    chunks = chunks_of(text, max_tokens=50)
    assert len(chunks) > 3
    assert "\n".join(chunk.text for chunk in chunks) == text.rstrip("\n")


def test_front_matter_is_metadata_and_not_text() -> None:
    text = (
        "---\ntitle: Run book\ntags: [ops, on call]\nowner: team-a\nlevel: 3\n"
        "date: 2026-03-01\nodd: .nan\n---\n# Start\nhello\n"
    )
    (chunk,) = chunks_of(text)
    assert (chunk.title, chunk.anchor) == ("Run book > Start", "Start")
    assert chunk.text == "# Start\nhello"
    assert chunk.lines == (9, 10)
    assert chunk.tags == ("ops", "on call")
    assert chunk.metadata == {"owner": "team-a", "level": 3, "date": "2026-03-01", "odd": None}
    assert chunk.updated_at == datetime(2026, 3, 1, tzinfo=UTC)


def test_a_title_that_repeats_the_first_heading_is_named_once() -> None:
    (chunk,) = chunks_of("---\ntitle: Guide\n---\n# Guide\nx\n")
    assert chunk.title == "Guide"


@pytest.mark.parametrize(
    "head",
    [
        "---\n{broken: [\n---\n",
        "---\njust a sentence\n---\n",
        "---\na: &x [1]\nb: [*x, *x]\n---\n",
        "---\nnever: closed\n",
        "---\na: " + "[" * 3000 + "\n---\n",
        "---\nd: 2026-99-99\n---\n",
    ],
)
def test_a_head_that_is_no_mapping_stays_text(head: str) -> None:
    chunks = chunks_of(f"{head}\n# A\nx\n")
    assert all(chunk.metadata == {} for chunk in chunks)
    assert "".join(head.split()) in "".join("".join(chunk.text.split()) for chunk in chunks)


def test_a_file_of_front_matter_only_is_text() -> None:
    (chunk,) = chunks_of("---\ntitle: x\n---\n\n")
    assert chunk.lines == (1, 3)


def test_a_blank_file_has_no_chunks() -> None:
    assert chunks_of("\n  \n") == []
