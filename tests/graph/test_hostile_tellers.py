"""What a client with the write scope tries on facts that are not its own, or that it does not see."""

from __future__ import annotations

import base64
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from knowledge.errors import Forbidden, InvalidFact, InvalidInput, NotFound
from knowledge.graph import suggestions
from knowledge.graph.cursor import Cursor, read_cursor, write_cursor
from knowledge.graph.querying import FactPlan
from knowledge.graph.session import Writer
from knowledge.model.scope import Caller
from knowledge.storage.postgres import catalogue
from knowledge.storage.postgres.facts.filters import Place
from tests.graph.telling import Graph, fact, owned
from tests.publication import collection_of, publish_documents


def _plan(graph: Graph, caller: Caller) -> FactPlan:
    return graph.runner.run(graph.reader.plan(caller, "p1"))


def _writer(graph: Graph, caller: Caller) -> Writer:
    """As the doors make one of a caller: with what it may read now."""
    plan = _plan(graph, caller)
    return Writer(caller.client_id, plan.scope.acl_entries, frozenset(plan.facts.denied))


@pytest.fixture
def ada(graph: Graph) -> Writer:
    return _writer(graph, graph.client())


@pytest.fixture
def bob(graph: Graph) -> Writer:
    return _writer(graph, graph.client())


def test_who_tells_a_fact_again_may_not_take_it_back(
    graph: Graph, ada: Writer, bob: Writer
) -> None:
    said = graph.tell_one(fact("a", "USES", "b", verified=True), writer=ada)
    again = graph.tell(fact("a", "USES", "b", sourceVersion="v2"), writer=bob)
    assert again.restated == 1
    with pytest.raises(Forbidden, match="another's"):
        graph.retract(said, writer=bob)
    (found,) = graph.facts(subject="a")
    assert found.verified and found.provenance.source_version == "v2"
    graph.retract(said, writer=ada)
    repeated = graph.tell(fact("a", "USES", "b", sourceVersion="v2"), writer=bob)
    assert (repeated.unchanged, repeated.ended) == (1, 1)
    assert graph.facts(subject="a") == ()


def test_nothing_is_observed_in_the_future(graph: Graph) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    with pytest.raises(InvalidFact, match="future"):
        graph.tell(fact("a", "USES", "b", observedAt=soon.isoformat()))


def test_nobody_speaks_for_documents_it_may_not_read(graph: Graph) -> None:
    collection = collection_of(graph.runtime, graph.tenant_id)
    publish_documents(graph.runtime, collection, [{"id": "x", "text": "secret"}], source="hr")
    catalogue.set_source_acl(graph.runtime.app, collection, "hr", ("group:hr",))
    stranger = _writer(graph, graph.client())
    with pytest.raises(NotFound, match="no source hr"):
        graph.tell(fact("a", "USES", "mallory", sourceId="hr"), writer=stranger)
    graph.tell(
        fact("a", "USES", "b", sourceId="hr"), writer=_writer(graph, graph.client(groups=["hr"]))
    )


def test_an_acl_admits_who_tells(graph: Graph, ada: Writer) -> None:
    with pytest.raises(Forbidden, match="admit who tells"):
        graph.tell(owned("mallory", "2025", acl=["group:hr"]), writer=ada)


def test_what_ends_unseen_is_not_named(graph: Graph, ada: Writer) -> None:
    graph.tell(owned("alice", "2020", sourceId="s2"))
    graph.change_source("s2", acl=["group:hr"])
    graph.tell(owned("first", "2021"))
    seen = graph.tell(owned("mallory", "2025"), writer=_writer(graph, graph.client()))
    assert [reason for _, reason in seen.closed] == ["superseded"]
    assert seen.closed[0][0] in {found.fact_id for found in graph.history("billing").facts}


def test_hidden_premises_do_not_show_in_the_count_of_suggestions(graph: Graph) -> None:
    graph.tell(fact("mid", "DEPENDS_ON", "deep", acl=["group:hr"]))
    told = graph.tell(fact("probe", "DEPENDS_ON", "mid"), writer=_writer(graph, graph.client()))
    plain = graph.tell(fact("other", "DEPENDS_ON", "leaf"), writer=_writer(graph, graph.client()))
    assert told.suggested == plain.suggested


def test_a_rejected_suggestion_of_a_functional_predicate_does_not_return(graph: Graph) -> None:
    graph.tell(fact("core", "OWNS", "billing"))
    place = (graph.runtime.app, graph.tenant_id, "p1")
    (wrong,) = graph.facts(subject="billing", predicate="OWNED_BY", suggestions=True)
    suggestions.reject(*place, wrong.fact_id, Writer("operator"))
    graph.tell(fact("core", "OWNS", "billing", sourceVersion="v2", confidence=0.9))
    for _ in range(2):
        suggestions.infer_anew(*place)
    assert graph.facts(subject="billing", predicate="OWNED_BY", suggestions=True) == ()


@pytest.mark.parametrize("zone", ["+14:00", "-14:00"])
@pytest.mark.parametrize("at", ["0001-01-01T00:00:00", "9999-12-31T23:59:59"])
def test_a_cursor_with_times_that_utc_cannot_hold_is_refused_or_read(at: str, zone: str) -> None:
    place = Place(None, uuid.uuid4())
    good = Cursor(place, datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC))
    text = base64.urlsafe_b64decode(write_cursor(good, "q") + "==").decode()
    forged = text.replace("2025-01-01T00:00:00+00:00", at + zone, 1)
    cursor = base64.urlsafe_b64encode(forged.encode()).decode().rstrip("=")
    try:
        assert read_cursor(cursor, "q").known_at.tzinfo is not None
    except InvalidInput as error:
        assert "cursor" in error.message
