"""The ontology in force: what it refuses, reports and looks at again when a version changes."""

from __future__ import annotations

import pytest

from knowledge.errors import Conflict, InvalidFact
from knowledge.graph.ontologies import (
    Revalidated,
    put_in_force,
    read_ontology,
    revalidate,
    tenant_ontology,
)
from knowledge.graph.ontology.defaults import default_ontology
from tests.graph.telling import Graph, at, fact

CLOSED = "name: acme\nversion: 1\nclosed: true\npredicates:\n  USES: {}\n"


def _put(graph: Graph, text: str) -> Revalidated:
    words = read_ontology(text, where="acme.yaml")
    return put_in_force(graph.runtime.app, graph.tenant_id, words, by="operator")


def test_a_tenant_without_its_own_has_the_default(graph: Graph) -> None:
    assert tenant_ontology(graph.runtime.app, graph.tenant_id) == default_ontology()


def test_an_unknown_predicate_is_kept_and_reported(graph: Graph) -> None:
    given = [fact("billing", "SMELLS_OF", name) for name in ("roses", "tar")]
    written = graph.tell(*given)
    assert written.added == 2
    assert sorted(graph.objects()) == ["roses", "tar"]
    ((line, times),) = written.violations.items()
    assert "SMELLS_OF" in line and times == 2


def test_a_known_predicate_with_other_types_is_kept_and_reported(graph: Graph) -> None:
    told = fact("billing", "REPORTS_TO", "ada", subjectType="service")
    written = graph.tell(told)
    assert written.added == 1 and "service" in next(iter(written.violations))


def test_a_closed_ontology_refuses_what_it_does_not_list(graph: Graph) -> None:
    _put(graph, CLOSED)
    graph.tell(fact("billing", "USES", "redis"))
    with pytest.raises(InvalidFact, match="predicate CALLS is not in ontology acme@1, which is"):
        graph.tell(fact("billing", "CALLS", "redis"))


def test_one_tenants_ontology_is_not_anothers(graph: Graph) -> None:
    other = Graph(graph.runtime, f"{graph.tenant_id}-2", graph.reader, graph.runner)
    assert other.caller
    _put(graph, CLOSED)
    assert other.tell(fact("billing", "CALLS", "redis")).added == 1


def test_a_new_version_looks_at_what_is_believed_and_rewrites_nothing(graph: Graph) -> None:
    graph.tell(
        fact("billing", "SMELLS_OF", "roses", validFrom="2020"),
        fact("billing", "SMELLS_OF", "tar", validFrom="2022"),
        fact("billing", "USES", "redis", subjectType="service"),
    )
    before = graph.rows("select to_jsonb(f) as f from graph_facts f order by telling_id")
    found = _put(
        graph,
        "name: acme\nversion: 2\npredicates:\n  SMELLS_OF: {functional: true, domain: business}\n"
        "  USES: {subject_types: [team]}\n",
    )
    assert found.changes
    assert found.against.total() >= 3
    assert any("SMELLS_OF" in line for line in found.against)
    assert any("service" in line for line in found.against)
    assert graph.rows("select to_jsonb(f) as f from graph_facts f order by telling_id") == before
    assert graph.objects(predicate="SMELLS_OF", as_of=at(2023)) == ["roses", "tar"]


def test_what_is_told_after_a_new_version_follows_it(graph: Graph) -> None:
    _put(graph, "name: acme\nversion: 2\npredicates:\n  SMELLS_OF: {functional: true}\n")
    graph.tell(
        fact("billing", "SMELLS_OF", "roses", validFrom="2020"),
        fact("billing", "SMELLS_OF", "tar", validFrom="2022"),
    )
    assert graph.objects(predicate="SMELLS_OF", as_of=at(2023)) == ["tar"]


def test_a_preview_writes_nothing(graph: Graph) -> None:
    words = read_ontology(CLOSED, where="acme.yaml")
    assert revalidate(graph.runtime.app, graph.tenant_id, words).changes
    assert tenant_ontology(graph.runtime.app, graph.tenant_id) == default_ontology()


@pytest.mark.parametrize("version", [1, 2])
def test_a_version_that_is_not_newer_is_refused(graph: Graph, version: int) -> None:
    _put(graph, CLOSED.replace("version: 1", "version: 2"))
    with pytest.raises(Conflict, match=f"version {version} is not newer than 2.* version: 3"):
        _put(graph, CLOSED.replace("version: 1", f"version: {version}"))


def test_questions_are_read_with_the_words_in_force(graph: Graph) -> None:
    graph.tell(fact("billing", "DEPENDS_ON", "redis"))
    assert graph.objects(predicate="NEEDS") == []
    _put(
        graph,
        "name: acme\nversion: 7\nextends: default\npredicates:\n  USES: {inverse: USED_BY, aliases: [NEEDS]}\n",
    )
    graph.tell(fact("billing", "NEEDS", "kafka"))
    assert graph.objects(predicate="NEEDS") == ["kafka"]
    assert graph.objects(predicate="USES") == ["kafka"]
