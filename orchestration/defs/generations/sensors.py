"""Rebuilds that were asked for, told from the table alone."""

from collections.abc import Iterator

import dagster as dg

from knowledge.errors import Unavailable
from knowledge.storage.postgres import rebuilds
from knowledge.storage.postgres.database import Database
from orchestration.defs.generations.jobs import rebuild_generation, rebuild_job
from orchestration.defs.resources import KnowledgeHome
from orchestration.defs.runs import is_active, unfinished_runs, was_run


@dg.sensor(
    job_name=rebuild_job.name,  # the job itself would be copied, with a warning of Dagster's own
    minimum_interval_seconds=2,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Starts one run for each rebuild that was asked for, and again for one whose run"
    " failed or was killed.",
)
def rebuild_requests(
    context: dg.SensorEvaluationContext, home: KnowledgeHome
) -> dg.SensorResult | dg.SkipReason:
    try:
        with home.owner_database() as owner:
            due = rebuilds.due(owner)
            requests = list(_requests(context.instance, owner, due))
    except Unavailable as error:
        return dg.SkipReason(error.message)
    if not requests:
        waiting = "no rebuild is asked for, or its next attempt is not due yet"
        return dg.SkipReason(f"{len(due)} rebuilds are at work" if due else waiting)
    return dg.SensorResult(run_requests=requests)


def _requests(
    instance: dg.DagsterInstance, owner: Database, due: list[rebuilds.DueRebuild]
) -> Iterator[dg.RunRequest]:
    if not due:
        return
    unfinished = unfinished_runs(instance, job_name=rebuild_job.name)
    for item in due:
        if is_active(instance, unfinished[item.partition]):
            continue
        run_key = f"{item.rebuild_id}:{item.claims}"
        if was_run(instance, run_key):
            # Its run ended before it took the rebuild up, and Dagster never runs a key twice.
            rebuilds.count_claim(owner, item)
            continue
        config = {"rebuild_id": str(item.rebuild_id)}
        yield dg.RunRequest(
            run_key=run_key,
            partition_key=item.partition,
            run_config={"ops": {rebuild_generation.name: {"config": config}}},
            tags={"knowledge/rebuild": str(item.rebuild_id)},
        )
