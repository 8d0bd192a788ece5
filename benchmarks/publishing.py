"""Publishing in this process, step by step as a run does it, with vectors given."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import count
from typing import Final, TypeVar

import numpy as np

from benchmarks.corpus import Document, Vector
from benchmarks.installation import Installation
from knowledge.errors import ChecksFailed
from knowledge.indexing.convergence import (
    converge_hybrid,
    converge_metadata,
    versions_to_write,
)
from knowledge.indexing.embeddings import embed_missing
from knowledge.indexing.serving import serve
from knowledge.indexing.targets import plan_hybrid
from knowledge.indexing.tick import leased, tick
from knowledge.model.collection import Collection
from knowledge.model.identity import text_hash
from knowledge.publishing.announcing import Announcement, announce
from knowledge.storage.postgres.lease import Lease
from knowledge.storage.snapshot_writer import SnapshotWriter
from knowledge.storage.snapshots import Mode, Snapshot, SnapshotSource
from orchestration.checking import HYBRID_INDEX, check_snapshot, run_suite

Result = TypeVar("Result")
Given = dict[bytes, Vector]
"""Vectors by the hash of the text they stand for."""

BATCH: Final = 20_000
"""Chunks of one publish while a collection grows."""

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Steps:
    """Seconds of each step of one run, in the order they are taken.

    ``index_checks`` are those that Dagster runs before the switch. ``written`` is how many
    versions the hybrid index was given.
    """

    data_checks: float
    tick: float
    embed: float
    hybrid: float
    metadata: float
    index_checks: float
    serve: float
    written: int

    @property
    def total(self) -> float:
        """Everything a run does, less what Dagster itself needs."""
        return float(sum(getattr(self, name) for name in STEPS))


STEPS: Final = tuple(field.name for field in fields(Steps) if field.name != "written")


def publish(
    installation: Installation,
    collection: Collection,
    documents: Iterable[Document],
    *,
    mode: Mode = "delta",
) -> Steps:
    """Publish ``documents`` in one snapshot and index them with the vectors they bring."""
    given: Given = {}
    announce_documents(installation, collection, _noted(documents, given), mode=mode)
    return index(installation, collection, given)


def grow(installation: Installation, collection: Collection, start: int, stop: int) -> None:
    """Publish the corpus's documents from ``start`` to ``stop``, `BATCH` at a time."""
    for first in range(start, stop, BATCH):
        last = min(first + BATCH, stop)
        installation.say(f"publishing {last:,} of {stop:,} chunks")
        publish(installation, collection, installation.corpus.documents(first, last))


def announce_documents(
    installation: Installation,
    collection: Collection,
    documents: Iterable[Document],
    *,
    mode: Mode,
) -> None:
    """Write the documents, read once and in order, as one snapshot and announce it."""
    runtime = installation.runtime
    with SnapshotWriter(
        runtime.home.snapshots_dir,
        tenant_id=collection.tenant_id,
        project_id=collection.project_id,
        collection=collection.slug,
        mode=mode,
    ) as writer:
        paths: dict[str, list[str]] = defaultdict(list)
        for document in documents:
            writer.add(document.source_id, "1", document.chunk)
            paths[document.source_id].append(document.chunk.path)
        sources = [
            SnapshotSource(
                source_id=source_id,
                source_version="1",
                chunk_count=0,
                paths=tuple(listed) if mode == "delta" else (),
            )
            for source_id, listed in sorted(paths.items())
        ]
        snapshot = writer.finish(sources, {})
    announce(runtime.app, collection, Announcement(snapshot))


def index(
    installation: Installation, collection: Collection, given: Mapping[bytes, Vector] | None
) -> Steps:
    """Take what is pending and bring every index kind to serve it, as a run would.

    Without ``given`` the collection's model embeds what has no vector.
    """
    runtime = installation.runtime
    checks = DataChecks()
    with leased(runtime, collection.tenant_id, collection.slug, f"bench-{next(_numbers)}") as held:
        tick_s, _ = timed(lambda: tick(runtime, held, check=checks))
        if given is not None:
            _give(installation, held, given)
        embed_s, _ = timed(lambda: embed_missing(runtime, held))
        hybrid_s, hybrid = timed(lambda: converge_hybrid(runtime, held))
        metadata_s, _ = timed(lambda: converge_metadata(runtime, held))
        checks_s, _ = timed(lambda: run_suite(runtime, collection, HYBRID_INDEX, whole=False))
        serve_s, _ = timed(lambda: serve(runtime, held))
    return Steps(
        data_checks=checks.seconds,
        tick=tick_s - checks.seconds,
        embed=embed_s,
        hybrid=hybrid_s,
        metadata=metadata_s,
        index_checks=checks_s,
        serve=serve_s,
        written=hybrid.written,
    )


class DataChecks:
    """The data checks of a snapshot as the pipeline runs them; ``seconds`` is what they took."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, snapshot: Snapshot) -> None:
        seconds, looked = timed(lambda: check_snapshot(snapshot))
        self.seconds += seconds
        if failed := [seen.outcome.check.name for seen in looked if seen.outcome.is_blocking]:
            raise ChecksFailed(f"the benchmark's own snapshot fails {', '.join(failed)}")


def timed(step: Callable[[], Result]) -> tuple[float, Result]:
    """How long a step took, in seconds, and what it returned."""
    started = time.perf_counter()
    result = step()
    return time.perf_counter() - started, result


def median_steps(runs: Sequence[Steps]) -> Steps:
    """The run whose total is the median one."""
    return sorted(runs, key=lambda steps: steps.total)[len(runs) // 2]


def _noted(documents: Iterable[Document], given: Given) -> Iterator[Document]:
    for document in documents:
        given[text_hash(document.chunk)] = document.vector
        yield document


def _give(installation: Installation, held: Lease, given: Mapping[bytes, Vector]) -> None:
    """Store the vectors that are missing, in the batches in which a model would make them."""
    runtime = installation.runtime
    target = plan_hybrid(runtime, held)
    profile = target.generation.embedding_profile if target else None
    if target is None or profile is None or target.is_current:
        return
    store = runtime.vectors(target.collection.tenant_id, profile)
    for versions in versions_to_write(runtime, target):
        missing = store.missing([version.text_hash for version in versions])
        if missing:
            store.put(missing, np.stack([given[key] for key in missing]))
