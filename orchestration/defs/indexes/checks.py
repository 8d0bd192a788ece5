"""What must hold before the switch: the vectors an index is built from, and the index itself.

Both look at what the publish changes and a stretch of the rest, so that a publish costs as much
in a large collection as in a small one. The job `check_collections` looks at everything.
"""

from collections.abc import Iterator

import dagster as dg

from dbt_like_checks import Severity
from orchestration.checking import EMBEDDINGS, HYBRID_INDEX, run_suite, suite_checks
from orchestration.defs.checks.results import (
    Shown,
    by_severity,
    check_results,
    check_specs,
    require_passed,
)
from orchestration.defs.resources import KnowledgeHome
from orchestration.defs.steps import RETRIES, collection_step, noted

EMBEDDINGS_ASSET = dg.AssetKey("embeddings")
INDEX_ASSET = dg.AssetKey("hybrid_index")
EMBEDDINGS_SHOWN = by_severity("embeddings", suite_checks(EMBEDDINGS))
INDEX_SHOWN = by_severity("hybrid_index", suite_checks(HYBRID_INDEX))


@dg.multi_asset_check(
    name="cached_embeddings",
    specs=check_specs(
        EMBEDDINGS_SHOWN,
        EMBEDDINGS_ASSET,
        {
            Severity.ERROR: "The index is not written while a vector for it is missing or wrong."
            " Looks at the texts that the index lacks yet."
        },
    ),
    retry_policy=RETRIES,
)
def cached_embeddings(
    context: dg.AssetCheckExecutionContext, home: KnowledgeHome
) -> Iterator[dg.AssetCheckResult]:
    yield from _check(
        context,
        home,
        EMBEDDINGS,
        (EMBEDDINGS_SHOWN, EMBEDDINGS_ASSET),
        nothing="The collection has no vectors.",
        otherwise="remove the files that the check embeddings_valid names, materialise again",
    )


@dg.multi_asset_check(
    name="hybrid_index_consistency",
    specs=check_specs(
        INDEX_SHOWN,
        INDEX_ASSET,
        {
            Severity.ERROR: "Queries are not switched to an index that differs from PostgreSQL."
            " Looks at 1,000 items, at another place in every revision."
        },
    ),
    retry_policy=RETRIES,
)
def hybrid_index_consistency(
    context: dg.AssetCheckExecutionContext, home: KnowledgeHome
) -> Iterator[dg.AssetCheckResult]:
    yield from _check(
        context,
        home,
        HYBRID_INDEX,
        (INDEX_SHOWN, INDEX_ASSET),
        nothing="Nothing is indexed yet.",
        otherwise="see the check hybrid_index_valid; `knowledge rebuild` builds a sound index",
    )


def _check(
    context: dg.AssetCheckExecutionContext,
    home: KnowledgeHome,
    suite: str,
    shown_on: tuple[Shown, dg.AssetKey],
    *,
    nothing: str,
    otherwise: str,
) -> Iterator[dg.AssetCheckResult]:
    with collection_step(context, home) as step:
        looked = run_suite(step.runtime, step.collection, suite, whole=False)
    # Given back before the first result: who runs a step may drop it between two results.
    yield from check_results(*shown_on, looked, nothing=nothing)
    with noted(context, home):
        require_passed(looked, otherwise=otherwise)
