"""What holds for every chunker and every text."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.model.chunk import Chunk
from knowledge.publishing.chunking import chunk_file
from knowledge.publishing.chunking.tokens import count_tokens

LINES = st.one_of(
    st.sampled_from(
        [
            "",
            "",
            "   ",
            "# Usage",
            "## Usage",
            "Usage",
            "=====",
            "-----",
            "```",
            "~~~ python",
            "> # quoted",
            "- item",
            "---",
            "title: x",
            "def f(a):",
            "    return a",
            "    def g(): pass",
            "    return g",
            "class A:",
            "class A {",
            "  void f() {",
            "  }",
            "}",
            "function f() { return 1 }",
            "const f = () => {",
            "};",
            "func (s *S) F() {",
            "impl S {",
            "fn f() {",
            "module A",
            "end",
            "# comment",
            "// comment",
            "/* open",
            "@decorator",
            "a b c d e f g h i j k l m n o p q r s t u v w x y z. And. More! text? " * 3,
            "x" * 1000,
            "漢字の文章です。次の文。" * 20,
            "(((((",
        ]
    ),
    st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=60),
)
TEXTS = st.lists(LINES, max_size=40).map("\n".join)
SUFFIXES = ("md", "py", "js", "ts", "tsx", "go", "java", "rs", "c", "h", "cpp", "cs", "rb", "txt")
NAMES = st.sampled_from([*(f"a.{suffix}" for suffix in SUFFIXES), "a.sh", "Makefile"])


@settings(max_examples=250, deadline=None, derandomize=True, database=None)
@given(path=NAMES, text=TEXTS, max_tokens=st.integers(32, 80))
def test_nothing_is_lost_ranges_are_exact_the_bound_is_kept_and_anchors_are_unique(
    path: str, text: str, max_tokens: int
) -> None:
    chunks = chunk_file(path, text, max_tokens=max_tokens)
    lines = text.split("\n")
    assert_ranges_are_exact(chunks, lines)
    assert_nothing_is_lost(chunks, lines, path)
    assert all(count_tokens(chunk.text) <= max_tokens for chunk in chunks)
    assert all(len(chunk.text) <= 26 * max_tokens for chunk in chunks)
    assert len({chunk.anchor for chunk in chunks}) == len(chunks)
    assert all(chunk.title and chunk.path == path for chunk in chunks)


def assert_ranges_are_exact(chunks: list[Chunk], lines: list[str]) -> None:
    last_line = 0
    for chunk in chunks:
        assert chunk.lines is not None
        first, last = chunk.lines
        assert 1 <= first <= last <= len(lines)
        assert first >= last_line, "chunks follow the order of the lines"
        last_line = last
        said = "\n".join(lines[first - 1 : last])
        assert chunk.text == said or (first == last and chunk.text in said)
        assert lines[first - 1].strip() and lines[last - 1].strip()


def assert_nothing_is_lost(chunks: list[Chunk], lines: list[str], path: str) -> None:
    seen: dict[int, str] = {}
    for chunk in chunks:
        assert chunk.lines is not None
        first, last = chunk.lines
        for number in range(first, last + 1):
            text = chunk.text if first == last else lines[number - 1]
            seen[number] = seen.get(number, "") + "".join(text.split())
    is_front_matter = path.endswith(".md") and bool(chunks) and lines[0].rstrip() == "---"
    start = min(seen) if is_front_matter and seen else 1
    for number in range(start, len(lines) + 1):
        assert seen.get(number, "") == "".join(lines[number - 1].split())
