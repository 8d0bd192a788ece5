"""What a batch announces (GraphFactsUpdated, one event a domain), and the counts that it keeps."""

from __future__ import annotations

from typing import Any

import pytest

from knowledge.graph.session import ANALYSED_FROM
from tests.graph.telling import Graph, fact, observed, owned


def _event(graph: Graph, domain: str, added: int, closed: int, **more: Any) -> dict[str, Any]:
    counts = {"domain": domain, "added": added, "closed": closed}
    return {"tenantId": graph.tenant_id} | counts | more


def test_each_domain_that_changed_is_announced_once_a_batch(graph: Graph) -> None:
    graph.tell(
        fact("billing", "USES", "redis"),
        fact("billing", "USES", "kafka"),
        fact("a", "CALLS", "b", domain="code", sourceId="s2"),
    )
    assert graph.announced() == [
        _event(graph, "code", 1, 0, sourceId="s2"),
        _event(graph, "organization", 2, 0, sourceId="s1"),
    ]


def test_facts_of_several_sources_are_announced_without_one(graph: Graph) -> None:
    graph.tell(fact("a", "USES", "b"), fact("a", "USES", "c", sourceId="s2"))
    graph.tell(observed("a", "USES", "d"))
    assert graph.announced() == [
        _event(graph, "organization", 2, 0),
        _event(graph, "organization", 1, 0),
    ]


def test_ends_of_belief_and_of_validity_are_announced_as_closed(graph: Graph) -> None:
    first = graph.tell_one(owned("core", "2020"))
    graph.tell(owned("edge", "2022"))
    graph.retract(first)
    assert [(each["added"], each["closed"]) for each in graph.announced()] == [
        (1, 0),
        (1, 1),
        (0, 1),
    ]


def test_a_source_told_anew_with_a_successor_announces_what_that_ended(graph: Graph) -> None:
    graph.tell(owned("core", "2020"))
    graph.tell(owned("core", "2020", sourceVersion="v2"), owned("edge", "2022", sourceVersion="v2"))
    assert graph.announced()[-1] == _event(graph, "organization", 1, 1, sourceId="s1")


@pytest.mark.parametrize("again", ["v1", "v2"])
def test_nothing_new_announces_nothing(graph: Graph, again: str) -> None:
    graph.tell(owned("core", "2020"), owned("edge", "2022"))
    graph.tell(owned("core", "2020", sourceVersion=again))
    assert len(graph.announced()) == 1


def test_suggestions_are_announced_when_they_are_served(graph: Graph) -> None:
    graph.tell(fact("billing", "USES", "redis"))
    assert [each["added"] for each in graph.announced()] == [1]


def test_counts_are_those_of_the_believed_rows_through_everything(graph: Graph) -> None:
    graph.client(projects=("p1", "p2"))
    wrong = graph.tell_one(owned("core", "2020"))
    graph.require_true_counts()
    graph.tell(owned("edge", "2020", corrects=str(wrong)), observed("a", "DEPENDS_ON", "b"))
    graph.require_true_counts()
    graph.tell(observed("b", "DEPENDS_ON", "c"), owned("edge", "2020", sourceVersion="v2"))
    graph.require_true_counts()
    graph.tell(fact("a", "CALLS", "b", domain="code"), project_id="p2")
    graph.retract(*(each.fact_id for each in graph.facts(subject="a")))
    graph.require_true_counts()


def test_metrics_count_facts_by_tenant_domain_and_tier(graph: Graph) -> None:
    graph.tell(owned("core"), fact("a", "OVERRIDES", "b", domain="code"))
    with graph.runtime.owner.transaction() as connection:
        rows = connection.execute(
            "select domain, trust_tier, facts from count_graph_facts() where tenant_id = %s"
            " order by 1, 2",
            [graph.tenant_id],
        ).fetchall()
    assert [tuple(row.values()) for row in rows] == [
        ("code", "SourceFact", 1),
        ("organization", "SourceFact", 1),
    ]


def test_a_bulk_load_is_one_batch_with_true_counts(graph: Graph) -> None:
    facts = [fact("hub", "TRIED", f"o{number}") for number in range(ANALYSED_FROM + 1)]
    assert graph.tell(*facts).added == len(facts)
    graph.require_true_counts()
    assert graph.announced() == [
        _event(graph, "organization", len(facts), 0, sourceId="s1"),
    ]
