"""Suggestions are confirmed or rejected once, by who sees them."""

from __future__ import annotations

import pytest

from knowledge.errors import Conflict, NotFound
from knowledge.graph import suggestions
from knowledge.graph.session import Writer
from knowledge.model.fact import Fact
from knowledge.model.scope import TrustTier
from tests.graph.telling import OPERATOR, Graph, fact


def _suggested(graph: Graph) -> dict[str, Fact]:
    found = graph.facts(suggestions=True)
    return {f"{f.subject} {f.predicate} {f.object}": f for f in found if f.suggestion}


def _decide(graph: Graph, decision: str, name: str, writer: Writer = OPERATOR) -> None:
    wanted = _suggested(graph)[name]
    decide = getattr(suggestions, decision)
    decide(graph.runtime.app, graph.tenant_id, "p1", wanted.fact_id, writer)


def test_a_confirmed_suggestion_is_served_and_stays_labelled(graph: Graph) -> None:
    graph.tell(fact("billing", "USES", "redis"))
    _decide(graph, "confirm", "redis USED_BY billing", Writer("ada", acl=("user:ada",)))
    found = graph.facts(subject="redis")[0]
    assert (found.tier, found.suggestion) == (TrustTier.INFERRED_FACT, "confirmed")
    assert (found.confirmed_by, found.rule) == ("ada", "inverse USES")
    graph.require_true_counts()


def test_a_confirmed_suggestion_goes_with_its_premise(graph: Graph) -> None:
    premise = graph.tell_one(fact("billing", "USES", "redis"))
    _decide(graph, "confirm", "redis USED_BY billing")
    graph.retract(premise)
    assert not graph.facts(suggestions=True)


def test_a_rejected_suggestion_is_never_made_again(graph: Graph) -> None:
    graph.tell(fact("billing", "USES", "redis"))
    _decide(graph, "reject", "redis USED_BY billing")
    graph.tell(fact("billing", "USES", "redis", sourceVersion="v2"))
    suggestions.infer_anew(graph.runtime.app, graph.tenant_id, "p1")
    assert _suggested(graph) == {}
    graph.require_true_counts()


def test_a_rejected_step_takes_along_what_rested_on_it(graph: Graph) -> None:
    graph.tell(*(fact(a, "DEPENDS_ON", b) for a, b in ("ab", "bc", "cd")))
    rejected = _suggested(graph)["b DEPENDS_ON d"].fact_id
    _decide(graph, "reject", "b DEPENDS_ON d")
    left = _suggested(graph)
    assert "a DEPENDS_ON c" in left and "b DEPENDS_ON d" not in left
    assert not any(rejected in found.lineage for found in left.values())


def test_a_suggestion_is_decided_once_and_by_who_sees_it(graph: Graph) -> None:
    graph.tell(fact("billing", "USES", "redis", acl=["group:x"]), fact("cart", "USES", "redis"))
    member, stranger = graph.client(groups=("x",)), Writer("bob", acl=("user:bob",))
    (hidden,) = graph.facts(member, suggestions=True, subject="redis", object="billing")
    place = (graph.runtime.app, graph.tenant_id, "p1")
    with pytest.raises(NotFound, match="there is no suggestion"):
        suggestions.confirm(*place, hidden.fact_id, stranger)
    stated = graph.facts(subject="cart")[0]
    with pytest.raises(NotFound, match="there is no suggestion"):
        suggestions.reject(*place, stated.fact_id, OPERATOR)
    suggestions.confirm(*place, hidden.fact_id, OPERATOR)
    suggestions.confirm(*place, hidden.fact_id, OPERATOR)  # again: nothing
    with pytest.raises(Conflict, match="is confirmed"):
        suggestions.reject(*place, hidden.fact_id, OPERATOR)


def test_what_is_rejected_is_not_suggested_from_the_other_end_either(graph: Graph) -> None:
    graph.tell(fact("a", "DEPENDS_ON", "b"), fact("b", "DEPENDS_ON", "c"))
    wrong = _suggested(graph)["a DEPENDS_ON c"]
    suggestions.reject(graph.runtime.app, graph.tenant_id, "p1", wrong.fact_id, OPERATOR)
    suggestions.reject(graph.runtime.app, graph.tenant_id, "p1", wrong.fact_id, OPERATOR)
    suggestions.infer_anew(graph.runtime.app, graph.tenant_id, "p1")
    assert {"a DEPENDS_ON c", "c DEPENDENCY_OF a"}.isdisjoint(_suggested(graph))


def test_what_was_confirmed_stays_so_while_it_follows(graph: Graph) -> None:
    graph.tell(fact("a", "DEPENDS_ON", "b"), fact("b", "DEPENDS_ON", "c"))
    right = _suggested(graph)["a DEPENDS_ON c"]
    suggestions.confirm(graph.runtime.app, graph.tenant_id, "p1", right.fact_id, OPERATOR)
    graph.tell(fact("a", "DEPENDS_ON", "b", sourceVersion="v2", confidence=0.5))
    (found,) = graph.facts(subject="a", object="c")
    assert (found.suggestion, found.confirmed_by, found.confidence) == (
        "confirmed",
        "operator",
        0.5,
    )
    graph.retract(graph.facts(subject="a", object="b")[0].fact_id)
    assert graph.facts(subject="a", object="c") == ()
    graph.require_true_counts()
