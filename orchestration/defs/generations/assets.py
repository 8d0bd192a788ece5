"""What is kept of a collection's history, and for how long."""

import dagster as dg

from knowledge.indexing.collecting import collect
from knowledge.model.identity import split_partition_key
from orchestration.defs.indexes.assets import serving
from orchestration.defs.metadata import without_nothing
from orchestration.defs.partitions import collections
from orchestration.defs.resources import KnowledgeHome
from orchestration.defs.steps import GROUP, OWNERS, RETRIES, translated


@dg.asset(
    group_name=GROUP,
    deps=[serving],
    partitions_def=collections,
    retry_policy=RETRIES,
    kinds={"postgres"},
    owners=OWNERS,
    tags={"layer": "serving"},
    code_version="1",
    description="""Garbage collection: revisions that are kept no longer, and what only they saw.

A revision is kept when it serves, is among the last five or is younger than seven days
(`[indexing] keep_revisions`, `keep_days`). The others are refused from now on; what only they
could see leaves the index and PostgreSQL once every request that may still read it is over. An
index of which more than a fifth is history is built anew from cached vectors.""",
)
def collected_revisions(
    context: dg.AssetExecutionContext, home: KnowledgeHome
) -> dg.MaterializeResult[None]:
    tenant_id, slug = split_partition_key(context.partition_key)
    with translated(context.partition_key):
        runtime = home.runtime
        done = collect(runtime, runtime.collection(tenant_id, slug), owner=context.run.run_id)
    return dg.MaterializeResult(
        metadata=without_nothing(
            {
                "oldest_revision_kept": done.floor,
                "revisions_collected": done.revisions,
                "generations_dropped": done.generations,
                "chunk_versions_deleted": done.chunk_versions,
                "index_items": done.dead_rows.items,
                "dead_rows": done.dead_rows.dead,
                "rebuild_requested": str(done.rebuild.rebuild_id) if done.rebuild else None,
                "seconds": done.seconds,
            }
        )
    )


collect_job = dg.define_asset_job(
    "collect",
    selection=dg.AssetSelection.assets(collected_revisions),
    executor_def=dg.in_process_executor,
    description="Garbage collection of one collection; started every hour where there is some.",
)
