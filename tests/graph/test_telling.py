"""What telling a fact does: new, told anew, late, or known."""

from __future__ import annotations

from typing import Any

import pytest

from knowledge.graph.session import Written
from knowledge.model.fact import Closing, Domain, Precision
from knowledge.model.scope import TrustTier
from tests.graph.telling import Graph, at, fact, observed


def _counts(written: Written) -> dict[str, int]:
    names = ("added", "restated", "outdated", "unchanged")
    return {name: getattr(written, name) for name in names if getattr(written, name)}


def test_the_same_batch_again_changes_nothing(graph: Graph) -> None:
    batch = [
        fact("billing", "USES", "redis"),
        fact("billing", "OWNED_BY", "core"),
        fact("billing", "OWNED_BY", "edge", validFrom="2024"),
    ]
    first, again = graph.tell(*batch), graph.tell(*batch)
    assert _counts(first) == {"added": 3}
    assert _counts(again) == {"unchanged": 3}
    assert again.fact_ids == first.fact_ids and not again.closed
    assert len(graph.history("billing").facts) == 3


def test_a_fact_twice_in_one_batch_is_one(graph: Graph) -> None:
    written = graph.tell(fact("billing", "USES", "redis"), fact("billing", "USES", "redis"))
    assert _counts(written) == {"added": 1, "unchanged": 1}
    assert graph.objects(subject="billing") == ["redis"]


def test_a_fact_told_at_a_new_version_is_restated_and_believed_once(graph: Graph) -> None:
    first = graph.tell(fact("billing", "USES", "redis"))
    second = graph.tell(fact("billing", "USES", "redis", sourceVersion="v2"))
    assert _counts(second) == {"restated": 1}
    assert second.fact_ids == first.fact_ids
    (found,) = graph.facts(subject="billing")
    assert found.provenance.source_version == "v2"
    old, new = graph.history("billing").facts
    assert (old.closing, old.closed_by) == (Closing.RESTATED, str(new.telling_id))
    assert new.closed_at is None


def test_an_older_telling_that_arrives_late_is_kept_but_not_believed(graph: Graph) -> None:
    new = fact("billing", "USES", "redis", sourceVersion="v2", observedAt="2024-06-01")
    old = fact("billing", "USES", "redis", sourceVersion="v1", observedAt="2024-01-01")
    graph.tell(new)
    late = graph.tell(old)
    assert _counts(late) == {"outdated": 1} and not late.closed
    (found,) = graph.facts(subject="billing")
    assert found.provenance.source_version == "v2"
    assert len(graph.history("billing").facts) == 2
    assert _counts(graph.tell(old)) == {"unchanged": 1}


def test_of_several_tellings_in_one_batch_the_latest_is_believed(graph: Graph) -> None:
    tellings = [
        fact("billing", "USES", "redis", sourceVersion=f"v{month}", observedAt=f"2024-0{month}")
        for month in (3, 9, 1)
    ]
    assert _counts(graph.tell(*tellings)) == {"added": 1, "outdated": 2}
    (found,) = graph.facts(subject="billing")
    assert found.provenance.source_version == "v9"


def test_two_owners_who_say_the_same_say_two_facts(graph: Graph) -> None:
    graph.tell(
        fact("billing", "USES", "redis", sourceId="s1"),
        fact("billing", "USES", "redis", sourceId="s2"),
        observed("billing", "USES", "redis"),
    )
    found = graph.facts(subject="billing")
    assert {each.provenance.owner for each in found} == {
        "source:s1",
        "source:s2",
        "principal:operator",
    }
    assert len({each.fact_id for each in found}) == 3


def test_disjoint_windows_of_one_triple_stay_apart(graph: Graph) -> None:
    graph.tell(
        fact("ada", "WORKS_ON", "billing", validFrom="2015", validTo="2017"),
        fact("ada", "WORKS_ON", "billing", validFrom="2020", validTo="2022"),
    )
    held = {year: graph.objects(subject="ada", as_of=at(year)) for year in range(2014, 2023)}
    assert [year for year, objects in held.items() if objects] == [2015, 2016, 2020, 2021]
    assert len(graph.history("ada").facts) == 2


def test_a_window_holds_from_its_begin_until_just_before_its_end(graph: Graph) -> None:
    graph.tell(fact("ada", "WORKS_ON", "billing", validFrom="2020", validTo="2021"))
    for moment, holds in [
        ("2019-12-31T23:59:59.999999", False),
        ("2020-01-01T00:00:00", True),
        ("2020-12-31T23:59:59.999999", True),
        ("2021-01-01T00:00:00", False),
    ]:
        asked = at(2020).fromisoformat(f"{moment}+00:00")
        assert bool(graph.facts(subject="ada", as_of=asked)) is holds, moment


def test_a_question_about_a_window_finds_what_meets_it(graph: Graph) -> None:
    graph.tell(
        fact("ada", "WORKS_ON", "early", validFrom="2018", validTo="2020"),
        fact("ada", "WORKS_ON", "later", validFrom="2021", validTo="2023"),
        fact("ada", "WORKS_ON", "always"),
    )
    assert graph.objects(between=(at(2020), at(2021))) == ["always"]
    assert graph.objects(between=(at(2019, 12, 31), at(2021))) == ["always", "early"]
    assert graph.objects(between=(at(2020), at(2021, 1, 2))) == ["always", "later"]


def test_a_window_that_is_empty_is_kept_and_never_holds(graph: Graph) -> None:
    graph.tell(fact("ada", "WORKS_ON", "billing", validFrom="2020", validTo="2020"))
    assert not graph.facts(subject="ada", as_of=at(2020))
    assert not graph.facts(subject="ada", between=(at(2019), at(2021)))
    assert len(graph.history("ada").facts) == 1


def test_an_unbounded_fact_holds_at_any_time(graph: Graph) -> None:
    graph.tell(fact("ada", "WORKS_ON", "billing"))
    for moment in (at(1), at(2000), at(9999)):
        (found,) = graph.facts(subject="ada", as_of=moment)
        assert (found.valid_from, found.valid_to) == (None, None)


@pytest.mark.parametrize(
    ("given", "begins", "precision"),
    [
        ("2024", at(2024), Precision.YEAR),
        (2024, at(2024), Precision.YEAR),
        ("2024-05", at(2024, 5), Precision.MONTH),
        (202405, at(2024, 5), Precision.MONTH),
        ("2024-05-03", at(2024, 5, 3), Precision.DAY),
        ("2024-05-03T02:00:00+02:00", at(2024, 5, 3), Precision.INSTANT),
        ("987", at(987), Precision.YEAR),
    ],
)
def test_a_time_keeps_its_precision_and_stands_for_its_first_instant(
    graph: Graph, given: Any, begins: Any, precision: Precision
) -> None:
    graph.tell(fact("ada", "WORKS_ON", "billing", validFrom=given))
    (found,) = graph.facts(subject="ada")
    assert found.valid_from is not None
    assert (found.valid_from.at, found.valid_from.precision) == (begins, precision)
    assert not graph.facts(subject="ada", as_of=begins.replace(year=begins.year - 1))


def test_a_statement_is_found_by_any_spelling_of_its_names(graph: Graph) -> None:
    graph.tell(fact("Billing  Service", "DEPENDS_UPON", "Ｒｅｄｉｓ"))
    for subject, predicate, object_ in [
        ("billing service", "DEPENDS_ON", "redis"),
        ("BILLING SERVICE", "DEPENDS_UPON", "Redis"),
    ]:
        (found,) = graph.facts(subject=subject, predicate=predicate, object=object_)
        assert (found.subject, found.predicate) == ("Billing Service", "DEPENDS_ON")


def test_filters_narrow_by_domain_trust_source_and_verification(graph: Graph) -> None:
    graph.tell(
        fact("billing", "USES", "redis", verified=True),
        fact("billing", "USES", "kafka", sourceId="s2", domain="architecture"),
        observed("billing", "USES", "cron"),
    )
    assert graph.objects(domains=(Domain.ARCHITECTURE,)) == ["kafka"]
    assert graph.objects(min_trust=TrustTier.INFERRED_FACT) == ["kafka", "redis"]
    assert graph.objects(source_id="s2") == ["kafka"]
    assert graph.objects(verified=True) == ["redis"]
