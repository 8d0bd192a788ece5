"""When collections are checked as a whole."""

import dagster as dg

from knowledge.errors import Unavailable
from knowledge.storage.postgres.catalogue import list_collections
from orchestration.defs.checks.jobs import check_collections
from orchestration.defs.partitions import collections
from orchestration.defs.resources import KnowledgeHome


@dg.schedule(
    job=check_collections,
    cron_schedule="30 2 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Checks every collection as a whole, each night at 02:30 UTC.",
)
def nightly_checks(
    context: dg.ScheduleEvaluationContext, home: KnowledgeHome
) -> list[dg.RunRequest] | dg.SkipReason:
    known = set(context.instance.get_dynamic_partitions(str(collections.name)))
    try:
        with home.owner_database() as owner:
            keys = [found.partition for found in list_collections(owner)]
    except Unavailable as error:
        return dg.SkipReason(error.message)
    night = context.scheduled_execution_time.date().isoformat()
    requests = [
        dg.RunRequest(run_key=f"{key}:{night}", partition_key=key) for key in keys if key in known
    ]
    return requests or dg.SkipReason("there is no collection yet")
