"""Which runs are at work on a collection, and which were killed without a word."""

import time
from collections import defaultdict
from collections.abc import Sequence

from dagster import DagsterInstance, DagsterRunStatus, RunRecord, RunsFilter

from orchestration.defs.resources import PROCESS_TAG, is_process_gone

PARTITION_TAG = "dagster/partition"
RUN_KEY_TAG = "dagster/run_key"
UNFINISHED = (
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
)
UNTAGGED_PATIENCE_S = 300.0
BESIDE_PUBLISHES = ("rebuild", "collect", "check")
"""Jobs on a collection that do not keep its publishes waiting."""


def unfinished_runs(
    instance: DagsterInstance, *, job_name: str | None = None
) -> dict[str, list[RunRecord]]:
    """By partition, whoever started them: of one job, else of all that publish."""
    found: dict[str, list[RunRecord]] = defaultdict(list)
    wanted = RunsFilter(statuses=list(UNFINISHED), job_name=job_name)
    for record in instance.get_run_records(wanted):
        run = record.dagster_run
        if job_name is None and run.job_name in BESIDE_PUBLISHES:
            continue
        if partition := run.tags.get(PARTITION_TAG):
            found[partition].append(record)
    return found


def is_active(instance: DagsterInstance, records: Sequence[RunRecord]) -> bool:
    """Whether a run is at work; those whose process was killed are reported failed."""
    active = False
    for record in records:
        if _is_abandoned(record):
            instance.report_run_failed(
                record.dagster_run, "The process of this run ended without a word."
            )
        else:
            active = True
    return active


def _is_abandoned(record: RunRecord) -> bool:
    if record.dagster_run.status is not DagsterRunStatus.STARTED:
        return False  # run monitoring times these out
    if tag := record.dagster_run.tags.get(PROCESS_TAG):
        return is_process_gone(tag)
    return time.time() - (record.start_time or 0) > UNTAGGED_PATIENCE_S


def was_run(instance: DagsterInstance, run_key: str) -> bool:
    """Whether a run of this key exists: Dagster runs a key once, whatever became of it."""
    return bool(instance.get_run_records(RunsFilter(tags={RUN_KEY_TAG: run_key}), limit=1))
