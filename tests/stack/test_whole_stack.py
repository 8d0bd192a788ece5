"""All five real parts, through the command that people use."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import httpx
import psutil  # type: ignore[import-untyped]

from knowledge.home import Home
from knowledge.stack.postgres import find_postgres
from knowledge.stack.process import MARK
from knowledge.stack.record import running_supervisor
from knowledge.stack.weaviate import find_weaviate

PARTS = [
    "postgres",
    "weaviate",
    "api",
    "dagster-code-server",
    "dagster-webserver",
    "dagster-daemon",
]


def _knowledge(home: Home, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "knowledge.cli.main", *arguments],
        cwd=home.root,
        env=os.environ | {"KNOWLEDGE_HOME": str(home.root)},
        capture_output=True,
        text=True,
        check=False,
    )


def _is_clean(home: Home) -> bool:
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == home.installation_id:
                return False
        except psutil.Error:
            continue
    return find_postgres(home) is None and find_weaviate(home) is None


def test_the_stack_starts_detached_answers_survives_its_supervisor_and_leaves_nothing(
    home: Home,
) -> None:
    started = _knowledge(home, "up", "--detach")
    assert started.returncode == 0, started.stdout + started.stderr

    status = _knowledge(home, "status", "--json")
    assert status.returncode == 0
    parts = {part["name"]: part for part in json.loads(status.stdout)["parts"]}
    assert list(parts) == PARTS
    assert all(part["healthy"] and part["version"] for part in parts.values())
    assert httpx.get(f"{parts['api']['url']}/healthz").json()["status"] == "ok"
    assert httpx.get(f"{parts['dagster-webserver']['url']}/server_info").is_success

    second = _knowledge(home, "up", "--detach")
    assert second.returncode == 0
    assert "already running" in second.stdout
    assert f"api: healthy {parts['api']['url']}" in second.stdout

    supervisor = running_supervisor(home)
    assert supervisor is not None
    os.kill(supervisor.pid, signal.SIGKILL)
    again = _knowledge(home, "up", "--detach")  # ends the left-over parts, adopts the servers
    assert again.returncode == 0, again.stdout + again.stderr

    stopped = _knowledge(home, "down")
    assert stopped.returncode == 0
    assert _is_clean(home)
