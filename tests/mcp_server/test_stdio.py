"""`knowledge mcp` as a process: quick to answer, silent but for messages, ended with its input."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from mcp_server.first_words import VERSIONS, FirstWords, early_answer
from mcp_server.server import Context, build_server
from mcp_server.stdio import serve
from mcp_server.tools import TOOLS, Tool
from tests.mcp_server.agents import COMMAND, Agent, environment_of

NOWHERE: Final = "http://127.0.0.1:9"
INITIALIZED: Final = {"jsonrpc": "2.0", "method": "notifications/initialized"}
HEAVY: Final = {
    "numpy",
    "onnx",
    "onnxruntime",
    "spacy",
    "dagster",
    "psycopg",
    "weaviate",
    "sqlalchemy",
    "pandas",
    "pyarrow",
    "detect_secrets",
    "phonenumbers",
}


def initialize(version: str = "2025-06-18", request_id: int | str = 1) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": request_id,
        "method": "initialize",
        "params": {
            "protocolVersion": version,
            "capabilities": {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}},
            "clientInfo": {"name": "an-agent", "version": "1", "title": "An agent"},
        },
    }


@contextmanager
def process(folder: Path, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command as an agent starts it, without a key and with an API that is away."""
    agent = Agent(NOWHERE, None, folder, environment=environment)
    with subprocess.Popen(
        [COMMAND, "mcp", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=environment_of(agent),
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def send(running: subprocess.Popen[bytes], *messages: dict[str, Any]) -> None:
    assert running.stdin is not None
    running.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    running.stdin.flush()


def receive(running: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert running.stdout is not None
    message: dict[str, Any] = json.loads(running.stdout.readline())
    return message


def test_initialize_is_answered_within_a_second_of_the_start(tmp_path: Path) -> None:
    took = []
    for _ in range(3):
        started = time.perf_counter()
        with process(tmp_path) as running:
            send(running, initialize())
            answer = receive(running)
            took.append(time.perf_counter() - started)
        assert answer["result"]["serverInfo"]["name"] == "knowledge"
    assert min(took) < 1.0, took


def test_nothing_heavy_is_loaded_to_serve() -> None:
    code = "import mcp_server.serving, sys; print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert not HEAVY & set(done.stdout.split())


def test_the_command_line_loads_next_to_nothing_before_it(tmp_path: Path) -> None:
    code = "import knowledge.cli.mcp.command, sys; print(*{n.split('.')[0] for n in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert not (HEAVY | {"mcp", "pydantic", "httpx"}) & set(done.stdout.split())


def test_a_conversation_goes_on_after_the_first_words(tmp_path: Path) -> None:
    with process(tmp_path) as running:
        send(running, initialize(request_id="first"), INITIALIZED)
        send(running, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
        send(running, {"jsonrpc": "2.0", "id": 3, "method": "ping"})
        first, *others = (receive(running) for _ in range(3))
        assert running.stdin is not None
        running.stdin.close()
        assert running.wait(10) == 0
        assert running.stdout is not None
        assert running.stdout.read() == b""
    assert first["id"] == "first"
    answers = {message["id"]: message["result"] for message in others}
    assert [tool["name"] for tool in answers[2]["tools"]] == [tool.name for tool in TOOLS]
    assert answers[3] == {}


def test_modules_of_the_agents_folder_do_not_take_the_place_of_ours(tmp_path: Path) -> None:
    for name in ("mcp_server", "json", "httpx", "knowledge", "mcp"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('hijacked')")
    with process(tmp_path) as running:
        send(running, initialize("2099-01-01"))
        assert receive(running)["result"]["protocolVersion"] in HANDSHAKE_PROTOCOL_VERSIONS


@pytest.mark.parametrize("line", [b"not json\n", b"\n", b"[]\n", b"\xff\xfe\n", b"{}\n"])
def test_what_is_no_message_does_not_end_the_conversation(tmp_path: Path, line: bytes) -> None:
    with process(tmp_path) as running:
        assert running.stdin is not None
        running.stdin.write(line)
        send(running, initialize())
        message = receive(running)
        while message.get("id") != 1:
            message = receive(running)
        assert "result" in message


@pytest.mark.parametrize(
    ("arguments", "environment", "tools"),
    [
        (
            ("--tools", "recall_context,knowledge_search"),
            {},
            ["knowledge_search", "recall_context"],
        ),
        (
            ("--read-only",),
            {},
            ["knowledge_search", "recall_context", "search_graph_nodes", "query_subgraph"],
        ),
        ((), {"KNOWLEDGE__MCP__TOOLS": "query_subgraph"}, ["query_subgraph"]),
        (("--tools", "recall_context"), {"KNOWLEDGE__MCP__TOOLS": "x"}, ["recall_context"]),
    ],
)
def test_fewer_tools_can_be_offered(
    tmp_path: Path, arguments: Sequence[str], environment: dict[str, str], tools: list[str]
) -> None:
    hidden = next(tool.name for tool in TOOLS if tool.name not in tools)
    call = {"name": hidden, "arguments": {}}
    with process(tmp_path, *arguments, **environment) as running:
        send(running, initialize(), INITIALIZED)
        send(running, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
        receive(running)
        assert [tool["name"] for tool in receive(running)["result"]["tools"]] == tools
        send(running, {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call})
        refused = receive(running)["result"]
    assert refused["isError"] is True
    assert f"there is no tool {hidden}: use {tools[0]}" in refused["content"][0]["text"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--tools", "recall"), "there is no tool recall: use knowledge_search, "),
        (("--tools", "offload_turns", "--read-only"), "no tool is left"),
        (("--url", "localhost:8080"), "localhost:8080 is no address"),
    ],
)
def test_a_wrong_set_up_is_one_line(tmp_path: Path, arguments: Sequence[str], words: str) -> None:
    with process(tmp_path, *arguments) as running:
        out, err = running.communicate(b"", timeout=20)
    assert running.returncode == 1
    assert out == b""
    (line,) = err.decode().splitlines()
    assert words in line


# --- the first words --------------------------------------------------------------------


def answered_by_the_sdk(line: bytes) -> dict[str, Any]:
    """What the server says to this line without the early answer."""
    read_end, write_end = os.pipe()
    ours, theirs = os.pipe()
    os.close(write_end)  # the input ends with the line

    async def perform(_context: Context, _tool: Tool, _body: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError

    server = build_server(TOOLS, perform, session=lambda: "s")
    try:
        asyncio.run(serve(server, FirstWords(line), read_end, theirs))
        os.close(theirs)
        with os.fdopen(ours, "rb") as written:
            answer: dict[str, Any] = json.loads(written.readline())
    finally:
        os.close(read_end)
    return answer


def test_the_first_words_cover_every_version_with_a_handshake() -> None:
    assert tuple(HANDSHAKE_PROTOCOL_VERSIONS) == VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_the_first_words_are_those_of_the_sdk(version: str) -> None:
    line = json.dumps(initialize(version)).encode() + b"\n"
    first, answer = early_answer(line)
    assert first == FirstWords(line, 1)
    assert json.loads(answer) == answered_by_the_sdk(line)


@pytest.mark.parametrize(
    "change",
    [
        {"id": None},
        {"id": 1.5},
        {"id": True},
        {"method": "tools/list"},
        {"jsonrpc": "1.0"},
        {"params": {}},
        {"params": None},
        {"params": {**initialize()["params"], "protocolVersion": "2099-01-01"}},
        {"params": {**initialize()["params"], "capabilities": {"roots": 7}}},
        {"params": {**initialize()["params"], "clientInfo": {"name": "x"}}},
        {"more": 1},
    ],
)
def test_what_is_not_plain_is_left_to_the_sdk(change: dict[str, Any]) -> None:
    line = json.dumps({**initialize(), **change}).encode() + b"\n"
    assert early_answer(line) == (FirstWords(line), b"")


def test_what_follows_the_first_line_at_once_is_not_lost() -> None:
    request = json.dumps(initialize()).encode() + b"\n"
    ping = b'{"jsonrpc":"2.0","id":2,"method":"ping"}\n'
    first, answer = early_answer(request + ping)
    assert answer
    assert first.read == request + ping
    assert answered_after(first)["id"] == 2


def answered_after(first: FirstWords) -> dict[str, Any]:
    """The first message that is written when ``first`` was read and answered already."""
    read_end, write_end = os.pipe()
    ours, theirs = os.pipe()
    os.close(write_end)

    async def perform(_context: Context, _tool: Tool, _body: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError

    server = build_server(TOOLS, perform, session=lambda: "s")
    asyncio.run(serve(server, first, read_end, theirs))
    os.close(theirs)
    os.close(read_end)
    with os.fdopen(ours, "rb") as written:
        answer: dict[str, Any] = json.loads(written.readline())
    return answer
