"""What every step on a collection shares: the lease of its run, and what a failure means."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass

import dagster as dg

from knowledge.errors import KnowledgeError, LeaseHeld, NotFound, Unavailable
from knowledge.indexing.failure import note_failure
from knowledge.indexing.tick import leased
from knowledge.model.collection import Collection
from knowledge.model.identity import split_partition_key
from knowledge.runtime import Runtime
from knowledge.storage.postgres.lease import Lease
from orchestration.defs.resources import KnowledgeHome

GROUP = "knowledge"  # one group, so that the lineage opens with every asset in sight
OWNERS = ["team:knowledge"]
TRANSIENT = (Unavailable, LeaseHeld)
RETRIES = dg.RetryPolicy(
    max_retries=3,
    delay=2,  # seconds, then 4 and 8
    backoff=dg.Backoff.EXPONENTIAL,
    jitter=dg.Jitter.PLUS_MINUS,
)
StepContext = dg.AssetExecutionContext | dg.AssetCheckExecutionContext


@dataclass(frozen=True, slots=True)
class CollectionStep:
    """One step of a run on its collection, which nobody else writes meanwhile."""

    runtime: Runtime
    lease: Lease

    @property
    def collection(self) -> Collection:
        """The collection as it is now: the clock may have ticked since the lease was taken."""
        collection = self.lease.collection
        return self.runtime.collection(collection.tenant_id, collection.slug)


@contextmanager
def collection_step(context: StepContext, home: KnowledgeHome) -> Iterator[CollectionStep]:
    """Hold the lease of the partition's collection in the run's name for the length of a step.

    Errors are those of `noted`.
    """
    tenant_id, slug = split_partition_key(context.partition_key)
    with noted(context, home):
        runtime = home.runtime
        with leased(runtime, tenant_id, slug, context.op_execution_context.run_id) as lease:
            yield CollectionStep(runtime, lease)


def noted(context: StepContext, home: KnowledgeHome) -> AbstractContextManager[None]:
    """`translated`, and the reason is kept with the partition's collection."""
    tenant_id, slug = split_partition_key(context.partition_key)
    return translated(context.partition_key, lambda reason: _note(home, tenant_id, slug, reason))


@contextmanager
def translated(
    partition: str, note: Callable[[str], None] = lambda _reason: None
) -> Iterator[None]:
    """Transient errors leave as they are, for the retry policy. Any other fails the step at once
    with one clear line. ``note`` is told the reason either way.
    """
    try:
        yield
    except TRANSIENT as error:
        note(error.message)
        raise
    except Exception as error:
        reason = error.message if isinstance(error, KnowledgeError) else repr(error)
        note(reason)
        raise dg.Failure(
            description=reason,
            metadata={"error": type(error).__name__, "collection": partition},
            allow_retries=False,
        ) from error


def _note(home: KnowledgeHome, tenant_id: str, slug: str, reason: str) -> None:
    # Where it cannot be kept, the run still says it.
    with suppress(Unavailable, NotFound), home.owner_database() as owner:
        note_failure(owner, tenant_id, slug, reason)
