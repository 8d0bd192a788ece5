"""Everything Dagster loads: ``workspace.yaml`` names this module."""

import dagster as dg

from orchestration.defs.backend.jobs import backend_health
from orchestration.defs.backend.schedules import backend_health_probe
from orchestration.defs.indexes.checks import hybrid_index_consistency
from orchestration.defs.jobs import ASSETS, publish
from orchestration.defs.resources import KnowledgeHome
from orchestration.defs.snapshots.sensors import published_chunks

defs = dg.Definitions(
    assets=[*ASSETS],
    asset_checks=[hybrid_index_consistency],
    jobs=[publish, backend_health],
    sensors=[published_chunks],
    schedules=[backend_health_probe],
    resources={"home": KnowledgeHome()},
    executor=dg.in_process_executor,
)
