"""The data checks that a snapshot must pass before it may tick the clock of its collection.

Each declared check runs by itself. Dagster shows them by model and severity: a result of its own
for each would cost every publish two seconds and the event log fifty rows.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache

import dagster as dg
import pyarrow as pa

from dbt_like_checks import (
    Check,
    CheckOutcome,
    Severity,
    Status,
    builtin_checks,
    open_parquet,
    run_checks,
)
from knowledge.errors import ChecksFailed
from knowledge.storage.snapshots import CHUNK_SCHEMA, Snapshot
from orchestration.defs.partitions import collection_check

ASSET = dg.AssetKey("chunk_snapshot")
SUFFIXES = {Severity.ERROR: "valid", Severity.WARN: "plausible"}
CONSEQUENCES = {
    Severity.ERROR: "A failing row rejects the snapshot before anything is committed.",
    Severity.WARN: "Failing rows are reported; the snapshot is taken all the same.",
}
LOOKED_AT = tuple[str, CheckOutcome]
"""The id of a snapshot and what came of one check on it."""


@cache
def snapshot_checks() -> dict[str, list[Check]]:
    """The declared checks by the Dagster check that shows them."""
    shown: dict[str, list[Check]] = defaultdict(list)
    for check in builtin_checks("snapshot_chunks"):
        shown[f"{check.model or 'snapshot'}_{SUFFIXES[check.severity]}"].append(check)
    return dict(sorted(shown.items()))


def snapshot_check_specs() -> list[dg.AssetCheckSpec]:
    """Those over checks of severity ``error`` block."""
    return [
        collection_check(
            name,
            asset=ASSET,
            description=f"{CONSEQUENCES[checks[0].severity]} Checks: "
            + ", ".join(check.name for check in checks),
            blocking=checks[0].severity is Severity.ERROR,
        )
        for name, checks in snapshot_checks().items()
    ]


class SnapshotChecks:
    """Runs the checks on each snapshot of a tick and keeps what came of them."""

    def __init__(self) -> None:
        self._looked_at: list[LOOKED_AT] = []

    def run(self, snapshot: Snapshot) -> None:
        """Raises `ChecksFailed` naming the blocking checks that failed."""
        outcomes = check_snapshot(snapshot)
        snapshot_id = str(snapshot.manifest.snapshot_id)
        self._looked_at += [(snapshot_id, outcome) for outcome in outcomes]
        if blocking := [outcome for outcome in outcomes if outcome.is_blocking]:
            failed = ", ".join(
                f"{outcome.check.name} ({outcome.reason or f'{outcome.failures} rows'})"
                for outcome in blocking
            )
            raise ChecksFailed(
                f"snapshot {snapshot_id} fails {failed}: correct the source and publish it again"
            )

    def results(self) -> Iterator[dg.AssetCheckResult]:
        """One result a Dagster check, over all snapshots that were looked at."""
        for name, checks in snapshot_checks().items():
            names = {check.name for check in checks}
            yield _result(name, [seen for seen in self._looked_at if seen[1].check.name in names])


def check_snapshot(snapshot: Snapshot) -> list[CheckOutcome]:
    """Run the checks on the Parquet files and the sources that the manifest declares."""
    manifest = snapshot.manifest
    files = snapshot.parquet_files
    tables = {
        "manifest_sources": pa.table(
            {
                "source_id": [source.source_id for source in manifest.sources],
                "source_version": [source.source_version for source in manifest.sources],
                "mode": [manifest.mode for _ in manifest.sources],
                "chunk_count": [source.chunk_count for source in manifest.sources],
            }
        )
    }
    if not files:
        tables["chunks"] = CHUNK_SCHEMA.empty_table()
    checks = [check for group in snapshot_checks().values() for check in group]
    with open_parquet({"chunks": files} if files else {}, tables=tables) as connection:
        return run_checks(checks, connection)


def _result(name: str, looked_at: Sequence[LOOKED_AT]) -> dg.AssetCheckResult:
    if not looked_at:
        return dg.AssetCheckResult(
            check_name=name,
            passed=True,
            description="No snapshot was pending: nothing was checked.",
            metadata={"snapshots": 0},
        )
    bad = [(snapshot, outcome) for snapshot, outcome in looked_at if outcome.status != Status.PASS]
    blocks = any(outcome.is_blocking for _, outcome in bad)
    return dg.AssetCheckResult(
        check_name=name,
        passed=not bad,
        severity=dg.AssetCheckSeverity.ERROR if blocks else dg.AssetCheckSeverity.WARN,
        description="; ".join(
            f"{outcome.check.name}: {outcome.reason or f'{outcome.failures} rows'}"
            for _, outcome in bad
        )
        or None,
        metadata={
            "snapshots": len({snapshot for snapshot, _ in looked_at}),
            "failing_rows": sum(outcome.failures for _, outcome in looked_at),
            "failing_ids": [
                {"snapshot": snapshot, "check": outcome.check.name, **row}
                for snapshot, outcome in bad
                for row in outcome.sample
            ],
            "seconds": round(sum(outcome.seconds for _, outcome in looked_at), 3),
            "checks": _table(looked_at),
        },
    )


def _table(looked_at: Sequence[LOOKED_AT]) -> dg.MarkdownMetadataValue:
    lines = ["| check | what it asks | status | failing rows |", "|---|---|---|---:|"]
    lines += [
        f"| {outcome.check.name} | {outcome.check.description or outcome.check.column or ''} |"
        f" {outcome.status} | {outcome.failures} |"
        for _, outcome in looked_at
    ]
    return dg.MetadataValue.md("\n".join(lines))
