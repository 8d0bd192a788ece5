"""Rebuilds that were asked for, told from the table alone."""

from collections.abc import Iterator

import dagster as dg

from knowledge.errors import Unavailable
from knowledge.settings import load_settings
from knowledge.storage.postgres import rebuilds
from orchestration.defs.generations.jobs import rebuild_generation, rebuild_job
from orchestration.defs.resources import KnowledgeHome
from orchestration.defs.runs import is_active, unfinished_runs


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
    max_attempts = load_settings(home.location).indexing.max_attempts
    try:
        with home.owner_database() as owner:
            due = rebuilds.due(owner, max_attempts=max_attempts)
    except Unavailable as error:
        return dg.SkipReason(error.message)
    requests = list(_requests(context.instance, due))
    if not requests:
        return dg.SkipReason(f"{len(due)} rebuilds are at work" if due else "none is asked for")
    return dg.SensorResult(run_requests=requests)


def _requests(
    instance: dg.DagsterInstance, due: list[rebuilds.DueRebuild]
) -> Iterator[dg.RunRequest]:
    if not due:
        return
    unfinished = unfinished_runs(instance, job_name=rebuild_job.name)
    for item in due:
        if is_active(instance, unfinished[item.partition]):
            continue
        config = {"rebuild_id": str(item.rebuild_id)}
        yield dg.RunRequest(
            run_key=f"{item.rebuild_id}:{item.attempts}",
            partition_key=item.partition,
            run_config={"ops": {rebuild_generation.name: {"config": config}}},
            tags={"knowledge/rebuild": str(item.rebuild_id)},
        )
