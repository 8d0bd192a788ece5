"""The data checks that a snapshot must pass before it may tick the clock of its collection."""

from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import dagster as dg

from dbt_like_checks import Check, Severity
from knowledge.errors import ChecksFailed
from knowledge.storage.snapshots import Snapshot
from orchestration.checking import SNAPSHOTS, Looked, check_snapshot, suite_checks
from orchestration.defs.checks.results import SUFFIXES, blocking_names, check_results, check_specs

ASSET = dg.AssetKey("chunk_snapshot")
CONSEQUENCES = {
    Severity.ERROR: "A failing row rejects the snapshot before anything is committed.",
    Severity.WARN: "Failing rows are reported; the snapshot is taken all the same.",
}
NOTHING = "No snapshot was pending: nothing was checked."


@cache
def snapshot_checks() -> dict[str, list[Check]]:
    """The declared checks by the Dagster check that shows them: by model and severity."""
    shown: dict[str, list[Check]] = defaultdict(list)
    for check in suite_checks(SNAPSHOTS):
        shown[f"{check.model or 'snapshot'}_{SUFFIXES[check.severity]}"].append(check)
    return dict(sorted(shown.items()))


def snapshot_check_specs() -> list[dg.AssetCheckSpec]:
    return check_specs(snapshot_checks(), ASSET, CONSEQUENCES)


class SnapshotChecks:
    """Runs the checks on each snapshot of a tick and keeps what came of them."""

    def __init__(self) -> None:
        self._looked: list[Looked] = []

    def run(self, snapshot: Snapshot) -> None:
        """Raises `ChecksFailed` naming the blocking checks that failed."""
        looked = check_snapshot(snapshot)
        self._looked += looked
        if failed := blocking_names(looked):
            raise ChecksFailed(
                f"snapshot {snapshot.manifest.snapshot_id} fails {failed}:"
                " correct the source and publish it again"
            )

    def results(self) -> Iterator[dg.AssetCheckResult]:
        """One result a Dagster check, over all snapshots that were looked at."""
        yield from check_results(snapshot_checks(), ASSET, self._looked, nothing=NOTHING)
