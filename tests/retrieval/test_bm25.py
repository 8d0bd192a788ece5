"""The one BM25 function against a plain reading of its formula, and the analyser it works on."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from knowledge.text.analysis import MAX_TERM_CHARS, analyse, count_terms, expand_terms
from knowledge.text.bm25 import (
    K1,
    TITLE_WEIGHT,
    B,
    TermStatistics,
    count,
    idf,
    match,
    match_together,
    merged,
    score,
    weigh,
)


def _okapi(terms: list[str], document: list[str], corpus: list[list[str]]) -> float:
    """Robertson and Zaragoza's sum, written down as it stands."""
    average = sum(map(len, corpus)) / len(corpus)
    total = 0.0
    for term in terms:
        df = sum(term in other for other in corpus)
        weight = math.log(1 + (len(corpus) - df + 0.5) / (df + 0.5))
        tf = document.count(term)
        total += weight * tf * (K1 + 1) / (tf + K1 * (1 - B + B * len(document) / average))
    return total


def _statistics(texts: list[list[str]], titles: list[list[str]]) -> TermStatistics:
    words = {word for text in [*texts, *titles] for word in text}
    return TermStatistics(
        len(texts),
        sum(map(len, texts)) / len(texts),
        sum(map(len, titles)) / len(titles),
        {word: sum(word in text for text in texts) for word in words},
        {word: sum(word in title for title in titles) for word in words},
    )


def test_scores_equal_the_plain_formula() -> None:
    chance = random.Random(1)
    words = ["a", "aa", "b", "ab", "ba", "long_word", "x1", "é", "日本"]
    for _ in range(200):
        titles = [chance.choices(words, k=chance.randint(1, 3)) for _ in range(12)]
        texts = [[*title, *chance.choices(words, k=chance.randint(0, 30))] for title in titles]
        query = chance.choices(words, k=chance.randint(1, 6))
        weights = weigh(query, _statistics(texts, titles))
        for text, title in zip(texts, titles, strict=True):
            expected = _okapi(query, text, texts) + TITLE_WEIGHT * _okapi(query, title, titles)
            assert score(weights, count_terms(text), count_terms(title)) == pytest.approx(expected)


def test_a_document_without_a_word_of_the_query_scores_nothing() -> None:
    weights = weigh(["lease"], TermStatistics(3, 5, 1, {"lease": 2}, {}))
    for words in ("", "clock", "leases", "released", "a lease.s"):
        assert score(weights, count_terms(words.split()), count_terms([])) == 0


def test_documents_read_together_score_like_one_text_of_that_length() -> None:
    chance = random.Random(2)
    words = ["a", "aa", "b", "ab", "long_word"]
    for _ in range(50):
        texts = [chance.choices(words, k=chance.randint(1, 20)) for _ in range(9)]
        query = chance.choices([*words, "absent"], k=chance.randint(1, 4))
        weights = weigh(query, _statistics(texts, [[]] * 9))
        parts = texts[: chance.randint(1, 5)]
        together = match_together(weights, [count(weights, count_terms(t)) for t in parts])
        joined = [term for part in parts for term in part]
        average = len(parts) * sum(map(len, texts)) / len(texts)
        one = replace(weights, average_length=average)
        assert together == pytest.approx(match(one, count_terms(joined), count_terms([])))
        assert together.held == pytest.approx(
            sum(weight for term, weight in weights.text.items() if term in joined)
        )
    assert match_together(weights, []) == (0.0, 0.0)


def test_counted_terms_expand_to_the_same_terms() -> None:
    for terms in ([], ["a"], ["b", "a", "b", "a.b"]):
        assert sorted(expand_terms(count_terms(terms)).split()) == sorted(terms)
    assert count_terms(["lease", "token", "lease"]) == "3 lease=2 token=1 "


def test_an_empty_collection_and_an_unknown_word_give_finite_weights() -> None:
    for documents in (0, 1, 5):
        weights = weigh(["x"], TermStatistics(documents, 0, 0, {"x": 9}, {}))
        assert all(math.isfinite(weight) and weight > 0 for weight in dict(weights.text).values())
        assert math.isfinite(score(weights, count_terms("xy"), count_terms("x")))


def test_rarer_words_weigh_more_and_never_less_than_nothing() -> None:
    weights = [idf(100, frequency) for frequency in range(101)]
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] > 0
    assert idf(100, 10) == pytest.approx(math.log(1 + 90.5 / 10.5))


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The leases are renewed", ["leas", "renew"]),
        ("who is it", []),
        ("from to", ["from", "to"]),
        ("", []),
        ("!? -- 'n", ["n"]),
        ("camelCase", ["camel", "case", "camelcase"]),
        ("HTTPServer", ["http", "server", "httpserver"]),
        ("snake_case_name", ["snake", "case", "name", "snake_case_name"]),
        ("knowledge.text.bm25", ["knowledg", "text", "bm", "25", "knowledge.text.bm25"]),
        ("utf8", ["utf", "8", "utf8"]),
        ("_private", ["privat"]),
        ("end.", ["end"]),
        ("Zürich über", ["zürich", "über"]),
        ("日本語", ["日本語"]),
        ("a\0b\nc", ["b", "c"]),
    ],
)
def test_words_and_identifiers_become_terms(text: str, terms: list[str]) -> None:
    assert analyse(text) == terms


def test_terms_are_short_lower_case_and_hold_no_space() -> None:
    chance = random.Random(2)
    letters = "aAbZ09_. -\n\t\0é日ß\u0130\u2028"
    for _ in range(300):
        text = "".join(chance.choices(letters, k=200)) + "x" * chance.randint(0, 200)
        for term in analyse(text):
            assert term
            assert not any(character.isspace() for character in term)
            assert len(term) <= 2 * MAX_TERM_CHARS
            assert "\0" not in term


def test_statistics_of_several_collections_are_those_of_all_documents_together() -> None:
    one = TermStatistics(3, 10.0, 2.0, {"a": 1, "b": 3}, {"a": 1})
    two = TermStatistics(1, 30.0, 4.0, {"b": 1}, {"b": 1})
    both = merged([one, two])
    assert (both.documents, both.average_length, both.average_title_length) == (4, 15.0, 2.5)
    assert (both.in_text, both.in_title) == ({"a": 1, "b": 4}, {"a": 1, "b": 1})
    assert merged([one]) is one
    assert merged([]).documents == 0
