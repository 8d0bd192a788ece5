"""Every check on everything a collection has: finds what changed behind our back.

Without the collection's lease: publishes go on meanwhile, what they touch is not compared.
"""

from collections.abc import Iterator
from typing import Final

import dagster as dg

from dbt_like_checks import Severity
from knowledge.model.identity import split_partition_key
from orchestration.checking import (
    COLLECTION,
    EMBEDDINGS,
    HYBRID_INDEX,
    Looked,
    run_suite,
    suite_checks,
)
from orchestration.defs.checks.results import (
    Shown,
    by_severity,
    check_evaluation,
    check_results,
    check_specs,
    require_passed,
)
from orchestration.defs.resources import KnowledgeHome
from orchestration.defs.steps import RETRIES, translated

NOTHING: Final = "The collection has nothing of this yet."
WHOLE: Final[dict[str, tuple[dg.AssetKey, Shown]]] = {
    EMBEDDINGS: (
        dg.AssetKey("embeddings"),
        by_severity("all_embeddings", suite_checks(EMBEDDINGS)),
    ),
    HYBRID_INDEX: (
        dg.AssetKey("hybrid_index"),
        by_severity("whole_index", suite_checks(HYBRID_INDEX)),
    ),
    COLLECTION: (dg.AssetKey("serving"), by_severity("collection", suite_checks(COLLECTION))),
}
"""Suite -> the asset that its results stand on, and the Dagster checks that show them."""

CONSEQUENCES: Final = {
    Severity.ERROR: "A failing row fails the nightly run; what serves goes on serving.",
    Severity.WARN: "Failing rows are reported.",
}


def _whole_check(suite: str) -> dg.AssetChecksDefinition:
    """The suite as checks of its asset, to be run from the UI."""
    asset, shown = WHOLE[suite]

    @dg.multi_asset_check(
        name=f"whole_{suite}",
        specs=check_specs(shown, asset, CONSEQUENCES, may_block=False),
        retry_policy=RETRIES,
    )
    def whole(
        context: dg.AssetCheckExecutionContext, home: KnowledgeHome
    ) -> Iterator[dg.AssetCheckResult]:
        looked = _look(home, context.partition_key, suite)
        yield from check_results(shown, asset, looked, nothing=NOTHING)

    return whole


WHOLE_CHECKS: Final = [_whole_check(suite) for suite in WHOLE]


@dg.op(
    out={},
    description="Runs the suites on one collection; fails, once all is shown, when a check did.",
    retry_policy=RETRIES,
)
def check_collection(
    context: dg.OpExecutionContext, home: KnowledgeHome
) -> Iterator[dg.AssetCheckEvaluation]:
    failed: list[Looked] = []
    for suite, (asset, shown) in WHOLE.items():
        looked = _look(home, context.partition_key, suite)
        for result in check_results(shown, asset, looked, nothing=NOTHING):
            # Dagster has no job of checks alone that is run by partition.
            yield check_evaluation(result, context.partition_key)
        failed += [seen for seen in looked if seen.outcome.is_blocking]
    with translated(context.partition_key):
        require_passed(failed, otherwise="see the checks of the assets for the failing ids")


def _look(home: KnowledgeHome, partition: str, suite: str) -> list[Looked]:
    with translated(partition):
        runtime = home.runtime
        collection = runtime.collection(*split_partition_key(partition))
        return run_suite(runtime, collection, suite)
