"""The indexes of a collection, brought to the head of its clock, and the switch to them."""

import dagster as dg

from knowledge.indexing.convergence import Converged, converge_hybrid, converge_metadata
from knowledge.indexing.embeddings import embed_missing
from knowledge.indexing.serving import serve
from knowledge.storage.postgres.inbox import age_s
from orchestration.defs.metadata import Metadata, sample_table, without_nothing
from orchestration.defs.partitions import collections
from orchestration.defs.resources import KnowledgeHome
from orchestration.defs.snapshots.assets import chunk_snapshot
from orchestration.defs.steps import GROUP, OWNERS, RETRIES, CollectionStep, collection_step


@dg.asset(
    group_name=GROUP,
    deps=[chunk_snapshot],
    partitions_def=collections,
    retry_policy=RETRIES,
    kinds={"onnx", "parquet"},
    owners=OWNERS,
    tags={"layer": "index"},
    code_version="1",
    description="""Vectors for every text that the indexes need and the cache does not hold yet.

Uses the embedding profile pinned by the collection (`minilm@1` by default, in this process; no
profile, no vectors). Each batch is stored as soon as it is done, so a killed run resumes, and
the same text is never embedded twice for a tenant and profile.""",
)
def embeddings(
    context: dg.AssetExecutionContext, home: KnowledgeHome
) -> dg.MaterializeResult[None]:
    with collection_step(context, home) as step:
        receipt = embed_missing(step.runtime, step.lease)
        return dg.MaterializeResult(
            metadata=without_nothing(
                {
                    "revision": step.collection.head_rev,
                    "embedding_profile": receipt.profile or "none",
                    "texts_embedded": receipt.texts,
                    "texts_reused": receipt.reused,
                    "tokens": receipt.tokens,
                    "bytes": receipt.bytes,
                    "seconds": receipt.seconds,
                    "cost_usd": receipt.cost,
                }
            )
        )


@dg.asset(
    group_name=GROUP,
    deps=[embeddings],
    partitions_def=collections,
    retry_policy=RETRIES,
    kinds={"hybrid"},
    owners=OWNERS,
    tags={"layer": "index"},
    code_version="1",
    description="""The vector and the full-text index of a collection, in Weaviate or pgvector.

Writes what lies between the revision the index has reached and the head of the clock, read from
PostgreSQL and never from the index. Counts are compared and just-written chunks are searched by
their words before it is done; a difference is repaired. A new embedding profile builds a new
generation while the old one serves.""",
)
def hybrid_index(
    context: dg.AssetExecutionContext, home: KnowledgeHome
) -> dg.MaterializeResult[None]:
    with collection_step(context, home) as step:
        done = converge_hybrid(step.runtime, step.lease)
        return dg.MaterializeResult(metadata=_converged(step, done))


@dg.asset(
    group_name=GROUP,
    deps=[chunk_snapshot],
    partitions_def=collections,
    retry_policy=RETRIES,
    kinds={"postgres"},
    owners=OWNERS,
    tags={"layer": "index"},
    code_version="1",
    description="""The words of path, title and tags of every chunk, in PostgreSQL.

Serves the metadata leg of a query, which finds documents by what they are called.""",
)
def metadata_index(
    context: dg.AssetExecutionContext, home: KnowledgeHome
) -> dg.MaterializeResult[None]:
    with collection_step(context, home) as step:
        done = converge_metadata(step.runtime, step.lease)
        return dg.MaterializeResult(metadata=_converged(step, done))


@dg.asset(
    group_name=GROUP,
    deps=[hybrid_index, metadata_index],
    partitions_def=collections,
    retry_policy=RETRIES,
    kinds={"postgres"},
    owners=OWNERS,
    tags={"layer": "serving"},
    code_version="1",
    description="""The switch: which revision queries read.

Evaluates the guards itself (every index at the head, counts equal, fresh words found), then makes
the vector, full-text and metadata revisions Ready and retires those before, in one transaction
with their events. Until then, and when a guard fails, queries go on reading the old revision.""",
)
def serving(context: dg.AssetExecutionContext, home: KnowledgeHome) -> dg.MaterializeResult[None]:
    with collection_step(context, home) as step:
        done = serve(step.runtime, step.lease)
        return dg.MaterializeResult(
            metadata=without_nothing(
                {
                    "revision": done.revision,
                    "switched": ", ".join(done.kinds) or "nothing, all served already",
                    "chunks_visible": done.items,
                    "seconds": done.seconds,
                    "lag_s": age_s(step.runtime.app, step.collection, done.revision)
                    if done.kinds
                    else None,
                    "sample": sample_table(step, done.revision),
                }
            )
        )


def _converged(step: CollectionStep, done: Converged) -> Metadata:
    return without_nothing(
        {
            "revision": done.revision,
            "revisions_caught_up": done.behind,
            "items_written": done.written,
            "items_held": done.items,
            "embedding_profile": done.profile,
            "generation": str(done.generation) if done.generation else None,
            "seconds": done.seconds,
            "sample": sample_table(step, done.revision),
        }
    )
