"""From `knowledge publish` to the first answer with the new document, while the stack runs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.installation import PROJECT, Installation
from knowledge.client import KnowledgeClient
from knowledge.errors import KnowledgeError, StackError
from knowledge.model.collection import Collection
from knowledge.stack.lifecycle import down, up_detached
from knowledge.stack.record import read_record

PUBLISHES: Final = 10
PATIENCE_S: Final = 120.0
POLL_S: Final = 0.25
"""Between two looks: asking all the time would slow down what is waited for."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """Seconds since each command was started: until it ended, and until its document was found."""

    announced_s: Sequence[float]
    searchable_s: Sequence[float]


def measure_freshness(installation: Installation, collection: Collection) -> Freshness:
    """Publish ten documents, one after another, each once the one before is found.

    The first publish after the start, which loads the model, is not counted.
    """
    announced, searchable = [], []
    with running_stack(installation) as url, KnowledgeClient(url, *installation.client) as client:
        for number in range(PUBLISHES + 1):
            installation.say(f"publish {number} of {PUBLISHES} through the stack")
            started = time.perf_counter()
            document_id = _publish_one(installation, collection, number)
            told = time.perf_counter() - started
            _wait_for(client, collection, document_id)
            if number:
                announced.append(told)
                searchable.append(time.perf_counter() - started)
    return Freshness(announced, searchable)


@contextmanager
def running_stack(installation: Installation) -> Iterator[str]:
    """The whole stack over the installation's servers; gives the address of its API."""
    runtime = installation.runtime
    home, settings = runtime.home, runtime.settings
    up_detached(home, settings, (), installation.say)
    try:
        record = read_record(home)
        if record is None:
            raise StackError("the stack left no record of its ports")
        yield f"http://127.0.0.1:{record.api_port}"
    finally:
        down(home, settings, installation.say)


def _publish_one(installation: Installation, collection: Collection, number: int) -> str:
    """Publish one new document with the command line, as a person would; returns its id."""
    document_id = f"fresh-{collection.slug}-{number}"
    text = installation.corpus.document(number, edition=1_000).chunk.text
    feed = Path(installation.runtime.home.root) / "fresh.jsonl"
    document = {"id": document_id, "title": _marker(document_id), "text": text}
    feed.write_text(json.dumps(document) + "\n")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "knowledge.cli.main", "publish", str(feed)),
            *("--tenant", installation.tenant, "--project", PROJECT),
            *("--collection", collection.slug, "--source", "fresh", "--mode", "delta"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise KnowledgeError(f"knowledge publish failed: {done.stderr.strip()[-300:]}")
    return document_id


def _marker(document_id: str) -> str:
    """A word of the document's own."""
    return "marker" + "".join(letter for letter in document_id if letter.isalnum())


def _wait_for(client: KnowledgeClient, collection: Collection, document_id: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        answer = client.search(
            _marker(document_id), project_id=PROJECT, collections=[collection.slug]
        )
        if any(found.citation.path == document_id for found in answer.candidates):
            return
        time.sleep(POLL_S)
    raise StackError(f"{document_id} was not found within {PATIENCE_S:.0f} s: see the runs")
