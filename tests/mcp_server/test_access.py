"""Who may ask over MCP is decided for every call anew, by the credential that comes with it."""

from __future__ import annotations

import time
from typing import Any, Final

import jwt
import pytest
from mcp import Client

from knowledge.home import Home
from knowledge.model.scope import READ, WRITE
from knowledge.runtime import Runtime
from knowledge.storage.postgres import catalogue, keys
from mcp_server.tools import TOOLS
from tests.mcp_server.agents import (
    Agent,
    Connect,
    answer_of,
    call,
    call_each,
    failure_of,
    make_key,
    over_stdio,
    post_mcp,
    talk,
)
from tests.mcp_server.conftest import AgentFactory
from tests.publication import collection_of, publish_documents
from tests.retrieval_api.service import assert_problem, caller, http

ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    "knowledge_search": {"query": "lease"},
    "recall_context": {"query": "lease"},
    "search_graph_nodes": {"query": "lease"},
    "query_subgraph": {"entities": ["lease"]},
    "upsert_graph_triples": {
        "triples": [{"subject": "lease", "predicate": "DEPENDS_ON", "object": "clock"}]
    },
    "offload_turns": {"turns": [{"role": "user", "content": "A lease depends on a clock."}]},
    "offload_status": {"jobId": "6e8bc430-9c3a-11d9-9669-0800200c9a66"},
}
TELLING: Final = "upsert_graph_triples"
RECALLING: Final = ("recall_context", "search_graph_nodes", "query_subgraph")
TOOL_NAMES: Final = [tool.name for tool in TOOLS]


def _call(url: str, credential: str | None, tool: str, **headers: str) -> Any:
    sent = {"Authorization": f"Bearer {credential}"} if credential else {}
    params = {"name": tool, "arguments": ARGUMENTS[tool]}
    return post_mcp(url, {**sent, **headers}, method="tools/call", params=params)


def _forged(home: Home, tenant: str, client: str = "client-x") -> str:
    """A token signed with the installation's own key."""
    now = int(time.time())
    claims = {
        "iss": f"knowledge:{home.installation_id}",
        "aud": "factory.knowledge",
        "sub": client,
        "tenant": tenant,
        "scope": f"{READ} {WRITE}",
        "iat": now,
        "exp": now + 600,
    }
    return jwt.encode(claims, home.signing_key, algorithm="HS256")


# --- HTTP: before the SDK sees anything ---------------------------------------------------


@pytest.mark.parametrize("tool", TOOL_NAMES)
@pytest.mark.parametrize("credential", [None, "kk_", "kk_key-0123456789abcdef_", "garbage"])
def test_without_a_credential_no_tool_is_reached(
    url: str, tool: str, credential: str | None
) -> None:
    response = _call(url, credential, tool)
    assert_problem(response, 401)
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("method", ["initialize", "tools/list", "server/discover"])
def test_without_a_credential_not_even_the_tools_are_listed(url: str, method: str) -> None:
    assert_problem(post_mcp(url, {}, method=method, params={}), 401, "API key")


@pytest.mark.parametrize("tool", TOOL_NAMES)
def test_the_installations_own_key_grants_nothing(
    url: str, home: Home, runtime: Runtime, tenant: str, tool: str
) -> None:
    publish_documents(runtime, collection_of(runtime, tenant), [{"id": "a", "text": "a lease"}])
    assert_problem(_call(url, home.signing_key, tool), 401)
    assert_problem(_call(url, home.database_key, tool), 401)
    assert_problem(_call(url, _forged(home, tenant), tool), 401, "revoked")


def test_the_installations_own_key_grants_nothing_over_stdio(
    agent_factory: AgentFactory, home: Home, tenant: str
) -> None:
    agent = agent_factory(tenant)
    forged = Agent(agent.url, _forged(home, tenant), agent.state)
    for result in call_each(over_stdio, forged, ARGUMENTS).values():
        assert "revoked" in failure_of(result)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example"])
def test_a_name_that_was_bound_to_this_address_is_refused(
    url: str, agent_factory: AgentFactory, tenant: str, host: str
) -> None:
    key = agent_factory(tenant).credential
    assert _call(url, key, "knowledge_search", Host=host).status_code == 421
    assert _call(url, key, "knowledge_search", Origin=f"http://{host}").status_code == 403


def test_only_post_is_answered(url: str, agent_factory: AgentFactory, tenant: str) -> None:
    headers = {
        "Authorization": f"Bearer {agent_factory(tenant).credential}",
        "Accept": "text/event-stream",
    }
    for method in ("GET", "DELETE", "PUT"):
        response = http().request(method, f"{url}/mcp", headers=headers)
        assert_problem(response, 405, "POST")
        assert response.headers["allow"] == "POST"


def test_a_body_that_is_too_large_is_refused(
    url: str, agent_factory: AgentFactory, tenant: str
) -> None:
    headers = {
        "Authorization": f"Bearer {agent_factory(tenant).credential}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }

    def parts() -> Any:
        for _ in range(45):
            yield b" " * 100_000

    announced = http().post(f"{url}/mcp", headers=headers, content=b" " * 4_500_000)
    assert_problem(announced, 413, "larger")
    assert http().post(f"{url}/mcp", headers=headers, content=parts()).status_code == 413


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"jsonrpc":"2.0"}']
)
def test_what_is_no_message_is_the_senders_fault(
    url: str, agent_factory: AgentFactory, tenant: str, body: bytes
) -> None:
    headers = {
        "Authorization": f"Bearer {agent_factory(tenant).credential}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    response = http().post(f"{url}/mcp", headers=headers, content=body)
    assert 400 <= response.status_code < 500, response.text
    assert "Traceback" not in response.text


def test_each_request_is_answered_for_its_own_credential(
    url: str, agent_factory: AgentFactory, tenant: str, runtime: Runtime
) -> None:
    other = f"{tenant}-eu"
    catalogue.ensure_project(runtime.owner, other, "p1")
    for name in (tenant, other, tenant):
        response = _call(url, agent_factory(name).credential, "knowledge_search")
        assert "mcp-session-id" not in response.headers
        answer = response.json()["result"]["structuredContent"]
        assert answer["scope"]["tenantId"] == name


def test_an_access_token_is_as_good_as_a_key(
    connect: Connect, agent_factory: AgentFactory, runtime: Runtime, tenant: str
) -> None:
    agent = agent_factory(tenant)
    token = caller(agent.url, runtime, tenant).token
    with_token = Agent(agent.url, token, agent.state)
    found = answer_of(call(connect, with_token, "knowledge_search", {"query": "lease"}))
    assert found["scope"]["tenantId"] == tenant


# --- what a key may do ------------------------------------------------------------------


def test_a_key_without_the_write_scope_reads_only(
    connect: Connect, agent_factory: AgentFactory, tenant: str
) -> None:
    agent = agent_factory(tenant, scopes=(READ,))
    answer_of(call(connect, agent, "recall_context", ARGUMENTS["recall_context"]))
    refused = call(connect, agent, "upsert_graph_triples", ARGUMENTS["upsert_graph_triples"])
    assert WRITE in failure_of(refused)


def test_another_tenants_memory_and_collections_are_not_there(
    connect: Connect, agent_factory: AgentFactory, runtime: Runtime, tenant: str
) -> None:
    other = f"{tenant}-eu"
    publish_documents(
        runtime, collection_of(runtime, other, "secret"), [{"id": "a", "text": "a lease"}]
    )
    theirs = agent_factory(other)
    told = call(connect, theirs, "upsert_graph_triples", ARGUMENTS["upsert_graph_triples"])
    assert answer_of(told)["counts"]["added"] == 1
    agent = agent_factory(tenant)
    asked = {tool: ARGUMENTS[tool] for tool in ("knowledge_search", *RECALLING)}
    found = {t: answer_of(r) for t, r in call_each(connect, agent, asked).items()}
    assert found["knowledge_search"]["candidates"] == []
    for tool in RECALLING:
        assert found[tool].get("facts", []) == []
        assert all(entity.get("distance") == 0 for entity in found[tool]["entities"])
    named = {t: {**ARGUMENTS[t], "graph": f"{other}|main"} for t in (*RECALLING, TELLING)}
    named["knowledge_search"] = {"query": "lease", "collections": ["secret"]}
    for result in call_each(connect, agent, named).values():
        assert "there is no" in failure_of(result)


def test_a_key_of_one_project_asks_about_no_other(
    connect: Connect, agent_factory: AgentFactory, runtime: Runtime, tenant: str
) -> None:
    catalogue.ensure_project(runtime.owner, tenant, "p2")
    agent = agent_factory(tenant, project="p2")
    tools = ("knowledge_search", TELLING, *RECALLING)
    asked = {tool: {**ARGUMENTS[tool], "projectId": "p1"} for tool in tools}
    for result in call_each(connect, agent, asked).values():
        assert "there is no project p1" in failure_of(result)


@pytest.mark.parametrize("tool", TOOL_NAMES)
def test_a_revoked_key_is_refused_on_its_next_call(
    url: str, runtime: Runtime, tenant: str, tool: str
) -> None:
    key = make_key(runtime, tenant)
    assert _call(url, key.text, "knowledge_search").status_code == 200
    keys.revoke_key(runtime.owner, key.client_id)
    assert_problem(_call(url, key.text, tool), 401, "revoked")


def test_a_revoked_key_is_refused_over_stdio_within_a_conversation(
    agent_factory: AgentFactory, runtime: Runtime, tenant: str
) -> None:
    agent = agent_factory(tenant)

    async def revoked_meanwhile(client: Client) -> list[Any]:
        answer_of(await client.call_tool("knowledge_search", ARGUMENTS["knowledge_search"]))
        assert agent.credential
        keys.revoke_key(runtime.owner, agent.credential.split("_")[1])
        return [await client.call_tool(tool, given) for tool, given in ARGUMENTS.items()]

    for result in talk(over_stdio, agent, revoked_meanwhile):
        assert "revoked" in failure_of(result)


def test_an_expired_key_is_refused_by_every_tool(
    url: str, runtime: Runtime, tenant: str, agent_factory: AgentFactory
) -> None:
    agent = agent_factory(tenant, days=1)
    assert agent.credential
    with runtime.owner.transaction() as connection:
        connection.execute(
            "update clients set expires_at = now() - interval '1 s' where client_id = %s",
            [agent.credential.split("_")[1]],
        )
    for tool in TOOL_NAMES:
        assert_problem(_call(url, agent.credential, tool), 401, "expired")
    line = failure_of(call(over_stdio, agent, "recall_context", ARGUMENTS["recall_context"]))
    assert "expired" in line


@pytest.mark.parametrize("held", ["${KNOWLEDGE_API_KEY}", "hello", "kk_key-0123", "a.b", "a b.c.d"])
def test_a_variable_that_holds_no_key_is_said_to_hold_none(
    agent_factory: AgentFactory, tenant: str, held: str
) -> None:
    agent = agent_factory(tenant)
    agent.state.joinpath("key").write_text(held)
    given = {"query": "lease"}
    line = failure_of(
        call(over_stdio, Agent(agent.url, held, agent.state), "recall_context", given)
    )
    assert line.startswith("KNOWLEDGE_API_KEY holds no key (kk_…) nor access token")
    assert "knowledge keys create" in line
    by_file = Agent(agent.url, None, agent.state, arguments=("--key-file", "key"))
    assert "the key file key holds no key" in failure_of(
        call(over_stdio, by_file, "recall_context", given)
    )


def test_without_a_key_stdio_lists_its_tools_and_says_what_is_missing(
    agent_factory: AgentFactory, tenant: str
) -> None:
    agent = agent_factory(tenant)
    nobody = Agent(agent.url, None, agent.state)
    for result in call_each(over_stdio, nobody, ARGUMENTS).values():
        assert "KNOWLEDGE_API_KEY" in failure_of(result)
