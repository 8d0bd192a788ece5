"""The suites of checks over one collection: run by Dagster, and by ``knowledge check`` without."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from operator import or_
from pathlib import Path
from typing import Final

from dbt_like_checks import (
    Check,
    CheckOutcome,
    Engine,
    Severity,
    Status,
    Thresholds,
    UnreadableRelation,
    builtin_checks,
    load_checks,
    run_checks,
)
from knowledge.errors import InvalidSnapshot
from knowledge.model.collection import Collection
from knowledge.model.event import CHUNKS_PUBLISHED
from knowledge.runtime import Runtime
from knowledge.storage.postgres import inbox
from knowledge.storage.snapshots import Snapshot, read_snapshot
from orchestration.relations import (
    PARQUET_RELATIONS,
    Sources,
    embedding_sources,
    index_sources,
    open_postgres,
    open_sources,
    snapshot_sources,
)

SNAPSHOTS: Final = "snapshot_chunks"
EMBEDDINGS: Final = "embeddings"
HYBRID_INDEX: Final = "hybrid_index"
COLLECTION: Final = "collection"
READABLE: Final = Check(
    name="snapshot_matches_its_manifest",
    model=None,
    column=None,
    severity=Severity.ERROR,
    thresholds=Thresholds(),
    sql="",
    parameters=(),
    id_columns=(),
    description="Files, checksums, columns, counts and ids are those that the manifest names.",
    file=__file__,
    line=1,
)
"""Not a SELECT: what cannot be read cannot be selected from."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What came of one check, and the ``subject`` it looked at: a snapshot, or the collection."""

    subject: str
    outcome: CheckOutcome


def run_suite(
    runtime: Runtime, collection: Collection, suite: str, *, whole: bool = True
) -> list[Looked]:
    """Run a suite of `SUITES`; empty when it has nothing to look at.

    Without ``whole``, look at what the last publish changes and a stretch of the rest: as much
    as does not grow with the collection. Raises `Unavailable` errors.
    """
    return list(SUITES[suite](runtime, collection, whole))


def run_files(
    runtime: Runtime, collection: Collection, paths: Iterable[Path | str]
) -> list[Looked]:
    """Run the checks of files and folders over the whole collection. Raises `InvalidChecks`."""
    by_engine: dict[Engine, list[Check]] = {engine: [] for engine in Engine}
    for check in load_checks(paths):
        by_engine[check.engine].append(check)
    looked = []
    if checks := by_engine[Engine.PARQUET]:
        named = {word for check in checks for word in re.findall(r"\w+", check.sql)}
        sources = [
            make(runtime, collection, whole=True) or Sources()
            for make, names in PARQUET_RELATIONS.items()
            if names & named
        ]
        looked += _on_parquet(checks, reduce(or_, sources, Sources()), collection.partition)
    if checks := by_engine[Engine.POSTGRES]:
        looked += _on_postgres(checks, runtime, collection)
    return looked


def check_snapshot(snapshot: Snapshot) -> list[Looked]:
    """Run the checks that guard the clock on a snapshot that can be read."""
    return _on_parquet(
        suite_checks(SNAPSHOTS), snapshot_sources(snapshot), str(snapshot.manifest.snapshot_id)
    )


@cache
def suite_checks(suite: str) -> tuple[Check, ...]:
    """The checks that a suite declares, in their order."""
    return builtin_checks(suite)


def not_run(checks: Sequence[Check], subject: str, reason: str) -> list[Looked]:
    """Outcomes of checks that could not run: they prove nothing, so they block."""
    return [
        Looked(subject, CheckOutcome(check, Status.ERROR, 0, (), 0.0, reason)) for check in checks
    ]


def _pending_snapshots(runtime: Runtime, collection: Collection, _whole: bool) -> Iterator[Looked]:
    """The snapshots that wait for the clock."""
    for event in inbox.pending(runtime.app, collection):
        if event.event_type == CHUNKS_PUBLISHED:
            yield from _pending_snapshot(Path(str(event.payload["manifest"])))


def _pending_snapshot(manifest: Path) -> list[Looked]:
    try:
        snapshot = read_snapshot(manifest)
        snapshot.verify()
    except InvalidSnapshot as error:
        broken = CheckOutcome(READABLE, Status.FAIL, 1, (), 0.0, error.message)
        return [Looked(manifest.parent.name, broken)]
    return check_snapshot(snapshot)


def _embeddings(runtime: Runtime, collection: Collection, whole: bool) -> list[Looked]:
    sources = embedding_sources(runtime, collection, whole=whole)
    if sources is None:
        return []
    return _on_parquet(suite_checks(EMBEDDINGS), sources, collection.partition)


def _hybrid_index(runtime: Runtime, collection: Collection, whole: bool) -> list[Looked]:
    sources = index_sources(runtime, collection, whole=whole)
    if sources is None:
        return []
    return _on_parquet(suite_checks(HYBRID_INDEX), sources, collection.partition)


def _collection(runtime: Runtime, collection: Collection, _whole: bool) -> list[Looked]:
    return _on_postgres(suite_checks(COLLECTION), runtime, collection)


SUITES: Final[dict[str, Callable[[Runtime, Collection, bool], Iterable[Looked]]]] = {
    SNAPSHOTS: _pending_snapshots,
    EMBEDDINGS: _embeddings,
    HYBRID_INDEX: _hybrid_index,
    COLLECTION: _collection,
}
"""The built-in suites, in the order of the pipeline; the names are those of the check files."""


def _on_parquet(checks: Sequence[Check], sources: Sources, subject: str) -> list[Looked]:
    try:
        with open_sources(sources) as relations:
            return [Looked(subject, outcome) for outcome in run_checks(checks, relations)]
    except UnreadableRelation as error:
        return not_run(checks, subject, str(error))


def _on_postgres(checks: Sequence[Check], runtime: Runtime, collection: Collection) -> list[Looked]:
    with open_postgres(runtime, collection) as relations:
        return [Looked(collection.partition, outcome) for outcome in run_checks(checks, relations)]
