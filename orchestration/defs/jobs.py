"""The job that takes a collection from published to searchable."""

import dagster as dg

from orchestration.defs.checks.whole import WHOLE_CHECKS
from orchestration.defs.indexes.assets import (
    embeddings,
    hybrid_index,
    metadata_index,
    serving,
)
from orchestration.defs.snapshots.assets import chunk_snapshot

ASSETS = (chunk_snapshot, embeddings, hybrid_index, metadata_index, serving)

publish = dg.define_asset_job(
    "publish",
    # Checks of whole collections would make every publish as slow as the collection is large.
    selection=dg.AssetSelection.assets(*ASSETS) - dg.AssetSelection.checks(*WHOLE_CHECKS),
    # One process for all steps: starting one for each would cost seconds a step.
    executor_def=dg.in_process_executor,
    description="Pending snapshots of a collection become a revision, the indexes follow, queries"
    " switch to it. Runs by itself after every publish; running it again changes nothing.",
)
