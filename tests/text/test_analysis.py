"""What the analyser keeps in memory."""

from __future__ import annotations

from knowledge.text import analysis
from knowledge.text.analysis import MAX_TERM_CHARS, analyse


def test_of_a_long_word_only_what_is_searched_for_is_remembered() -> None:
    start = "q" * (MAX_TERM_CHARS - 1)
    before = analysis._terms.cache_info()
    assert analyse(f"{start}z" + "x" * 8_000) == [f"{start}z"]
    assert analyse(f"{start}z" + "y" * 8_000) == [f"{start}z"]
    after = analysis._terms.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (1, 1)


def test_a_word_that_is_cut_has_the_terms_of_its_beginning() -> None:
    start = "Order." + "a" * (MAX_TERM_CHARS - 6)
    assert analyse(start + ".b" * 100) == analyse(start)
