from __future__ import annotations

import os
from pathlib import Path

from knowledge.cli.graph.lines import MAX_LINE_BYTES, Line, opened_facts


def test_blank_lines_are_skipped_and_counted_and_a_byte_order_mark_is_no_text(
    tmp_path: Path,
) -> None:
    file = tmp_path / "facts.jsonl"
    file.write_bytes(b"\xef\xbb\xbf{}\r\n\r\n  \n[]")
    with opened_facts(file) as facts:
        expected = [Line(1, b"{}\r\n"), Line(4, b"[]")]
        assert list(facts.lines()) == expected
        assert list(facts.lines()) == expected


def test_an_over_long_line_is_passed_over_to_its_end(tmp_path: Path) -> None:
    file = tmp_path / "facts.jsonl"
    fits = b"x" * (MAX_LINE_BYTES - 1) + b"\n"
    file.write_bytes(b"x" * (3 * MAX_LINE_BYTES) + b"\n" + fits + b"{}\n")
    with opened_facts(file) as facts:
        assert list(facts.lines()) == [Line(1, None), Line(2, fits), Line(3, b"{}\n")]


def test_a_pipe_is_read_twice(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"{}\n[]\n")
    os.close(writing)
    with opened_facts(Path(f"/dev/fd/{reading}")) as facts:
        os.close(reading)
        assert [line.text for line in facts.lines()] == [b"{}\n", b"[]\n"]
        assert [line.number for line in facts.lines()] == [1, 2]
