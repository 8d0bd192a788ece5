"""Postings against the one BM25 function, on the same words."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.text import bm25
from knowledge.text.bm25 import TermStatistics
from knowledge.text.postings import Postings

WORDS = st.lists(st.sampled_from(["car", "port", "ledger", "api", "x"]), max_size=6)


def statistics(documents: list[list[str]]) -> TermStatistics:
    """Of documents that have a word at least and no title."""
    held = [document for document in documents if document]
    average = sum(map(len, held)) / max(len(held), 1)
    frequencies = Counter(term for document in held for term in set(document))
    return TermStatistics(len(held), average, 0, frequencies, {})


@given(st.lists(WORDS, max_size=12), WORDS)
def test_scores_are_those_of_the_one_bm25(documents: list[list[str]], query: list[str]) -> None:
    postings = Postings()
    for document in documents:
        postings.add(document)
    weights = bm25.weigh(query, statistics(documents))
    wanted = [bm25.score(weights, bm25_words(document), "0 ") for document in documents]
    assert postings.scores(query).tolist() == pytest.approx(wanted)


def bm25_words(document: list[str]) -> str:
    counts = Counter(document)
    return f"{len(document)} " + "".join(f"{term}={n} " for term, n in sorted(counts.items()))


@given(st.lists(WORDS, min_size=1, max_size=8), st.lists(WORDS, min_size=1, max_size=8), WORDS)
def test_what_was_replaced_ranks_as_if_it_had_always_been_so(
    before: list[list[str]], after: list[list[str]], query: list[str]
) -> None:
    changed, fresh = Postings(), Postings()
    size = min(len(before), len(after))
    for document in before[:size]:
        changed.add(document)
    changed.scores(query)  # what it has looked up once must follow as well
    for number, document in enumerate(after[:size]):
        changed.replace(number, document)
        fresh.add(document)
    assert changed.scores(query).tolist() == pytest.approx(fresh.scores(query).tolist())
    for number in range(size):
        share = changed.coverage(query, number)
        assert 0 <= share <= 1 + 1e-9
        assert share == pytest.approx(fresh.coverage(query, number))
