from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from knowledge.cli.main import VERBS
from tests.cli.memory.conftest import COMMAND, PAYLOADS, Hooks, recorded
from tests.cli.memory.service import FakeService, fact, recalled

PLUGIN = Path(__file__).parents[3] / "deploy" / "claude-code"
LIMITS_S = {"SessionStart": 5, "PreCompact": 2}


def read(name: str) -> Any:
    return json.loads((PLUGIN / name).read_text())


def test_the_manifest_names_the_plugin_and_the_marketplace_lists_it() -> None:
    manifest = read(".claude-plugin/plugin.json")
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", manifest["name"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", manifest["version"])
    assert manifest["description"] and manifest["author"]["name"]
    # Both are found where they are: named here they would be loaded twice.
    assert not {"hooks", "mcpServers"} & set(manifest)
    (listed,) = read(".claude-plugin/marketplace.json")["plugins"]
    assert (listed["name"], listed["source"]) == (manifest["name"], "./")


def test_the_hooks_are_called_for_every_start_and_compaction_in_the_time_they_need() -> None:
    hooks = read("hooks/hooks.json")["hooks"]
    assert set(hooks) == set(LIMITS_S)
    assert hooks["SessionStart"][0]["matcher"] == "startup|resume|clear|compact"
    assert hooks["PreCompact"][0]["matcher"] == "manual|auto"
    for event, ((group,), limit_s) in {e: (hooks[e], LIMITS_S[e]) for e in hooks}.items():
        (hook,) = group["hooks"]
        assert (event, hook["type"], hook["timeout"]) == (event, "command", limit_s)


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("SessionStart", "claude-code-session-start-compact"),
        ("PreCompact", "claude-code-pre-compact-auto"),
    ],
)
def test_each_hook_of_the_plugin_does_its_work(
    event: str, payload: str, hooks: Hooks, service: FakeService
) -> None:
    service.answer = recalled(fact("Ledger", "OWNS", "refunds"))
    program, verb, *arguments = shlex.split(
        read("hooks/hooks.json")["hooks"][event][0]["hooks"][0]["command"]
    )
    assert (program, verb) == ("knowledge", "memory")
    path = str(PAYLOADS / "claude-code.jsonl")
    ended = hooks.run(*arguments, payload=recorded(payload, transcript_path=path))
    assert ended.answer is not None and ended.err == ""
    assert len(service.asked) == 1
    assert hooks.status()[arguments[0]]["outcome"] == "ok"


def test_the_server_of_the_plugin_is_a_verb() -> None:
    server = read(".mcp.json")["mcpServers"]["knowledge"]
    assert server["command"] == "knowledge"
    assert server["args"][0] in VERBS
    # A variable without a default keeps the whole configuration from loading where it is not set.
    assert all(":-" in value for value in server["env"].values())
    done = subprocess.run([COMMAND, *server["args"], "--help"], capture_output=True, check=False)
    assert done.returncode == 0
