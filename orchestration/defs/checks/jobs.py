"""The job that checks a collection as a whole."""

import dagster as dg

from orchestration.defs.checks.whole import check_collection
from orchestration.defs.partitions import collections


@dg.job(
    partitions_def=collections,
    executor_def=dg.in_process_executor,
    description="Compares the whole hybrid index with PostgreSQL, looks at every cached vector and"
    " at how the collection stands. Changes nothing and does not delay a publish.",
)
def check_collections() -> None:
    check_collection()
