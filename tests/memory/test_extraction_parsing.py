"""What is made of an answer, however it is written."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.graph.ontology.defaults import default_ontology
from knowledge.memory.extraction.extractor import MAX_NAME_CHARS, MIN_CONFIDENCE, Spelling
from knowledge.memory.extraction.parsing import MAX_ITEMS, Answer, parse_answer

GOOD = '{"subject": "a", "predicate": "USES", "object": "b", "confidence": 0.7}'


def parse(text: str, *names: str) -> Answer:
    return parse_answer(text, default_ontology(), Spelling(names))


def triples(text: str) -> list[tuple[str, str, str]]:
    return [(each.subject, each.predicate, each.object) for each in parse(text).triples]


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"[{GOOD}]",
        f'{{"triples": [{GOOD}]}}',
        f'{{"data": {{"facts": {{"triples": [{GOOD}]}}}}}}',
        f"```json\n[{GOOD}]\n```",
        f'He said "hello {{ world\n{GOOD}\nand then: }}}} bye',
        f"{GOOD[:-1]}, ",  # broken off after the last value: nothing is complete
        '{"head": "a", "relation": "uses", "tail": "b"}',
        '{"from": "a", "type": "uses", "to": "b"}',
        '{"Subject": "a", "Predicate": "uses", "Object": "b"}',
        '{"source": {"name": "a", "type": "Service"}, "edge": "uses", "target": {"id": "b"}}',
        f'{{"triples": [{GOOD}, {{"subject": "c", "predic',
        f'{{"triples": [{GOOD}, {{"subject": "c"}}, 3, "x", null, [[]]]}}',
        f'{{"triples": [{GOOD.replace("}", chr(44) + chr(34) + "note" + chr(34) + ": {}}")}]}}',
    ],
)
def test_a_fact_is_found_wherever_it_is_complete(text: str) -> None:
    expected = [] if text.endswith(", ") else [("a", "USES", "b")]
    assert triples(text) == expected


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ('{"subject": "a", "predicate": "USES"}', "not_a_triple"),
        ('{"subject": "a", "object": "b"}', "not_a_triple"),
        ('{"thought": "none"}', "not_a_triple"),
        ('{"subject": 1, "predicate": "USES", "object": "b"}', "not_a_string"),
        ('{"subject": ["a"], "predicate": "USES", "object": "b"}', "not_a_string"),
        ('{"subject": "a", "predicate": 5, "object": "b"}', "not_a_string"),
        ('{"subject": "a", "subject": "c", "predicate": "USES", "object": "b"}', "duplicate_keys"),
        ('{"subject": "a", "predicate": "uses/owns", "object": "b"}', "predicate"),
        ('{"subject": "a", "predicate": "; DROP TABLE", "object": "b"}', "predicate"),
        ('{"subject": "a", "predicate": "ùses", "object": "b"}', "predicate"),
        ('{"subject": "a", "predicate": "A_B_C_D_E_F_G", "object": "b"}', "predicate"),
        ('{"subject": "a", "predicate": "USES", "object": "a"}', "same_names"),
        ('{"subject": " ", "predicate": "USES", "object": "b"}', "empty_name"),
        ('{"subject": "...", "predicate": "USES", "object": "b"}', "empty_name"),
        ('{"subject": "a\\u0007b", "predicate": "USES", "object": "b"}', "control_character"),
        ('{"subject": "a\\u202eb", "predicate": "USES", "object": "b"}', "control_character"),
        ('{"subject": "a\\ud800", "predicate": "USES", "object": "b"}', "control_character"),
        ('{"subject": "[redacted:email]", "predicate": "USES", "object": "b"}', "redacted"),
        (GOOD.replace('"a"', json.dumps("x" * (MAX_NAME_CHARS + 1))), "name_too_long"),
        (GOOD.replace('"a"', json.dumps("ignore all of it " * 4)), "name_too_long"),
        (GOOD.replace('"a"', json.dumps("x" * 10_000)), "item_too_long"),
        (GOOD.replace("0.7", "0.59"), "low_confidence"),
        (GOOD.replace("0.7", "NaN"), "confidence"),
        (GOOD.replace("0.7", "Infinity"), "confidence"),
        (GOOD.replace("0.7", "1e999"), "confidence"),
        (GOOD.replace("0.7", "70"), "confidence"),
        (GOOD.replace("0.7", "-1"), "confidence"),
        (GOOD.replace("0.7", "true"), "confidence"),
        (GOOD.replace("0.7", '"high"'), "confidence"),
        (GOOD.replace("0.7", "[0.7]"), "confidence"),
        (GOOD.replace("0.7", "9" * 3_900), "confidence"),
        (GOOD.replace("0.7", "0.7.7"), "not_json"),
        (GOOD.replace("0.7", "[" * 3_800 + "]" * 100), "not_json"),
    ],
)
def test_one_bad_item_loses_one_item_and_says_why(item: str, reason: str) -> None:
    answer = parse(f'{{"triples": [{GOOD}, {item}, {GOOD.replace("USES", "OWNS")}]}}')
    assert [each.predicate for each in answer.triples] == ["USES", "OWNS"]
    assert answer.dropped == {reason: 1}


@pytest.mark.parametrize(
    ("written", "predicate"),
    [
        ("depends on", "DEPENDS_ON"),
        ("dependsOn", "DEPENDS_ON"),
        ("DEPENDS_UPON", "DEPENDS_ON"),
        ("is owned by", "OWNED_BY"),
        ("IS_PART_OF", "PART_OF"),
        ("Is-Flaky-On", "IS_FLAKY_ON"),
        ("usesHTTPProxy", "USES_HTTP_PROXY"),
    ],
)
def test_a_predicate_is_written_as_the_ontology_writes_it(written: str, predicate: str) -> None:
    assert triples(GOOD.replace("USES", written)) == [("a", predicate, "b")]


def test_a_fact_without_confidence_is_just_sure_enough() -> None:
    assert parse('{"s": "a", "p": "USES", "o": "b"}').triples[0].confidence == MIN_CONFIDENCE
    assert parse(GOOD.replace("0.7", '"0.8"')).triples[0].confidence == 0.8


def test_a_time_that_is_none_is_left_out() -> None:
    dated = parse(GOOD.replace("}", ', "valid_from": "2024-05"}')).triples[0].valid_from
    assert dated is not None
    assert (dated.at.year, dated.precision) == (2024, "month")
    for wrong in ('"soon"', "99999", "[]", "true"):
        assert parse(GOOD.replace("}", f', "since": {wrong}}}')).triples[0].valid_from is None


def test_types_that_are_names_of_types_are_taken() -> None:
    item = GOOD.replace("}", ', "subject_type": "Build Job", "object_type": "<script>"}')
    [triple] = parse(item).triples
    assert (triple.subject_type, triple.object_type) == ("build_job", None)


def test_known_names_decide_the_spelling() -> None:
    [triple] = parse(GOOD.replace('"a"', '"payment  GATEWAY"'), "Payment Gateway").triples
    assert triple.subject == "Payment Gateway"


def test_a_model_that_repeats_itself_stops_being_read() -> None:
    answer = parse(GOOD * (MAX_ITEMS + 50))
    assert len(answer.triples) == MAX_ITEMS
    assert answer.dropped["too_many"] == 1


@pytest.mark.parametrize(
    "piece",
    ['{"a":', "{", "[", "}", "]", '"', "\\", '{"', '{"subject": {', "{}", "[]", '{"a":1},', "\x00",
     '{"subject":"a","predicate":"B","object":"c",', '"\\', "{{{}}}", "\ud800"],
)  # fmt: skip
def test_ten_megabytes_of_anything_take_a_few_seconds_at_most(piece: str) -> None:
    started = time.thread_time()
    parse(piece * (10_000_000 // len(piece)))
    assert time.thread_time() - started < 10


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=12) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["subject", "predicate", "object", "triples", "to", "confidence"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(_JSON.map(json.dumps) | st.text(alphabet='{}[]",:\\n \n ab1', max_size=80), st.data())
def test_no_answer_makes_it_fail(text: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(text)))
    for triple in parse(text[:cut] + GOOD).triples:
        assert 0 < len(triple.subject) <= MAX_NAME_CHARS
        assert MIN_CONFIDENCE <= triple.confidence <= 1
