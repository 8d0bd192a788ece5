"""An API that is away or goes away: names known from before, or one clear line."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import stat
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest
from mcp import Client

from knowledge.home import Home
from knowledge.runtime import Runtime
from knowledge.security.keys import draw_key
from knowledge.stack.process import ProcessId, wait_until
from knowledge.stack.record import StackRecord, only_supervisor, write_record
from knowledge.storage.postgres import keys
from knowledge.storage.postgres.facts import writing
from mcp_server.address import Address
from mcp_server.door import ApiUnreachable
from mcp_server.known_names import KnownNames, Place, Snapshot
from mcp_server.name_search import NameSearch
from tests.mcp_server.agents import (
    Agent,
    answer_of,
    call,
    call_each,
    failure_of,
    make_key,
    over_stdio,
    talk,
    text_of,
)
from tests.mcp_server.test_access import ARGUMENTS
from tests.retrieval_api.service import serving

FACTS = [
    {"subject": "billing-service", "predicate": "DEPENDS_ON", "object": "ledger"},
    {"subject": "billing-service", "predicate": "DEPENDS_ON", "object": "postgres"},
]
AWAY = "http://127.0.0.1:9"
NAMED = ("recall_context", "search_graph_nodes")


def files_of(agent: Agent) -> list[Path]:
    return sorted((agent.state / "knowledge" / "mcp").glob("*.json"))


async def remember(client: Client, agent: Agent) -> None:
    """Facts told and recalled, and the names of them kept."""
    answer_of(await client.call_tool("upsert_graph_triples", {"triples": FACTS}))
    answer_of(await client.call_tool("recall_context", {"query": "ledger"}))
    assert await asyncio.to_thread(wait_until, lambda: bool(files_of(agent)), 10)


@pytest.fixture(scope="module")
def agent_before(home: Home, runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Agent:
    """An agent that has talked to a service which was then stopped for good."""
    tenant_id = f"away-{os.getpid()}"
    with serving(home, runtime) as url:
        key = make_key(runtime, tenant_id).text
        made = Agent(url, key, tmp_path_factory.mktemp("state"))
        talk(over_stdio, made, lambda client: remember(client, made))
    return made


@pytest.fixture
def agent(agent_before: Agent, tmp_path: Path) -> Agent:
    """The same, with a state folder of this test's own."""
    shutil.copytree(agent_before.state, tmp_path, dirs_exist_ok=True)
    return replace(agent_before, state=tmp_path)


def test_names_from_before_answer_in_a_process_that_never_saw_the_api(agent: Agent) -> None:
    recalled = call(over_stdio, agent, "recall_context", {"query": "the ledger of billing"})
    answer = answer_of(recalled)
    (path,) = files_of(agent)
    known_at = json.loads(path.read_text())["asKnownAt"]
    assert answer["mode"] == "names"
    assert answer["modeReason"] == f"the API cannot be reached: names known since {known_at}"
    assert {(e["name"], e["via"]) for e in answer["entities"]} == {
        ("ledger", "name"),
        ("billing-service", "name"),
    }
    assert answer["facts"] == []
    assert f"Facts cannot be read now: the API cannot be reached: names known since {known_at}" in (
        text_of(recalled)
    )
    assert "0 facts" not in text_of(recalled)
    nodes = answer_of(call(over_stdio, agent, "search_graph_nodes", {"query": "postgres"}))
    assert [entity["name"] for entity in nodes["entities"]] == ["postgres"]
    assert nodes["mode"] == "names"
    nothing = answer_of(call(over_stdio, agent, "search_graph_nodes", {"query": "unheard of"}))
    assert nothing["entities"] == []


def test_what_is_kept_are_names_for_the_user_alone(agent: Agent) -> None:
    (path,) = files_of(agent)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert agent.credential
    text = path.read_text() + path.name
    assert "DEPENDS_ON" not in text
    assert agent.credential[-43:] not in text


def test_names_are_for_the_key_and_the_memory_they_were_given_to(agent: Agent) -> None:
    stranger = Agent(agent.url, draw_key().text, agent.state)
    elsewhere = Agent(AWAY, agent.credential, agent.state)
    asked: tuple[tuple[Agent, dict[str, Any]], ...] = (
        (stranger, {}),
        (elsewhere, {}),
        (agent, {"graph": "another"}),
        (agent, {"graph": "another-tenant|main"}),
        (agent, {"shared": False, "sessionId": "s"}),
        (agent, {"asOf": "2020"}),
    )
    for other, more in asked:
        calls = {tool: {**ARGUMENTS[tool], **more} for tool in NAMED}
        for result in call_each(over_stdio, other, calls).values():
            assert f"cannot be reached at {other.url}" in failure_of(result)


def test_what_needs_the_api_says_that_it_is_away(agent: Agent) -> None:
    calls = {tool: given for tool, given in ARGUMENTS.items() if tool not in NAMED}
    for tool, result in call_each(over_stdio, agent, calls).items():
        line = failure_of(result)
        assert f"the knowledge service cannot be reached at {agent.url}" in line
        assert ("changes nothing twice" in line) is (tool == "upsert_graph_triples")


def test_a_refused_key_loses_the_names_it_was_given(
    home: Home, runtime: Runtime, tenant: str, tmp_path: Path
) -> None:
    key = make_key(runtime, tenant)
    with serving(home, runtime) as url:
        agent = Agent(url, key.text, tmp_path)
        talk(over_stdio, agent, lambda client: remember(client, agent))
        (path,) = files_of(agent)
        path.with_name(path.name.partition("-")[0] + "-another.json").write_text("{}")
        keys.revoke_key(runtime.owner, key.client_id)
        assert "revoked" in failure_of(call(over_stdio, agent, "recall_context", {"query": "x"}))
    assert files_of(agent) == []
    assert "cannot be reached" in failure_of(
        call(over_stdio, agent, "recall_context", {"query": "ledger"})
    )


@pytest.mark.parametrize("text", ["", "{", "[]", '{"entities": 7}', '{"entities": [{}]}', "\0"])
def test_a_broken_file_of_names_is_none(agent: Agent, text: str) -> None:
    (path,) = files_of(agent)
    path.write_text(text)
    line = failure_of(call(over_stdio, agent, "recall_context", {"query": "ledger"}))
    assert "cannot be reached" in line


def test_a_folder_that_cannot_be_written_is_done_without(
    home: Home, runtime: Runtime, tenant: str, tmp_path: Path
) -> None:
    (tmp_path / "knowledge").write_text("a file where the folder should be")
    with serving(home, runtime) as url:
        agent = Agent(url, make_key(runtime, tenant).text, tmp_path)

        async def twice(client: Client) -> Any:
            await client.call_tool("upsert_graph_triples", {"triples": FACTS})
            return await client.call_tool("recall_context", {"query": "ledger"})

        assert answer_of(talk(over_stdio, agent, twice))["mode"] in ("hybrid", "names")


def test_without_an_address_and_a_running_stack_it_says_what_to_do(
    agent: Agent, tmp_path: Path
) -> None:
    lost = Agent("", agent.credential, tmp_path)
    line = failure_of(call(over_stdio, lost, "knowledge_search", {"query": "x"}))
    assert "knowledge up" in line
    assert "KNOWLEDGE_URL" in line


def test_a_stack_that_does_not_answer_is_named_by_its_home_and_how_to_start_it(
    agent: Agent, tmp_path: Path
) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    record = StackRecord(ProcessId.of_self(), "running", api_port=9, dagster_port=0)
    environment = {"KNOWLEDGE_HOME": str(home.root)}
    lost = Agent("", agent.credential, tmp_path, environment=environment)
    with only_supervisor(home):
        write_record(home, record)
        line = failure_of(call(over_stdio, lost, "query_subgraph", {"entities": ["x"]}))
    assert line.startswith(
        f"no knowledge service runs for {home.root}: start it with `knowledge up`"
    )


def test_an_api_that_hangs_is_answered_for_by_names_after_a_while(
    home: Home, runtime: Runtime, tenant: str, tmp_path: Path
) -> None:
    key = make_key(runtime, tenant).text

    async def hung(client: Client, agent: Agent) -> Any:
        await remember(client, agent)
        service = service_at(agent.url)
        service.suspend()
        try:
            started = time.monotonic()
            recalled = await client.call_tool("recall_context", {"query": "ledger"})
            return recalled, time.monotonic() - started
        finally:
            service.resume()

    with serving(home, runtime) as url:
        agent = Agent(url, key, tmp_path)
        recalled, seconds = talk(over_stdio, agent, lambda client: hung(client, agent))
    answer = answer_of(recalled)
    assert answer["modeReason"].startswith("the API gave no answer within 5 s: names known since ")
    assert [entity["name"] for entity in answer["entities"]] == ["ledger"]
    assert "Facts cannot be read now: the API gave no answer" in text_of(recalled)
    assert seconds < 10


def test_the_running_stack_of_the_home_is_found_and_one_that_was_stopped_is_not(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path)
    home.prepare()
    address = Address(None, home)
    record = StackRecord(ProcessId.of_self(), "running", api_port=8123, dagster_port=0)
    with only_supervisor(home):
        write_record(home, record)
        assert address.find() == "http://127.0.0.1:8123"
    with pytest.raises(ApiUnreachable, match="knowledge up"):
        address.find()


def service_at(url: str) -> psutil.Process:
    """The child that listens there."""
    port = int(url.rpartition(":")[2])
    for child in psutil.Process().children(recursive=True):
        if any(
            c.laddr and c.laddr.port == port and c.status == "LISTEN"
            for c in child.net_connections()
        ):
            return child
    raise AssertionError(url)


def test_an_api_killed_during_a_call_leaves_one_copy_after_a_second_try(
    home: Home, runtime: Runtime, tenant: str, tmp_path: Path
) -> None:
    key = make_key(runtime, tenant).text
    told = {"triples": FACTS, "sessionId": "s-1"}

    async def broken_off(client: Client, url: str) -> Any:
        with runtime.app.tenant(tenant) as connection:
            writing.lock_project(
                connection, tenant, "p1"
            )  # the call waits until the transaction ends
            asked = asyncio.create_task(client.call_tool("upsert_graph_triples", told))
            service = service_at(url)
            assert await asyncio.to_thread(wait_until, lambda: is_waiting(runtime), 10)
            service.kill()
            refused = await asked
            recalled = await client.call_tool("recall_context", {"query": "ledger"})
            connection.rollback()
        return refused, recalled

    with serving(home, runtime, exit_code=-9) as url:
        agent = Agent(url, key, tmp_path)
        refused, recalled = talk(over_stdio, agent, lambda client: broken_off(client, url))
    assert "changes nothing twice" in failure_of(refused)
    assert "cannot be reached" in failure_of(recalled)
    with serving(home, runtime) as url:
        agent = Agent(url, key, tmp_path)
        first, second = (
            answer_of(call(over_stdio, agent, "upsert_graph_triples", told))["counts"]
            for _ in range(2)
        )
    assert first["added"] == len(FACTS)
    assert (second["added"], second["unchanged"]) == (0, len(FACTS))


def is_waiting(runtime: Runtime) -> bool:
    """Whether somebody waits for a lock in the database."""
    with runtime.owner.transaction() as connection:
        row = connection.execute("select count(*) as n from pg_locks where not granted").fetchone()
    assert row is not None
    return bool(row["n"])


# --- names, in this process -------------------------------------------------------------


def test_names_are_ranked_by_their_words_with_ties_by_name(tmp_path: Path) -> None:
    names = ["payment ledger", "ledger", "Ledger of Ada", "clock", "ledger"]
    entities = [{"name": name, "type": None} for name in names]
    answer = {"entities": entities, "asKnownAt": "2026-05-01T00:00:00Z", "namespace": "t|main"}
    place = Place("http://x", "key-1", None, "main")
    KnownNames(tmp_path).keep(place, Snapshot.of(answer))
    found = KnownNames(tmp_path).find(place)
    assert found is not None
    hits = [entity["name"] for entity in NameSearch(found).find("the ledger", 3)]
    assert hits[:2] == ["ledger", "ledger"]
    assert len(hits) == 3
    assert NameSearch(found).find("", 3) == []


def test_a_place_is_the_same_with_and_without_the_tenant() -> None:
    places = [Place.of("u", "k", body) for body in ({}, {"graph": "main"}, {"graph": "t|main"})]
    assert len({place.file_name for place in places}) == 1
    others = [
        Place.of("u", "k", {"graph": "b"}),
        Place.of("u", "k", {"projectId": "p"}),
        Place.of("u", "l", {}),
        Place.of("v", "k", {}),
    ]
    assert len({place.file_name for place in [*places, *others]}) == 5
