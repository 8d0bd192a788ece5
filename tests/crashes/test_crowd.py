"""Publishers, runs in processes of their own and the daemon, all on one collection at once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from knowledge.home import Home
from knowledge.runtime import open_runtime
from knowledge.storage.postgres import revisions
from tests.crashes.conftest import ROOT
from tests.crashes.state import state_of

PUBLISHERS, ROUNDS = 3, 3


@pytest.fixture
def home() -> Iterator[Home]:
    made = Home(Path(tempfile.mkdtemp(prefix="kw-", dir="/tmp")))
    try:
        yield made
    finally:
        _knowledge(made, "down")
        shutil.rmtree(made.root, ignore_errors=True)


def _start(home: Home, *command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env=os.environ | {"KNOWLEDGE_HOME": str(home.root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _knowledge(home: Home, *arguments: str) -> subprocess.CompletedProcess[str]:
    with _start(home, "-m", "knowledge.cli.main", *arguments) as process:
        out, error = process.communicate(timeout=300)
    return subprocess.CompletedProcess(arguments, process.returncode, out, error)


def test_nothing_is_lost_or_doubled_and_every_publish_is_served(home: Home, tmp_path: Path) -> None:
    started = _knowledge(home, "up", "--detach")
    assert started.returncode == 0, started.stdout + started.stderr
    place = ("--tenant", "t1", "--project", "p1", "--collection", "docs")
    made = _knowledge(home, "collections", "create", *place, "--profile", "none")
    assert made.returncode == 0, made.stderr
    for number in range(ROUNDS):
        publishers = []
        for name in range(PUBLISHERS):
            feed = tmp_path / f"p{name}-{number}.jsonl"
            feed.write_text(json.dumps({"id": f"d{number}", "text": f"lease {name} {number}"}))
            publishers.append(
                _start(
                    home,
                    *("-m", "knowledge.cli.main", "publish", str(feed), *place),
                    *("--source", f"s{name}", "--mode", "delta"),
                )
            )
        runs = [_start(home, "-m", "orchestration.run", "--partition", "t1.docs") for _ in "12"]
        for process in (*publishers, *runs):
            _, error = process.communicate(timeout=300)
            assert process.returncode == 0, error
    waited = _knowledge(home, "publish", str(feed), *place, "--source", "last", "--wait")
    assert waited.returncode == 0, waited.stderr
    with open_runtime(home) as runtime:
        collection = runtime.collection("t1", "docs")
        state = state_of(runtime, collection)
        served = {r.revision for r in revisions.serving_revisions(runtime.app, collection)}
    assert served == {collection.head_rev}
    texts = [row["text"] for row in state["versions"]]
    expected = [f"lease {n} {r}" for n in range(PUBLISHERS) for r in range(ROUNDS)]
    assert sorted(texts) == sorted([*expected, expected[-1]])  # the last one from "last" as well
    assert len(state["index"]) == len(texts)
    assert {event["state"] for event in state["inbox"]} == {"served"}
    assert all(row["has_metadata"] for row in state["versions"])
