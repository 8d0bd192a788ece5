"""When the health of the backend is looked at."""

import dagster as dg

from knowledge.errors import Unavailable
from knowledge.indexing.health import is_noted, probe_backend
from orchestration.defs.backend.jobs import backend_health
from orchestration.defs.resources import KnowledgeHome


@dg.schedule(
    job=backend_health,
    cron_schedule="*/2 * * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Asks the index every two minutes; a run starts only when a state must change.",
)
def backend_health_probe(
    context: dg.ScheduleEvaluationContext, home: KnowledgeHome
) -> dg.RunRequest | dg.SkipReason:
    health = probe_backend(home.location)
    try:
        with home.owner_database() as owner:
            noted = is_noted(owner, health)
    except Unavailable as error:
        return dg.SkipReason(error.message)
    if noted:
        found = (
            f"the index answers ({health.version})" if health.is_reachable else str(health.reason)
        )
        return dg.SkipReason(f"{found}; every revision says so already")
    return dg.RunRequest()
