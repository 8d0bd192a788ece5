"""Does the hybrid index hold what PostgreSQL says? Asked before the switch, and at any time."""

from collections.abc import Iterator

import dagster as dg

from knowledge.indexing.consistency import compare_hybrid
from orchestration.defs.indexes.assets import hybrid_index
from orchestration.defs.partitions import collection_check
from orchestration.defs.resources import KnowledgeHome
from orchestration.defs.steps import RETRIES, collection_step

SHOWN = 10
COUNT = "item_count_equals_postgresql"
ORPHANS = "no_item_is_unknown_to_postgresql"


@dg.multi_asset_check(
    name="hybrid_index_consistency",
    specs=[
        collection_check(
            COUNT,
            asset=hybrid_index,
            blocking=True,
            description="Weaviate holds as many items as PostgreSQL has chunk versions for it.",
        ),
        collection_check(
            ORPHANS,
            asset=hybrid_index,
            blocking=True,
            description="No item of Weaviate is missing from PostgreSQL. Looks at 1,000 items,"
            " at another place in every revision.",
        ),
    ],
    retry_policy=RETRIES,
)
def hybrid_index_consistency(
    context: dg.AssetCheckExecutionContext, home: KnowledgeHome
) -> Iterator[dg.AssetCheckResult]:
    with collection_step(context, home) as step:
        found = compare_hybrid(step.runtime, step.collection)
    if found is None:
        for name in (COUNT, ORPHANS):
            yield dg.AssetCheckResult(
                asset_key=hybrid_index.key,
                check_name=name,
                passed=True,
                description="Nothing is indexed yet.",
            )
        return
    yield dg.AssetCheckResult(
        asset_key=hybrid_index.key,
        check_name=COUNT,
        passed=found.found == found.expected,
        metadata={
            "revision": found.revision,
            "in_postgresql": found.expected,
            "in_weaviate": found.found,
        },
    )
    yield dg.AssetCheckResult(
        asset_key=hybrid_index.key,
        check_name=ORPHANS,
        passed=not found.orphans,
        metadata={
            "revision": found.revision,
            "items_looked_at": found.looked_at,
            "orphans": len(found.orphans),
            "orphan_ids": [str(orphan) for orphan in found.orphans[:SHOWN]],
        },
    )
