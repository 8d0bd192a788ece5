"""A caller is answered from the facts it may read now, whatever it asks and however."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from knowledge.model.scope import ADMIN, READ, WRITE
from knowledge.runtime import Runtime
from knowledge.storage.postgres import catalogue
from tests.graph.telling import fact
from tests.publication import collection_of, publish_documents
from tests.retrieval_api.conftest import CallerFactory
from tests.retrieval_api.graph import (
    EVERYTHING,
    GRAPH,
    WRITER,
    ask,
    facts,
    objects,
    tell,
    tell_one,
    try_ask,
    try_tell,
)
from tests.retrieval_api.service import Caller, assert_problem, http

READS: list[tuple[str, dict[str, Any]]] = [
    ("query", {}),
    ("expand", {"entities": ["a"]}),
    ("paths", {"from_": "a", "to": "c"}),
    ("history", {"entity": "a"}),
]


@pytest.fixture
def writer(tenant: str, caller_factory: CallerFactory) -> Caller:
    return caller_factory(tenant, scopes=WRITER)


def _seen(caller: Caller) -> dict[str, set[str]]:
    """What each way of asking shows of the line a → b → c: predicates of facts."""
    expanded = ask(caller, "expand", entities=["a"], hops=3)["edges"]
    ways = ask(caller, "paths", from_="a", to="c")["paths"]
    return {
        "query": {found["predicate"] for found in facts(caller)},
        "expand": {edge["fact"]["predicate"] for edge in expanded},
        "paths": {found["predicate"] for way in ways for found in way["facts"]},
        "history": {found["predicate"] for found in ask(caller, "history", entity="b")["facts"]},
    }


_BOTH = {"CAUSED_BY", "MENTIONED_IN"}
ALL = dict.fromkeys(("query", "expand", "paths", "history"), _BOTH)
NOTHING: dict[str, set[str]] = {way: set() for way in ALL}


def _line(caller: Caller, **second: Any) -> None:
    """a → b is for everyone; who may not see b → c does not get from a to c."""
    tell(caller, fact("a", "CAUSED_BY", "b"), fact("b", "MENTIONED_IN", "c", **second))


FIRST = {
    "query": {"CAUSED_BY"},
    "expand": {"CAUSED_BY"},
    "paths": set(),
    "history": {"CAUSED_BY"},
}


def test_another_tenants_facts_are_never_met(
    tenant: str, writer: Caller, caller_factory: CallerFactory
) -> None:
    _line(writer)
    theirs = caller_factory(f"{tenant}-eu", scopes=WRITER)
    assert _seen(theirs) == NOTHING
    tell(theirs, fact("a", "REPLACED_BY", "theirs"))
    assert _seen(writer) == ALL


def test_another_projects_facts_are_never_met(
    tenant: str, writer: Caller, caller_factory: CallerFactory
) -> None:
    _line(writer)
    both = caller_factory(tenant, projects=["p2", "p1"], scopes=WRITER)
    assert _seen(both) == NOTHING
    assert ask(both, "query", projectId="p1")["facts"]


@pytest.mark.parametrize(("operation", "fields"), READS)
def test_a_project_that_is_not_the_callers_is_not_there(
    writer: Caller, operation: str, fields: dict[str, Any]
) -> None:
    refused = [
        assert_problem(try_ask(writer, operation, **fields, projectId=name), 404)["detail"]
        for name in ("p2", "nothing")
    ]
    assert refused == ["there is no project p2", "there is no project nothing"]


def test_facts_are_written_to_the_callers_projects_only(
    tenant: str, writer: Caller, caller_factory: CallerFactory
) -> None:
    said = fact("a", "CAUSED_BY", "b")
    assert_problem(try_tell(writer, said, projectId="p2"), 404, "there is no project p2")
    other = caller_factory(tenant, projects=["p2"], scopes=WRITER)
    assert facts(other) == []


def test_a_revoked_client_is_refused_on_the_next_request(runtime: Runtime, writer: Caller) -> None:
    _line(writer)
    catalogue.revoke_client(runtime.owner, writer.client_id)
    for operation, fields in READS:
        assert_problem(try_ask(writer, operation, **fields), 401, "revoked")
    assert_problem(try_tell(writer, fact("a", "CAUSED_BY", "d")), 401, "revoked")


def test_a_fact_for_a_group_is_gone_with_the_group(
    runtime: Runtime, tenant: str, writer: Caller, caller_factory: CallerFactory
) -> None:
    _line(caller_factory(tenant, scopes=WRITER, groups=["ops"]), acl=["group:ops"])
    reader = caller_factory(tenant, groups=["ops"])
    assert _seen(reader) == ALL
    assert _seen(writer) == FIRST
    catalogue.change_client(runtime.owner, reader.client_id, groups=["eng"])
    assert _seen(reader) == FIRST


def test_a_source_that_may_no_longer_be_read_takes_its_facts_along(
    runtime: Runtime, tenant: str, writer: Caller
) -> None:
    docs = collection_of(runtime, tenant)
    publish_documents(runtime, docs, [{"id": "a.md", "text": "b is mentioned"}], source="s2")
    _line(writer, sourceId="s2")
    assert _seen(writer) == ALL
    catalogue.set_source_acl(runtime.app, docs, "s2", ("group:ops",))
    assert _seen(writer) == FIRST
    said = fact("b", "MENTIONED_IN", "d", sourceId="s2")
    assert_problem(try_tell(writer, said), 404, "there is no source s2")
    catalogue.set_source_acl(runtime.app, docs, "s2", None)
    assert _seen(writer) == ALL


def test_a_chunk_that_may_no_longer_be_read_takes_its_facts_along(
    runtime: Runtime, tenant: str, writer: Caller
) -> None:
    docs = collection_of(runtime, tenant)
    document = {"id": "a.md", "text": "b is mentioned"}
    publish_documents(runtime, docs, [document])
    (found,) = [c for c in writer.search("mentioned")["candidates"] if c["type"] == "chunk"]
    _line(writer, sourceId="other", collection="docs", chunkId=found["citation"]["chunkId"])
    assert _seen(writer) == ALL
    publish_documents(runtime, docs, [{**document, "acl": ["group:ops"]}])
    assert _seen(writer) == FIRST


def test_who_cannot_see_a_fact_cannot_end_it_and_learns_nothing(
    tenant: str, writer: Caller, caller_factory: CallerFactory
) -> None:
    ops = caller_factory(tenant, scopes=WRITER, groups=["ops"])
    hidden = tell_one(ops, fact("a", "CAUSED_BY", "b", acl=["group:ops"]))
    admin = caller_factory(tenant, scopes=EVERYTHING)
    for caller in (writer, admin):
        retracting = try_tell(caller, retract=[hidden])
        correcting = try_tell(caller, fact("a", "CAUSED_BY", "c", corrects=hidden))
        for response in (retracting, correcting):
            assert_problem(response, 404, f"there is no fact {hidden}")


def test_nobody_tells_what_it_could_not_read(writer: Caller) -> None:
    for acl in (["group:ops"], []):
        response = try_tell(writer, fact("a", "CAUSED_BY", "b", acl=acl))
        assert_problem(response, 403, "an acl must admit who tells the fact")
    tell(writer, fact("a", "CAUSED_BY", "b", acl=["group:ops", f"user:{writer.client_id}"]))
    assert len(facts(writer)) == 1


def test_a_cursor_is_good_for_its_own_question_and_client_only(
    tenant: str, writer: Caller, caller_factory: CallerFactory
) -> None:
    tell(writer, *(fact("a", "CAUSED_BY", f"b{n}") for n in range(3)))
    cursor = ask(writer, "query", subject="a", limit=1)["nextCursor"]
    assert len(ask(writer, "query", subject="a", limit=1, cursor=cursor)["facts"]) == 1
    theirs = caller_factory(f"{tenant}-eu", scopes=WRITER)
    tell(theirs, *(fact("a", "CAUSED_BY", f"b{n}") for n in range(3)))
    colleague = caller_factory(tenant)
    for response in (
        try_ask(theirs, "query", subject="a", limit=1, cursor=cursor),
        try_ask(colleague, "query", subject="a", limit=1, cursor=cursor),
        try_ask(writer, "query", subject="b", limit=1, cursor=cursor),
        try_ask(writer, "query", subject="a", limit=1, cursor=cursor[:-4]),
    ):
        assert_problem(response, 422, "repeat the question without a cursor")


# --- OAuth scopes -----------------------------------------------------------------------


@pytest.mark.parametrize("scopes", [(READ,), (READ, ADMIN)])
def test_facts_are_told_with_the_write_scope_only(
    tenant: str, caller_factory: CallerFactory, scopes: tuple[str, ...]
) -> None:
    caller = caller_factory(tenant, scopes=scopes)
    assert_problem(try_tell(caller, fact("a", "CAUSED_BY", "b")), 403, WRITE)
    assert facts(caller) == []


@pytest.mark.parametrize(("operation", "fields"), READS)
def test_facts_are_read_with_the_read_scope_only(
    tenant: str, caller_factory: CallerFactory, operation: str, fields: dict[str, Any]
) -> None:
    caller = caller_factory(tenant, scopes=(WRITE,))
    assert_problem(try_ask(caller, operation, **fields), 403, READ)
    assert tell(caller, fact("a", "CAUSED_BY", "b"))["added"] == 1


def test_a_scope_taken_back_acts_on_the_next_request(runtime: Runtime, writer: Caller) -> None:
    tell(writer, fact("a", "CAUSED_BY", "b"))
    with runtime.owner.transaction() as connection:
        connection.execute(
            "update clients set scopes = %s where client_id = %s", [[READ], writer.client_id]
        )
    assert_problem(try_tell(writer, fact("a", "CAUSED_BY", "c")), 403, WRITE)
    assert objects(writer) == ["b"]


@pytest.mark.parametrize(
    "send",
    [
        lambda url: http().post(f"{url}{GRAPH}/query", json={"projectId": "p1"}),
        lambda url: http().post(f"{url}{GRAPH}/facts", json={"projectId": "p1", "facts": []}),
        lambda url: http().get(f"{url}{GRAPH}/suggestions?projectId=p1"),
        lambda url: http().post(f"{url}{GRAPH}/suggestions/x/confirm", json={"projectId": "p1"}),
    ],
)
def test_a_request_without_a_token_is_refused(url: str, send: Callable[[str], Any]) -> None:
    assert_problem(send(url), 401, "Authorization: Bearer")
