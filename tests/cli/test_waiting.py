"""Whole commands as people run them: a process of their own, and real runs of the assets."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from knowledge.cli.waiting import has_daemon, wait_until_served
from knowledge.home import Home
from knowledge.runtime import Runtime
from knowledge.stack.servers import silent
from knowledge.storage.postgres import inbox
from tests.cli.conftest import Knowledge, write_feed

Options = tuple[str, ...]


@pytest.fixture
def command(home: Home) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs ``knowledge`` as a process; ``limit`` bounds the size of files it may write, in bytes."""

    def run(*arguments: object, limit: int | None = None) -> subprocess.CompletedProcess[str]:
        bound = f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}));" if limit else ""
        code = f"import resource; {bound} from knowledge.cli.main import main; main()"
        return subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            env=os.environ | {"KNOWLEDGE_HOME": str(home.root)},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_wait_returns_when_the_new_revision_serves_and_its_answers_are_found(
    command: Callable[..., subprocess.CompletedProcess[str]], folder: Path, tenant: str
) -> None:
    place = ("--tenant", tenant, "--project", "p1")
    done = command("publish", folder, *place, "--collection", "new", "--wait", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    published = json.loads(done.stdout)
    assert (published["state"], published["revision"]) == ("served", 1)
    assert published["embeddingProfile"] == "minilm@1"

    made = command("clients", "create", "--tenant", tenant, "--projects", "p1", "--json")
    client = json.loads(made.stdout)["clientId"]
    asked = command("search", "keeping a lock alive", *place, "--as", client, "--json")
    assert asked.returncode == 0, asked.stderr
    answer = json.loads(asked.stdout)
    assert answer["degraded"] is False
    assert [leg["state"] for leg in answer["legs"] if leg["leg"] == "vector"] == ["ok"]
    first = answer["candidates"][0]["citation"]
    assert (first["path"], first["embeddingProfileVersion"]) == ("lease.md", "minilm@1")


def test_wait_on_a_snapshot_that_fails_its_checks_says_why(
    knowledge: Knowledge, docs: Options, tmp_path: Path
) -> None:
    feed = write_feed(tmp_path / "feed.jsonl", {"id": "1", "text": "word " * 20_001})
    done = knowledge("publish", feed, *docs, "--wait", "--json")
    assert done.code == 1
    published = json.loads(done.out)
    assert (published["state"], published["revision"]) == ("rejected", None)
    (line,) = done.err.splitlines()
    assert line == f"knowledge: {published['error']}"
    assert "text_within_100000_characters" in line


def test_an_event_that_does_not_serve_in_time_says_that_it_stays_announced(
    knowledge: Knowledge, docs: Options, folder: Path, tenant: str, runtime: Runtime
) -> None:
    sequence = knowledge("publish", folder, *docs, "--json").json["sequence"]
    collection = runtime.collection(tenant, "docs")
    outcome = wait_until_served(runtime, collection, sequence, timeout_s=0, progress=silent)
    assert not outcome.is_served
    assert outcome.error == "not serving after 0 s; it stays announced and will be tried again"
    assert len(inbox.pending(runtime.app, collection)) == 1


def test_a_home_without_a_stack_has_no_daemon(home: Home) -> None:
    assert not has_daemon(home)


def test_a_full_disk_leaves_no_snapshot_and_announces_nothing(
    command: Callable[..., subprocess.CompletedProcess[str]],
    docs: Options,
    tmp_path: Path,
    tenant: str,
    snapshots: Callable[[str], list[Path]],
    events: Callable[[str], list[str]],
) -> None:
    many = tmp_path / "many.jsonl"
    text = [random.Random(n).randbytes(400).hex() for n in range(300)]
    many.write_text(
        "".join(json.dumps({"id": str(n), "text": t}) + "\n" for n, t in enumerate(text))
    )
    done = command("publish", many, *docs, limit=20_000)
    assert done.returncode == 1, done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("knowledge: the snapshot could not be written (File too large)")
    assert line.endswith("publish again; nothing was announced")
    assert snapshots(tenant) == []
    assert events(tenant) == []
    assert command("publish", many, *docs).returncode == 0
    assert events(tenant) == ["ChunksPublished"]


def test_usage_errors_end_with_exit_code_2(
    command: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = command("publish", "--tenant", "t")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("knowledge publish: Missing ")
