"""The job that takes a collection from published to searchable."""

import dagster as dg

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
    selection=dg.AssetSelection.assets(*ASSETS),
    # One process for all steps: starting one for each would cost seconds a step.
    executor_def=dg.in_process_executor,
    description="Pending snapshots of a collection become a revision, the indexes follow, queries"
    " switch to it. Runs by itself after every publish; running it again changes nothing.",
)
