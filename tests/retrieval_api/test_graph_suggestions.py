"""Inferred facts over HTTP: listed for who may read them, confirmed and rejected by administrators."""

from __future__ import annotations

import pytest

from knowledge.model.scope import ADMIN
from tests.graph.telling import fact
from tests.retrieval_api.conftest import CallerFactory
from tests.retrieval_api.graph import EVERYTHING, GRAPH, WRITER, decide, facts, suggestions, tell
from tests.retrieval_api.service import Caller, assert_problem


@pytest.fixture
def admin(tenant: str, caller_factory: CallerFactory) -> Caller:
    return caller_factory(tenant, scopes=EVERYTHING)


def _suggested(caller: Caller) -> str:
    """The id of the one suggestion that ``a OWNED_BY b`` gives."""
    tell(caller, fact("a", "OWNED_BY", "b", validFrom="2020", validTo="2021"))
    (found,) = suggestions(caller)
    assert (found["subject"], found["predicate"], found["object"]) == ("b", "OWNS", "a")
    return str(found["factId"])


def test_suggestions_are_listed_whatever_the_time_they_hold_at(admin: Caller) -> None:
    wanted = _suggested(admin)
    (found,) = suggestions(admin)
    assert (found["validFrom"], found["validTo"]) == (
        "2020-01-01T00:00:00Z",
        "2021-01-01T00:00:00Z",
    )
    assert found["lineage"] == [facts(admin, asOf="2020")[0]["factId"]]
    assert wanted == found["factId"]


def test_a_confirmed_suggestion_is_served_and_labelled(admin: Caller) -> None:
    wanted = _suggested(admin)
    answer = decide(admin, wanted, "confirm")
    assert (answer.status_code, answer.json()) == (
        200,
        {"factId": wanted, "suggestion": "confirmed"},
    )
    assert suggestions(admin) == []
    (found,) = facts(admin, subject="b", asOf="2020")
    assert (found["suggestion"], found["confirmedBy"]) == ("confirmed", admin.client_id)
    assert found["trustTier"] == "InferredFact"
    assert decide(admin, wanted, "confirm").status_code == 200
    assert_problem(decide(admin, wanted, "reject"), 409, "is confirmed: it cannot be rejected")


def test_a_rejected_suggestion_never_comes_again(admin: Caller) -> None:
    wanted = _suggested(admin)
    assert decide(admin, wanted, "reject").json()["suggestion"] == "rejected"
    assert suggestions(admin) == []
    tell(admin, fact("a", "OWNED_BY", "b", validFrom="2020", validTo="2021", sourceVersion="v2"))
    assert suggestions(admin) == []
    assert_problem(decide(admin, wanted, "confirm"), 409, "rejected")


def test_suggestions_come_in_pages(admin: Caller) -> None:
    tell(admin, *(fact(f"a{n}", "OWNED_BY", "b") for n in range(3)))
    asked = {"projectId": "p1", "limit": "2"}
    first = admin.get(f"{GRAPH}/suggestions", params=asked).json()
    rest = suggestions(admin, limit=2, cursor=first["nextCursor"])
    assert sorted(found["object"] for found in [*first["facts"], *rest]) == ["a0", "a1", "a2"]


def test_only_an_administrator_decides(tenant: str, caller_factory: CallerFactory) -> None:
    writer = caller_factory(tenant, scopes=WRITER)
    wanted = _suggested(writer)
    assert_problem(decide(writer, wanted, "confirm"), 403, ADMIN)
    assert_problem(decide(writer, wanted, "reject"), 403, ADMIN)
    assert len(suggestions(caller_factory(tenant))) == 1


def test_a_suggestion_that_is_not_the_callers_is_not_there(
    tenant: str, admin: Caller, caller_factory: CallerFactory
) -> None:
    wanted = _suggested(admin)
    ops = caller_factory(tenant, scopes=WRITER, groups=["ops"])
    tell(ops, fact("c", "OWNED_BY", "d", acl=["group:ops"]))
    elsewhere = caller_factory(f"{tenant}-eu", scopes=EVERYTHING)
    other_project = caller_factory(tenant, projects=["p2"], scopes=EVERYTHING)
    plain = facts(admin, asOf="2020")[0]["factId"]
    for decision in ("confirm", "reject"):
        for caller, suggestion in (
            (elsewhere, wanted),
            (other_project, wanted),
            (admin, plain),
            (admin, "6e8bc430-9c3a-11d9-9669-0800200c9a66"),
            (admin, "x"),
            (admin, "%00"),
        ):
            assert_problem(decide(caller, suggestion, decision), 404, "there is no suggestion")
    assert suggestions(elsewhere) == suggestions(other_project) == []
    assert [found["factId"] for found in suggestions(admin)] == [wanted]
