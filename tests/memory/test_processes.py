"""Processes that write one memory at once, and ones that are killed on the way and run again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from knowledge.crash_points import VARIABLE
from knowledge.home import Home
from knowledge.runtime import Runtime
from tests.crashes.conftest import ROOT
from tests.memory.worker import DATABASE_VARIABLE, NAMES, TRIPLES


def start(
    home: Home, runtime: Runtime, step: str, tenant: str, *, crash_at: str | None = None
) -> subprocess.Popen[str]:
    extra = {VARIABLE: crash_at} if crash_at else {}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.memory.worker", step, tenant],
        cwd=ROOT,
        env={
            **os.environ,
            "KNOWLEDGE_HOME": str(home.root),
            DATABASE_VARIABLE: runtime.urls.app_url,
            **extra,
        },
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process: subprocess.Popen[str]) -> int:
    with process:
        _, error = process.communicate(timeout=120)
    assert process.returncode in (0, -signal.SIGKILL), error
    return process.returncode


def held(runtime: Runtime, tenant: str) -> dict[str, Any]:
    with runtime.app.tenant(tenant) as connection:
        row = connection.execute(
            "select (select count(*) from graph_facts) as tellings,"
            " (select count(*) from graph_facts where closed_at is null) as believed,"
            " (select count(*) from memory_vectors) as vectors,"
            " (select count(*) from memory_receipts) as receipts,"
            " (select coalesce(sum(facts), 0)::int from graph_fact_counts) as counted"
        ).fetchone()
    assert row is not None
    return row


def test_eight_agents_at_once_leave_one_copy(home: Home, runtime: Runtime, tenant: str) -> None:
    processes = [start(home, runtime, "tell", tenant) for _ in range(8)]
    assert [end(process) for process in processes] == [0] * 8
    found = held(runtime, tenant)
    assert (found["tellings"], found["believed"], found["counted"]) == (len(TRIPLES),) * 3


@pytest.mark.parametrize(
    ("step", "point"),
    [
        ("tell", "facts.told"),
        ("tell", "memory.written"),
        ("tell", "memory.committed"),
        ("embed", "memory.names_embedded"),
        ("embed", "memory.vectors_stored"),
        ("forget", "memory.erased"),
    ],
)
def test_what_is_killed_and_run_again_ends_the_same(
    home: Home, runtime: Runtime, tenant: str, step: str, point: str
) -> None:
    if step != "tell":
        assert end(start(home, runtime, "tell", tenant)) == 0
    if step == "forget":
        assert end(start(home, runtime, "embed", tenant)) == 0
        assert held(runtime, tenant)["vectors"] == len(NAMES)
    assert end(start(home, runtime, step, tenant, crash_at=point)) == -signal.SIGKILL
    if point == "memory.erased":  # all at once or not at all
        assert held(runtime, tenant)["believed"] == len(TRIPLES)
    assert end(start(home, runtime, step, tenant)) == 0
    found = held(runtime, tenant)
    told = 0 if step == "forget" else len(TRIPLES)
    assert (found["tellings"], found["believed"], found["counted"]) == (told,) * 3
    assert found["vectors"] == (len(NAMES) if step == "embed" else 0)
    assert bool(found["receipts"]) == (step == "forget")
