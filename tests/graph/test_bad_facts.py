"""What is wrong with a fact, a batch or a question is said in one clear line."""

from __future__ import annotations

from typing import Any

import pytest

from knowledge.errors import InvalidFact, InvalidInput
from knowledge.graph.asserting import Batch, assert_facts
from knowledge.graph.ontology.defaults import default_ontology
from knowledge.graph.questions import Expansion, FactQuestion, HistoryQuestion, PathQuestion, Sieve
from knowledge.graph.reading import Teller, read_fact
from knowledge.model.fact import MAX_FACTS
from tests.graph.telling import OPERATOR, Graph, at, fact, observed, read

GOOD = fact("billing", "USES", "redis")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("a text", "a fact is a JSON object"),
        (None, "a fact is a JSON object"),
        (GOOD | {"validUntil": "2024"}, "unknown field 'validUntil': use acl, "),
        (GOOD | {"subject": None}, "subject is missing"),
        (GOOD | {"subject": 5}, "subject is not a text"),
        (GOOD | {"subject": " \n"}, "subject is empty"),
        (GOOD | {"object": "x" * 513}, "object has 513 characters, at most 512 are allowed"),
        (GOOD | {"object": "a\x00b"}, "object holds a control character"),
        (GOOD | {"object": "a\ud800b"}, "object holds a control character"),
        (GOOD | {"object": "\u2800 \u2800"}, "object holds nothing that can be seen"),
        (GOOD | {"object": "\u2800\u200d"}, "object holds nothing that can be seen"),
        (GOOD | {"predicate": "uses"}, "predicate 'uses' is not UPPER_SNAKE_CASE"),
        (GOOD | {"predicate": "USES__IT"}, "is not UPPER_SNAKE_CASE"),
        (GOOD | {"predicate": "U" * 65}, "is not UPPER_SNAKE_CASE of at most 64 characters"),
        (GOOD | {"domain": "finance"}, "domain 'finance' is not known: use one of code, "),
        (GOOD | {"namespace": "No Spaces"}, "namespace 'No Spaces' is not valid"),
        (GOOD | {"subjectType": "Big"}, "subjectType 'Big' is not a type name"),
        (GOOD | {"confidence": 1.1}, "confidence is not a number from 0 to 1"),
        (GOOD | {"confidence": -0.1}, "confidence is not a number from 0 to 1"),
        (GOOD | {"confidence": float("nan")}, "confidence is not a number from 0 to 1"),
        (GOOD | {"confidence": True}, "confidence is not a number from 0 to 1"),
        (GOOD | {"confidence": "0.5"}, "confidence is not a number from 0 to 1"),
        (GOOD | {"validFrom": "2024", "validTo": "2023"}, "validTo is before validFrom"),
        (GOOD | {"validFrom": "yesterday"}, "validFrom 'yesterday' is not a time"),
        (GOOD | {"validFrom": "2024-13"}, "validFrom '2024-13' is not a time"),
        (GOOD | {"validFrom": "2023-02-29"}, "validFrom '2023-02-29' is not a time"),
        (GOOD | {"validFrom": 0}, "validFrom '0' is not a time in the years 1 to 9999"),
        (GOOD | {"validFrom": True}, "validFrom 'True' is not a time"),
        (GOOD | {"validTo": "0001-01-01T00:00:00+10:00"}, "validTo '0001-01-01T"),
        (GOOD | {"observedAt": []}, "observedAt '\\[\\]' is not a time"),
        (GOOD | {"verified": "yes"}, "verified is not true or false"),
        (GOOD | {"trustTier": "Gospel"}, "trustTier is not one of SourceFact, "),
        (GOOD | {"acl": "group:x"}, "acl is not a list"),
        (GOOD | {"acl": ["x"]}, "acl is not a list of user:NAME and group:NAME"),
        (GOOD | {"acl": [{}]}, "acl is not a list of user:NAME and group:NAME"),
        (GOOD | {"corrects": "that one"}, "corrects is not an id"),
        (GOOD | {"collection": "docs"}, "collection and chunkId go together"),
        (
            GOOD | {"collection": "docs", "chunkId": "4b0f6c0e-52a6-5d8e-9d55-0a3a1f6f2c11"},
            "there is no collection docs",
        ),
        (GOOD | {"sourceId": None}, "provenance is missing: give sourceId and sourceVersion"),
        (GOOD | {"sourceVersion": None}, "sourceVersion is missing"),
        (observed("a", "USES", "b", sessionId=None), "provenance is missing"),
        (observed("a", "USES", "b", trustTier="SourceFact"), "trustTier SourceFact needs a source"),
    ],
)
def test_a_fact_that_is_not_valid_is_refused(given: Any, says: str) -> None:
    with pytest.raises(InvalidFact, match=says) as refused:
        read_fact(given, Teller("operator", default_ontology()))
    assert "\n" not in refused.value.message and len(refused.value.message) < 400


def test_a_domain_is_needed_where_the_predicate_has_none() -> None:
    given = {name: value for name, value in GOOD.items() if name != "domain"}
    with pytest.raises(InvalidFact, match="domain is missing: use one of code, "):
        read_fact(given, Teller("operator", default_ontology()))
    calls = read_fact(given | {"predicate": "CALLS"}, Teller("operator", default_ontology()))
    assert calls.domain == "code"


def test_names_at_the_cap_and_in_any_script_are_stored(graph: Graph) -> None:
    names = ["x" * 512, "名" * 512, "Straße — 'quoted' \"twice\" \\ %s", "ǅ ß ﬁ"]
    names += ["👩\u200d💻", "می\u200cخواهم", "⠓\u2800⠊"]
    graph.tell(*(fact(name, "USES", name) for name in names))
    for name in names:
        assert graph.objects(subject=name.upper()) == [name]


def test_a_million_facts_in_one_request_are_too_many(graph: Graph) -> None:
    said = [read(GOOD, default_ontology())] * 1_000_000
    with pytest.raises(InvalidFact, match=f"1,000,000 facts in one request: at most {MAX_FACTS:,}"):
        assert_facts(
            graph.runtime.app,
            graph.tenant_id,
            "p1",
            Batch(said),
            writer=OPERATOR,
            ontology=default_ontology(),
        )
    assert not graph.facts()


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: Expansion("p1", ("a",), hops=9), "hops is 9, it must be from 1 to 3"),
        (lambda: Expansion("p1", ("a",), hops=0), "hops is 0, it must be from 1 to 3"),
        (lambda: Expansion("p1", ()), "0 entities given: name 1 to 32 of them"),
        (lambda: Expansion("p1", ("a",) * 33), "33 entities given"),
        (lambda: Expansion("p1", ("a",), max_nodes=1_001), "maxNodes is 1001"),
        (lambda: Expansion("p1", ("",)), "entity is empty"),
        (lambda: Expansion("p1", ("a",), predicates=("uses",)), "is not UPPER_SNAKE_CASE"),
        (lambda: PathQuestion("p1", "a", "b", max_hops=7), "maxHops is 7, it must be from 1 to 6"),
        (lambda: PathQuestion("p1", "a", " "), "to is empty"),
        (lambda: FactQuestion("p1", limit=1_001), "limit is 1001, it must be from 1 to 1,000"),
        (lambda: FactQuestion("p1", limit=0), "limit is 0"),
        (lambda: FactQuestion("p1", subject="x" * 513), "subject has 513 characters"),
        (lambda: FactQuestion("p1", predicate="uses"), "is not UPPER_SNAKE_CASE"),
        (lambda: HistoryQuestion("p1", "a\x07"), "entity holds a control character"),
        (lambda: Sieve(between=(at(2024), at(2024))), "between ends before it begins"),
        (lambda: Sieve(between=(at(2024), at(2023))), "between ends before it begins"),
    ],
)
def test_a_question_that_is_not_valid_is_refused(ask: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        ask()
