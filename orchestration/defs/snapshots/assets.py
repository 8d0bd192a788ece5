"""The clock: published snapshots become the next revision of their collection."""

from collections.abc import Iterator

import dagster as dg

from knowledge.indexing.tick import tick
from knowledge.storage.postgres.inbox import age_s
from orchestration.defs.metadata import sample_table, without_nothing
from orchestration.defs.partitions import collections
from orchestration.defs.resources import KnowledgeHome
from orchestration.defs.snapshots.checks import SnapshotChecks, snapshot_check_specs
from orchestration.defs.steps import GROUP, OWNERS, RETRIES, collection_step


@dg.asset(
    group_name=GROUP,
    partitions_def=collections,
    check_specs=snapshot_check_specs(),
    retry_policy=RETRIES,
    kinds={"parquet", "postgres"},
    owners=OWNERS,
    tags={"layer": "source"},
    code_version="1",
    description="""The chunks of a collection, as its clock counts them.

Takes every published snapshot that waits in the inbox, verifies its checksums, runs the data
checks on its Parquet files, and only then commits the differences to PostgreSQL as **one** new
revision. New and changed chunks open in it, replaced and deleted ones close; history stays.

A snapshot that is broken or fails a blocking check is rejected for good with its reason: publish
a corrected one. With nothing pending, the clock stands still.""",
)
def chunk_snapshot(
    context: dg.AssetExecutionContext, home: KnowledgeHome
) -> Iterator[dg.AssetCheckResult | dg.MaterializeResult[None]]:
    checks = SnapshotChecks()
    try:
        with collection_step(context, home) as step:
            done = tick(step.runtime, step.lease, check=checks.run)
            metadata = without_nothing(
                {
                    "revision": done.revision,
                    "clock_ticked": done.ticked,
                    "events": done.events,
                    "chunks_opened": done.opened,
                    "chunks_closed": done.closed,
                    "chunks_unchanged": done.unchanged,
                    "acls_changed": done.acls_changed,
                    "statistics_frozen": done.statistics_frozen,
                    "seconds": done.seconds,
                    "lag_s": age_s(step.runtime.app, step.collection, done.revision)
                    if done.events
                    else None,
                    "sample": sample_table(step, done.revision),
                }
            )
    except dg.Failure:
        yield from checks.results()
        raise
    yield dg.MaterializeResult(metadata=metadata)
    yield from checks.results()
