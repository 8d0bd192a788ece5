"""Rebuilding a collection's hybrid index, beside the one that serves."""

import uuid
from collections.abc import Iterator

import dagster as dg
from pydantic import Field

from knowledge.errors import RebuildCancelled
from knowledge.indexing.rebuild_requests import cancel_rebuild, request_rebuild
from knowledge.indexing.rebuilding import Rebuilt, clear_ended, rebuild
from knowledge.model.identity import split_partition_key
from knowledge.runtime import Runtime
from knowledge.storage.postgres import rebuilds
from knowledge.storage.postgres.rebuilds import Rebuild
from orchestration.checking import HYBRID_INDEX, run_suite
from orchestration.defs.checks.results import check_evaluation, check_results
from orchestration.defs.indexes.checks import INDEX_ASSET, INDEX_SHOWN
from orchestration.defs.metadata import without_nothing
from orchestration.defs.partitions import collections
from orchestration.defs.resources import KnowledgeHome
from orchestration.defs.steps import translated

AS_PINNED = "as pinned"
CANCELLED = (dg.DagsterRunStatus.CANCELING, dg.DagsterRunStatus.CANCELED)


class RebuildConfig(dg.Config):
    """What to build. Without a rebuild's id, one is asked for."""

    rebuild_id: str | None = Field(None, description="The rebuild to work on.")
    embedding_profile: str = Field(
        AS_PINNED, description="name@version, 'none' for no model, or 'as pinned'."
    )


@dg.op(
    out={},
    description="Builds a new generation beside the serving one, replays what is published"
    " meanwhile, and switches. Cancelling the run cancels the rebuild; what serves goes on serving.",
)
def rebuild_generation(
    context: dg.OpExecutionContext, home: KnowledgeHome, config: RebuildConfig
) -> Iterator[dg.AssetMaterialization | dg.AssetCheckEvaluation]:
    partition = context.partition_key
    with translated(partition):
        runtime = home.runtime
        wanted = _wanted(runtime, context, config)
        try:
            done = rebuild(runtime, wanted, owner=context.run_id, progress=context.log.info)
        except dg.DagsterExecutionInterruptedError:
            # A stack that stops interrupts too; then the rebuild goes on when it runs again.
            run = context.instance.get_run_by_id(context.run_id)
            if run is not None and run.status in CANCELLED:
                collection = runtime.collection(wanted.tenant_id, str(wanted.collection_id))
                cancel_rebuild(runtime.app, collection, wanted)
                clear_ended(runtime, collection, wanted.rebuild_id)
            raise
        except RebuildCancelled:
            context.log.warning("the rebuild was cancelled; what served goes on serving")
            context.instance.add_run_tags(context.run_id, {"knowledge/outcome": "cancelled"})
            return
    yield from _shown(runtime, partition, done)


def _wanted(runtime: Runtime, context: dg.OpExecutionContext, config: RebuildConfig) -> Rebuild:
    """The rebuild that the run is for: its own when none is named."""
    tenant_id, slug = split_partition_key(context.partition_key)
    if config.rebuild_id is not None:
        return rebuilds.find(runtime.app, tenant_id, uuid.UUID(config.rebuild_id))
    collection = runtime.collection(tenant_id, slug)
    profile = collection.embedding_profile
    if config.embedding_profile != AS_PINNED:
        profile = None if config.embedding_profile == "none" else config.embedding_profile
        if profile is not None:
            runtime.permitted_embedder(profile, allow_remote=collection.allow_remote)
    asked = request_rebuild(
        runtime.app,
        collection,
        profile=profile,
        reason="requested",
        requested_by="dagster",
        rebuild_id=uuid.uuid5(uuid.NAMESPACE_OID, context.run_id),
    )
    if asked is None:
        raise dg.Failure("nothing was published yet: the first publish builds the index")
    return asked


def _shown(
    runtime: Runtime, partition: str, done: Rebuilt
) -> Iterator[dg.AssetMaterialization | dg.AssetCheckEvaluation]:
    """The new index in the lineage, with the results of its checks."""
    for asset in ("hybrid_index", "serving"):
        yield _materialization(asset, partition, done)
    collection = runtime.collection(*split_partition_key(partition))
    looked = run_suite(runtime, collection, HYBRID_INDEX, whole=False)
    for result in check_results(INDEX_SHOWN, INDEX_ASSET, looked, nothing="Nothing is indexed."):
        yield check_evaluation(result, partition)


def _materialization(asset: str, partition: str, done: Rebuilt) -> dg.AssetMaterialization:
    return dg.AssetMaterialization(
        asset_key=asset,
        partition=partition,
        metadata=without_nothing(
            {
                "revision": done.revision,
                "generation": str(done.generation),
                "embedding_profile": done.profile or "none",
                "items_held": done.items,
                "texts_embedded": done.embedded,
                "rounds_of_replay": done.rounds,
                "lease_held_s": done.lease_s,
                "seconds": done.seconds,
            }
        ),
    )


@dg.job(
    name="rebuild",
    partitions_def=collections,
    executor_def=dg.in_process_executor,
    description="Builds a collection's vector and full-text index anew, with the pinned embedding"
    " profile or another one, while the old index serves and publishes go on.",
)
def rebuild_job() -> None:
    rebuild_generation()
