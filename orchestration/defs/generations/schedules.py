"""When garbage is looked for."""

import dagster as dg

from knowledge.errors import Unavailable
from knowledge.indexing.collecting import retention
from knowledge.settings import load_settings
from knowledge.storage.postgres import collecting
from orchestration.defs.generations.assets import collect_job
from orchestration.defs.resources import KnowledgeHome


@dg.schedule(
    job=collect_job,
    cron_schedule="7 * * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Starts a run for each collection with revisions that are kept no longer, or with"
    " more than a fifth of dead rows.",
)
def garbage_collection(
    context: dg.ScheduleEvaluationContext, home: KnowledgeHome
) -> list[dg.RunRequest] | dg.SkipReason:
    try:
        with home.owner_database() as owner:
            due = collecting.due(owner, retention(load_settings(home.location)))
    except Unavailable as error:
        return dg.SkipReason(error.message)
    if not due:
        return dg.SkipReason("no collection has anything to collect")
    return [dg.RunRequest(partition_key=partition) for partition in due]
