"""What follows from facts: suggested with its lineage, served when asked for, withdrawn with a premise."""

from __future__ import annotations

from typing import Any

import pytest

from knowledge.graph.ontology.model import Ontology
from knowledge.model.fact import Closing, Fact
from knowledge.model.scope import TrustTier
from tests.graph.ontologies import parse
from tests.graph.telling import Graph, at, fact, observed

HOPS = parse(
    "name: acme\nversion: 1\npredicates:\n"
    "  FEEDS: {transitive: true}\n  HELD_BY: {functional: true, inverse: HOLDS}\n  HOLDS: {inverse: HELD_BY}\n"
    "  SITS_IN: {}\n  WORKS_IN: {}\n"
    "compositions:\n  - {name: seat, first: HELD_BY, then: SITS_IN, gives: WORKS_IN}\n"
)
SEAT = [fact("desk", "HELD_BY", "ada", validFrom="2020"), fact("ada", "SITS_IN", "berlin")]


def _suggested(graph: Graph, **wanted: Any) -> dict[str, Fact]:
    found = graph.facts(suggestions=True, **wanted)
    return {f"{f.subject} {f.predicate} {f.object}": f for f in found if f.suggestion}


def _feeds(subject: str, object_: str, **fields: object) -> dict[str, object]:
    return fact(subject, "FEEDS", object_, **fields)


def _tell_hops(graph: Graph, *given: dict[str, object], ontology: Ontology = HOPS) -> None:
    graph.tell(*given, ontology=ontology)


def test_what_follows_is_served_only_when_asked_for(graph: Graph) -> None:
    written = graph.tell(fact("billing", "USES", "redis"))
    assert (written.added, written.suggested) == (1, 1)
    assert graph.triples() == {"billing USES redis"}
    inverse = _suggested(graph)["redis USED_BY billing"]
    assert (inverse.rule, inverse.lineage) == ("inverse USES", written.fact_ids)
    assert inverse.tier is TrustTier.INFERRED_FACT


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)], ids=str)
def test_a_transitive_chain_is_closed_in_whatever_order_it_is_told(
    graph: Graph, order: tuple[int, ...]
) -> None:
    links = [_feeds("a", "b"), _feeds("b", "c"), _feeds("c", "d")]
    for number in order:
        _tell_hops(graph, links[number])
    assert set(_suggested(graph)) == {"a FEEDS c", "b FEEDS d", "a FEEDS d"}
    graph.require_true_counts()


def test_two_predicates_compose_into_a_third(graph: Graph) -> None:
    _tell_hops(graph, *SEAT)
    found = _suggested(graph)
    assert set(found) == {"ada HOLDS desk", "desk WORKS_IN berlin"}
    seat = found["desk WORKS_IN berlin"]
    assert (seat.rule, len(seat.lineage), seat.lineage_sources) == ("seat", 2, ("s1",))


def test_it_is_trusted_and_sure_as_the_least_of_its_lineage(graph: Graph) -> None:
    _tell_hops(
        graph,
        _feeds("a", "b", confidence=0.9),
        observed("b", "FEEDS", "c", confidence=0.7),
        observed("c", "FEEDS", "d", confidence=0.8, trustTier="UnverifiedMemory"),
    )
    found = _suggested(graph)
    assert {name: (f.tier, f.confidence) for name, f in found.items()} == {
        "a FEEDS c": (TrustTier.AGENT_OBSERVATION, 0.7),
        "b FEEDS d": (TrustTier.UNVERIFIED_MEMORY, 0.7),
        "a FEEDS d": (TrustTier.UNVERIFIED_MEMORY, 0.7),
    }


def test_it_holds_while_all_premises_hold(graph: Graph) -> None:
    _tell_hops(
        graph,
        _feeds("a", "b", validFrom="2019", validTo="2023"),
        _feeds("b", "c", validFrom="2021"),
        _feeds("c", "d", validFrom="2024"),
    )
    found = {**_suggested(graph, as_of=at(2022)), **_suggested(graph, as_of=at(2025))}
    chain = found["a FEEDS c"]
    assert chain.valid_from is not None and chain.valid_to is not None
    assert (chain.valid_from.at, chain.valid_to.at) == (at(2021), at(2023))
    assert "a FEEDS d" not in found


def test_it_is_read_by_who_reads_every_premise(graph: Graph) -> None:
    member = graph.client(groups=("x",))
    _tell_hops(graph, _feeds("a", "b"), _feeds("b", "c", acl=["group:x"]), _feeds("c", "d"))
    _tell_hops(graph, _feeds("d", "e", acl=["group:y"]))
    assert _suggested(graph) == {}
    seen = graph.triples(member, suggestions=True)
    assert {"a FEEDS c", "b FEEDS d", "a FEEDS d"} <= seen
    assert not any(name.endswith(" e") for name in graph.triples(member, suggestions=True))


def test_retracting_a_premise_withdraws_all_that_rested_on_it(graph: Graph) -> None:
    first = graph.tell(_feeds("a", "b"), _feeds("b", "c"), _feeds("c", "d"), ontology=HOPS)
    before = graph.now()
    graph.retract(first.fact_ids[1], ontology=HOPS)
    assert _suggested(graph) == {}
    assert graph.triples() == {"a FEEDS b", "c FEEDS d"}
    assert len(_suggested(graph, as_known_at=before)) == 3
    closed = graph.rows("select closing from graph_facts where rule is not null")
    assert {row["closing"] for row in closed} == {Closing.PREMISE}
    graph.require_true_counts()


def test_what_follows_from_other_premises_too_is_suggested_again(graph: Graph) -> None:
    links = [_feeds("a", "b"), _feeds("b", "d"), _feeds("a", "c"), _feeds("c", "d")]
    told = graph.tell(*links, ontology=HOPS)
    graph.retract(told.fact_ids[0], ontology=HOPS)
    again = _suggested(graph)["a FEEDS d"]
    assert set(again.lineage) == set(told.fact_ids[2:])


def test_a_premise_that_ends_earlier_ends_what_rests_on_it_earlier(graph: Graph) -> None:
    _tell_hops(graph, *SEAT)
    assert "desk WORKS_IN berlin" in _suggested(graph, as_of=at(2024))
    _tell_hops(graph, fact("desk", "HELD_BY", "bob", validFrom="2023"))
    assert set(_suggested(graph, as_of=at(2024))) == {"bob HOLDS desk"}
    assert "desk WORKS_IN berlin" in _suggested(graph, as_of=at(2022))


def test_a_premise_that_begins_later_begins_what_rests_on_it_later(graph: Graph) -> None:
    _tell_hops(graph, fact("desk", "HELD_BY", "ada", observedAt="2022"))
    assert "ada HOLDS desk" in _suggested(graph, as_of=at(2020))
    _tell_hops(graph, fact("desk", "HELD_BY", "bob", validFrom="2019"))
    assert set(_suggested(graph, as_of=at(2020))) == {"bob HOLDS desk"}
    assert set(_suggested(graph, as_of=at(2023))) == {"ada HOLDS desk"}


def test_a_premise_that_holds_longer_lengthens_what_rests_on_it(graph: Graph) -> None:
    _tell_hops(graph, fact("desk", "HELD_BY", "ada", validFrom="2020"))
    wrong = graph.tell_one(fact("desk", "HELD_BY", "bob", validFrom="2023"), ontology=HOPS)
    graph.retract(wrong, ontology=HOPS)
    assert set(_suggested(graph, as_of=at(2024))) == {"ada HOLDS desk"}


def test_a_premise_that_is_restated_less_surely_makes_what_rests_on_it_less_sure(
    graph: Graph,
) -> None:
    _tell_hops(graph, _feeds("a", "b"), _feeds("b", "c"))
    _tell_hops(graph, _feeds("a", "b", sourceVersion="v2", confidence=0.3))
    assert _suggested(graph)["a FEEDS c"].confidence == 0.3


def test_what_somebody_states_already_is_not_suggested(graph: Graph) -> None:
    _tell_hops(graph, fact("desk", "WORKS_IN", "berlin"), *SEAT)
    assert set(_suggested(graph)) == {"ada HOLDS desk"}


def test_what_nobody_states_any_more_is_suggested_where_it_follows(graph: Graph) -> None:
    stated = graph.tell(
        *(fact(a, "FEEDS", b) for a, b in ("ab", "bc", "ac")),
        *SEAT,
        fact("ada", "HOLDS", "desk", validFrom="2020"),
        ontology=HOPS,
    )
    assert set(_suggested(graph)) == {"desk WORKS_IN berlin"}
    graph.retract(stated.fact_ids[2], stated.fact_ids[-1], ontology=HOPS)
    assert set(_suggested(graph)) == {"a FEEDS c", "ada HOLDS desk", "desk WORKS_IN berlin"}


def test_a_circle_ends_and_nothing_relates_to_itself(graph: Graph) -> None:
    _tell_hops(graph, _feeds("a", "b"), _feeds("b", "c"), _feeds("c", "a"))
    assert set(_suggested(graph)) == {"a FEEDS c", "b FEEDS a", "c FEEDS b"}


@pytest.mark.parametrize(
    "other",
    [{"namespace": "other"}, {"subjectType": "river"}, {"validFrom": "2030"}],
    ids=lambda given: next(iter(given)),
)
def test_facts_of_two_namespaces_types_or_times_do_not_meet(
    graph: Graph, other: dict[str, str]
) -> None:
    first = _feeds("a", "b", objectType="tank", validTo="2029")
    _tell_hops(graph, first, _feeds("b", "c", **other))
    assert not graph.facts(suggestions=True, as_of=at(2028), subject="a", object="c")
    assert not graph.facts(suggestions=True, as_of=at(2031), subject="a", object="c")


def test_an_inverse_stays_while_another_source_says_its_premise(graph: Graph) -> None:
    told = graph.tell(*(fact("billing", "USES", "redis", sourceId=name) for name in ("s1", "s2")))
    for left in (1, 0):
        ended = _suggested(graph)["redis USED_BY billing"].lineage
        graph.retract(*ended)
        assert len(_suggested(graph)) == left
    assert len(set(told.fact_ids)) == 2


def test_a_source_told_anew_with_a_successor_ends_what_rested_on_the_predecessor(
    graph: Graph,
) -> None:
    _tell_hops(graph, *SEAT)
    again = [given | {"sourceVersion": "v2"} for given in SEAT]
    successor = fact("desk", "HELD_BY", "bob", validFrom="2023", sourceVersion="v2")
    written = graph.tell(*again, successor, ontology=HOPS)
    assert [reason for _, reason in written.closed] == ["superseded"]
    assert set(_suggested(graph, as_of=at(2024))) == {"bob HOLDS desk"}
