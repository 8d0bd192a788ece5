"""The health of the hybrid index's server, written into the states of the revisions it serves."""

import dagster as dg

from knowledge.indexing.health import note_health, probe_backend
from orchestration.defs.resources import KnowledgeHome


@dg.op(
    description="Ask the index's server for its version; Degraded revisions on silence, Ready on an answer."
)
def note_backend_health(context: dg.OpExecutionContext, home: KnowledgeHome) -> None:
    health = probe_backend(home.location)
    with home.owner_database() as owner:
        change = note_health(owner, health)
    if health.is_reachable:
        context.log.info(
            f"the index answers ({health.version}); {change.recovered} revisions are Ready again"
        )
    else:
        context.log.warning(f"{health.reason}; {change.degraded} revisions are now Degraded")


@dg.job(
    executor_def=dg.in_process_executor,
    description="Marks the vector and full-text revisions Degraded while the index cannot be"
    " reached, and Ready again afterwards. Queries then fall back to PostgreSQL and say so.",
)
def backend_health() -> None:
    note_backend_health()
