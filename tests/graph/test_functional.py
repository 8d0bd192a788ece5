"""One owner at a time: which fact of a functional predicate ends which."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.graph.telling import Graph, at, fact, observed, owned

YEARS = range(2018, 2027)


def _owners(graph: Graph, **wanted: Any) -> dict[int, list[str]]:
    """Who owns billing at the begin of each year."""
    return {year: graph.objects(subject="billing", as_of=at(year), **wanted) for year in YEARS}


def _years(owners: dict[int, list[str]], owner: str) -> list[int]:
    return [year for year, names in owners.items() if owner in names]


def test_a_later_fact_ends_the_one_before(graph: Graph) -> None:
    first = graph.tell_one(owned("core", "2020"))
    written = graph.tell(owned("edge", "2023"))
    assert written.closed == [(first, "superseded")]
    owners = _owners(graph)
    assert _years(owners, "core") == [2020, 2021, 2022]
    assert _years(owners, "edge") == [2023, 2024, 2025, 2026]
    (before,) = graph.facts(subject="billing", as_of=at(2021))
    assert before.valid_to is not None and before.valid_to.at == at(2023)
    assert (before.superseded_by, before.stated_to) == (written.fact_ids[0], None)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_the_order_of_arrival_makes_no_difference(graph: Graph, order: tuple[int, ...]) -> None:
    told = [owned("core", "2019"), owned("edge", "2021"), owned("data", "2024")]
    for number in order:
        graph.tell(told[number])
    owners = _owners(graph)
    assert [owners[year] for year in (2018, 2019, 2020, 2021, 2023, 2024)] == [
        [],
        ["core"],
        ["core"],
        ["edge"],
        ["edge"],
        ["data"],
    ]


def test_a_predicate_that_is_not_functional_ends_nothing(graph: Graph) -> None:
    graph.tell(fact("billing", "USES", "redis", validFrom="2020"))
    written = graph.tell(fact("billing", "USES", "kafka", validFrom="2023"))
    assert not written.closed
    assert graph.objects(subject="billing", as_of=at(2024)) == ["kafka", "redis"]


def test_a_lower_tier_never_ends_a_higher_and_both_are_listed_as_contradicting(
    graph: Graph,
) -> None:
    source = graph.tell_one(owned("core", "2020"))
    written = graph.tell(observed("billing", "OWNED_BY", "edge", validFrom="2023"))
    assert not written.closed
    found = {each.object: each for each in graph.facts(subject="billing", as_of=at(2024))}
    assert found["core"].contradicts == written.fact_ids
    assert found["edge"].contradicts == (source,)
    (alone,) = graph.facts(subject="billing", as_of=at(2021))
    assert alone.contradicts == ()


def test_a_lower_tier_does_not_narrow_a_higher_from_below(graph: Graph) -> None:
    graph.tell(owned("core"), observed("billing", "OWNED_BY", "edge", validFrom="2019"))
    assert _years(_owners(graph), "core") == list(YEARS)


def test_a_higher_tier_ends_a_lower(graph: Graph) -> None:
    graph.tell(observed("billing", "OWNED_BY", "edge", validFrom="2020"))
    graph.tell(owned("core", "2023"))
    assert _years(_owners(graph), "edge") == [2020, 2021, 2022]


def test_at_the_same_begin_the_higher_tier_then_confidence_then_observation_wins(
    graph: Graph,
) -> None:
    graph.tell(observed("billing", "OWNED_BY", "agent's", validFrom="2020"))
    rivals = [
        owned("sure", "2020", confidence=0.9, observedAt="2020-02-01"),
        owned("unsure", "2020", confidence=0.5, observedAt="2020-03-01"),
        owned("surer and later", "2020", confidence=0.9, observedAt="2020-02-02"),
    ]
    graph.tell(*rivals)
    assert _owners(graph)[2021] == ["surer and later"]


def test_a_stated_end_before_the_successor_leaves_a_gap(graph: Graph) -> None:
    graph.tell(owned("core", "2019", validTo="2021"), owned("edge", "2023"))
    owners = _owners(graph)
    assert _years(owners, "core") == [2019, 2020]
    assert owners[2022] == []
    (before,) = graph.facts(subject="billing", as_of=at(2020))
    assert before.superseded_by is None


def test_an_owner_comes_back_only_when_that_is_said(graph: Graph) -> None:
    graph.tell(owned("core", "2019"), owned("edge", "2021", validTo="2023"))
    assert _years(_owners(graph), "core") == [2019, 2020]
    graph.tell(owned("core", "2023"))
    assert _years(_owners(graph), "core") == [2019, 2020, 2023, 2024, 2025, 2026]


def test_without_a_begin_a_fact_holds_back_to_its_predecessor(graph: Graph) -> None:
    graph.tell(owned("core", observedAt="2022"))
    assert _years(_owners(graph), "core") == list(YEARS)
    graph.tell(owned("edge", "2019"))
    owners = _owners(graph)
    assert _years(owners, "edge") == [2019, 2020, 2021]
    assert _years(owners, "core") == [2022, 2023, 2024, 2025, 2026]


def test_what_had_ended_when_it_was_observed_ends_nothing_after_it(graph: Graph) -> None:
    graph.tell(owned("edge", "2021"), owned("core", validTo="2020", observedAt="2024"))
    owners = _owners(graph)
    assert _years(owners, "core") == [2018, 2019]
    assert _years(owners, "edge") == [2021, 2022, 2023, 2024, 2025, 2026]


def test_an_empty_window_ends_nothing(graph: Graph) -> None:
    graph.tell(owned("core", "2020"), owned("nobody", "2023", validTo="2023"))
    assert _years(_owners(graph), "core") == [2020, 2021, 2022, 2023, 2024, 2025, 2026]


def test_the_same_owner_stated_again_later_contradicts_nothing(graph: Graph) -> None:
    graph.tell(owned("core", "2020"), owned("Core", "2022", sourceId="s2"))
    (found,) = graph.facts(subject="billing", as_of=at(2023))
    assert found.contradicts == ()
    assert _years(_owners(graph), "core") == [2020, 2021]


@pytest.mark.parametrize(
    "elsewhere",
    [{"namespace": "other"}, {"domain": "architecture"}, {"acl": ["group:x"]}],
    ids=lambda given: next(iter(given)),
)
def test_facts_of_another_namespace_domain_or_acl_are_not_ended(
    graph: Graph, elsewhere: dict[str, Any]
) -> None:
    member = graph.client(groups=("x",))
    graph.tell(owned("core", "2020"))
    assert not graph.tell(owned("edge", "2023", **elsewhere)).closed
    found = graph.facts(member, subject="billing", as_of=at(2024))
    assert sorted(each.object for each in found) == ["core", "edge"]
    assert all(each.contradicts for each in found)


def test_a_fact_of_another_project_neither_ends_nor_contradicts(graph: Graph) -> None:
    both = graph.client(projects=("p1", "p2"))
    graph.tell(owned("core", "2020"))
    assert not graph.tell(owned("edge", "2023"), project_id="p2").closed
    (found,) = graph.facts(both, subject="billing", as_of=at(2024))
    assert (found.object, found.contradicts) == ("core", ())


def test_an_acl_is_a_set_whatever_its_order(graph: Graph) -> None:
    member = graph.client(groups=("x",))
    graph.tell(owned("core", "2020", acl=["group:x", "group:y"]))
    graph.tell(owned("edge", "2023", acl=["group:y", "group:x", "group:y"]))
    assert graph.objects(member, subject="billing", as_of=at(2024)) == ["edge"]


def test_code_that_differs_in_case_is_different_code(graph: Graph) -> None:
    for name, status in (("Config", "live"), ("config", "dead")):
        graph.tell(fact(name, "HAS_STATUS", status, domain="code", validFrom="2020"))
    found = graph.facts(subject="config", as_of=at(2021))
    assert sorted(each.object for each in found) == ["dead", "live"]
    assert not any(each.contradicts for each in found)


def test_retracting_the_successor_reopens_what_it_ended(graph: Graph) -> None:
    graph.tell(owned("core", "2019"))
    wrong = graph.tell_one(owned("edge", "2021"))
    graph.retract(wrong)
    assert _years(_owners(graph), "core") == list(YEARS)[1:]
    (found,) = graph.facts(subject="billing", as_of=at(2024))
    assert (found.valid_to, found.superseded_by) == (None, None)


def test_restating_a_successor_ends_nothing_anew(graph: Graph) -> None:
    graph.tell(owned("core", "2019"), owned("edge", "2021"))
    again = graph.tell(owned("edge", "2021", sourceVersion="v2"))
    assert (again.restated, again.closed) == (1, [])


def test_a_third_fact_between_ends_only_its_neighbour(graph: Graph) -> None:
    first = graph.tell_one(owned("core", "2019"))
    graph.tell(owned("data", "2025"))
    assert graph.tell(owned("edge", "2022")).closed == [(first, "superseded")]
