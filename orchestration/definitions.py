"""Everything Dagster loads: ``workspace.yaml`` names this module."""

import dagster as dg

from orchestration.defs.backend.jobs import backend_health
from orchestration.defs.backend.schedules import backend_health_probe
from orchestration.defs.checks.jobs import check_collections
from orchestration.defs.checks.schedules import nightly_checks
from orchestration.defs.checks.whole import WHOLE_CHECKS
from orchestration.defs.generations.assets import collect_job, collected_revisions
from orchestration.defs.generations.jobs import rebuild_job
from orchestration.defs.generations.schedules import garbage_collection
from orchestration.defs.generations.sensors import rebuild_requests
from orchestration.defs.indexes.checks import cached_embeddings, hybrid_index_consistency
from orchestration.defs.jobs import ASSETS, publish
from orchestration.defs.resources import KnowledgeHome
from orchestration.defs.snapshots.sensors import published_chunks

defs = dg.Definitions(
    assets=[*ASSETS, collected_revisions],
    asset_checks=[cached_embeddings, hybrid_index_consistency, *WHOLE_CHECKS],
    jobs=[publish, rebuild_job, collect_job, check_collections, backend_health],
    sensors=[published_chunks, rebuild_requests],
    schedules=[backend_health_probe, garbage_collection, nightly_checks],
    resources={"home": KnowledgeHome()},
    executor=dg.in_process_executor,
)
