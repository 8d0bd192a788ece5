"""Corrections and retractions: belief is closed, nothing is erased, and not by anybody."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import pytest

from knowledge.errors import Forbidden, NotFound
from knowledge.graph.session import Writer
from knowledge.model.fact import Closing
from tests.graph.telling import Graph, at, fact, observed, owned

ADA, BOB = Writer("ada", acl=("user:ada",)), Writer("bob", acl=("user:bob",))


def test_a_retracted_fact_is_closed_and_stays_in_the_history(graph: Graph) -> None:
    wrong = graph.tell_one(fact("billing", "USES", "redis"))
    assert graph.retract(wrong).closed == [(wrong, "retracted")]
    assert not graph.facts(subject="billing")
    (kept,) = graph.history("billing").facts
    assert (kept.closing, kept.closed_by) == (Closing.RETRACTED, "operator")
    assert kept.closed_at is not None and kept.closed_at > kept.recorded_at


def test_a_correction_closes_the_wrong_fact_in_favour_of_the_right_one(graph: Graph) -> None:
    wrong = graph.tell_one(fact("billing", "USES", "redis"))
    written = graph.tell(fact("billing", "USES", "kafka", corrects=str(wrong)))
    assert written.closed == [(wrong, "corrected")]
    assert graph.objects(subject="billing") == ["kafka"]
    closed = {each.object: each for each in graph.history("billing").facts}["redis"]
    assert (closed.closing, closed.closed_by) == (Closing.CORRECTED, str(written.fact_ids[0]))


def test_what_was_believed_at_each_moment_can_be_asked_for_again(graph: Graph) -> None:
    moments = [graph.now()]
    wrong = graph.tell_one(owned("core", "2020"))
    moments.append(graph.now())
    right = graph.tell_one(owned("edge", "2020", corrects=str(wrong)))
    moments.append(graph.now())
    graph.retract(right)
    moments.append(graph.now())
    graph.tell(owned("edge", "2020", sourceVersion="v2"))
    moments.append(graph.now())
    answers = [
        graph.objects(subject="billing", as_of=at(2024), as_known_at=moment) for moment in moments
    ]
    assert answers == [[], ["core"], ["edge"], [], ["edge"]]


def test_the_window_that_was_believed_is_answered_as_it_was(graph: Graph) -> None:
    graph.tell(owned("core", "2020"))
    before = graph.now()
    graph.tell(owned("edge", "2022"))
    assert graph.objects(subject="billing", as_of=at(2024), as_known_at=before) == ["core"]
    assert graph.objects(subject="billing", as_of=at(2024)) == ["edge"]


def test_a_retraction_twice_is_one(graph: Graph) -> None:
    wrong = graph.tell_one(fact("billing", "USES", "redis"))
    graph.retract(wrong, wrong)
    assert graph.retract(wrong).closed == []
    assert len(graph.history("billing").facts) == 1


def test_the_same_telling_again_does_not_revive_a_retracted_fact_but_a_new_one_does(
    graph: Graph,
) -> None:
    told = fact("billing", "USES", "redis")
    graph.retract(graph.tell_one(told))
    assert graph.tell(told).unchanged == 1
    assert not graph.facts(subject="billing")
    assert graph.tell(told | {"sourceVersion": "v2"}).added == 1
    assert graph.objects(subject="billing") == ["redis"]


def test_a_correction_told_again_changes_nothing(graph: Graph) -> None:
    wrong = graph.tell_one(fact("billing", "USES", "redis"))
    right = fact("billing", "USES", "kafka", corrects=str(wrong))
    graph.tell(right)
    again = graph.tell(right)
    assert (again.unchanged, again.closed) == (1, [])


def test_facts_that_correct_themselves_stay(graph: Graph) -> None:
    told = fact("billing", "USES", "redis")
    same = graph.tell_one(told)
    written = graph.tell(told | {"sourceVersion": "v2", "corrects": str(same)})
    assert (written.restated, written.closed) == (1, [])


def test_a_writer_retracts_its_own_fact_of_any_tier(graph: Graph) -> None:
    own = graph.tell_one(fact("billing", "USES", "redis"), writer=ADA)
    graph.retract(own, writer=ADA)
    assert not graph.facts(subject="billing")


def test_another_writer_may_not_retract_it_but_an_administrator_may(graph: Graph) -> None:
    others = graph.tell_one(fact("billing", "USES", "redis"), writer=ADA)
    with pytest.raises(Forbidden, match=str(others)):
        graph.retract(others, writer=BOB)
    assert graph.objects(subject="billing") == ["redis"]
    graph.retract(others, writer=Writer("root", acl=("user:root",), is_admin=True))
    assert not graph.facts(subject="billing")


def test_a_telling_of_a_lower_tier_corrects_no_higher_one(graph: Graph) -> None:
    said = graph.tell_one(fact("billing", "USES", "redis"))
    lower = fact("billing", "USES", "kafka", corrects=str(said), trustTier="InferredFact")
    with pytest.raises(Forbidden, match="SourceFact"):
        graph.tell(lower, writer=ADA)
    assert graph.objects(subject="billing") == ["redis"]


def test_a_source_corrects_what_it_said_whoever_delivers_it(graph: Graph) -> None:
    said = graph.tell_one(fact("billing", "USES", "redis"), writer=ADA)
    graph.tell(fact("billing", "USES", "cron", corrects=str(said)), writer=BOB)
    assert graph.objects(subject="billing") == ["cron"]


@pytest.mark.parametrize("by", [observed, fact])
def test_what_another_said_is_contradicted_not_corrected(graph: Graph, by: Any) -> None:
    first = graph.tell_one(observed("billing", "USES", "redis"), writer=ADA)
    with pytest.raises(Forbidden, match="who said it"):
        graph.tell(by("billing", "USES", "kafka", corrects=str(first)), writer=BOB)
    graph.tell(
        by("billing", "USES", "kafka", corrects=str(first)), writer=replace(BOB, is_admin=True)
    )
    assert graph.objects(subject="billing") == ["kafka"]


@pytest.mark.parametrize("hidden", ["acl", "source", "project", "tenant", "unknown"])
def test_what_the_writer_does_not_see_is_not_there(graph: Graph, hidden: str) -> None:
    writer = Writer("bob", acl=("user:bob",), denied=frozenset({"secret"}))
    wanted = {
        "acl": lambda: graph.tell_one(fact("a", "USES", "b", acl=["user:ada"])),
        "source": lambda: graph.tell_one(fact("a", "USES", "b", sourceId="secret")),
        "project": lambda: graph.tell_one(fact("a", "USES", "b")),
        "tenant": lambda: graph.tell_one(fact("a", "USES", "b")),
        "unknown": uuid.uuid4,
    }[hidden]()
    asked = Graph(graph.runtime, f"{graph.tenant_id}-2", graph.reader, graph.runner)
    asked.client(projects=("p1", "p2"))
    place = asked if hidden == "tenant" else graph
    project = "p2" if hidden == "project" else "p1"
    graph.client(projects=("p1", "p2"))
    with pytest.raises(NotFound, match=f"there is no fact {wanted}"):
        place.retract(wanted, writer=writer, project_id=project)
    with pytest.raises(NotFound, match=f"there is no fact {wanted}"):
        place.tell(fact("a", "USES", "c", corrects=str(wanted)), writer=writer, project_id=project)


@pytest.mark.parametrize("told", [fact("a", "USES", "b"), observed("a", "USES", "b")], ids=[0, 1])
def test_nothing_is_told_in_a_project_that_does_not_exist(
    graph: Graph, told: dict[str, Any]
) -> None:
    with pytest.raises(NotFound, match="there is no project p9"):
        graph.tell(told, project_id="p9")


def test_a_batch_with_one_refused_part_writes_nothing(graph: Graph) -> None:
    with pytest.raises(NotFound):
        graph.tell(fact("billing", "USES", "redis"), retract=[uuid.uuid4()])
    assert not graph.facts(subject="billing")
    assert not graph.announced()
    graph.require_true_counts()


def test_nobody_speaks_for_a_source_it_may_not_read(graph: Graph) -> None:
    writer = Writer("bob", acl=("user:bob",), denied=frozenset({"secret"}))
    with pytest.raises(NotFound, match="there is no source secret"):
        graph.tell(fact("a", "USES", "b", sourceId="secret"), writer=writer)
