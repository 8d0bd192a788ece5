"""All the real parts of either backend, through the command that people use."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import httpx
import psutil  # type: ignore[import-untyped]
import pytest

from knowledge.home import Home
from knowledge.stack.postgres import find_postgres
from knowledge.stack.process import MARK
from knowledge.stack.record import running_supervisor
from knowledge.stack.weaviate import find_weaviate

SERVERS = {"weaviate": ["postgres", "weaviate"], "pgvector": ["postgres"]}
OTHERS = ["api", "dagster-code-server", "dagster-webserver", "dagster-daemon"]


@pytest.fixture(params=SERVERS)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A vector backend that every command of the test is told of."""
    monkeypatch.setenv("KNOWLEDGE_VECTOR_BACKEND", request.param)
    return str(request.param)


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
    home: Home, backend: str
) -> None:
    started = _knowledge(home, "up", "--detach")
    assert started.returncode == 0, started.stdout + started.stderr

    status = _knowledge(home, "status", "--json")
    assert status.returncode == 0
    parts = {part["name"]: part for part in json.loads(status.stdout)["parts"]}
    assert list(parts) == SERVERS[backend] + OTHERS
    assert (find_weaviate(home) is not None) == (backend == "weaviate")
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
