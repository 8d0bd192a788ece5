"""Publishing notices: which collections need a run, told from the tables alone."""

from collections.abc import Iterator, Sequence

import dagster as dg
from dagster import DagsterInstance

from knowledge.errors import Unavailable
from knowledge.settings import load_settings
from knowledge.storage.postgres.catalogue import find_collection, list_collections
from knowledge.storage.postgres.database import Database
from knowledge.storage.postgres.inbox import PendingWork, count_attempt, given_up, pending_work
from orchestration.defs.jobs import publish
from orchestration.defs.partitions import collections
from orchestration.defs.resources import KnowledgeHome
from orchestration.defs.runs import is_active, unfinished_runs, was_run


@dg.sensor(
    job=publish,
    minimum_interval_seconds=2,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Starts one run for each collection with something to do, and adds the partitions"
    " of new collections. What is pending stands in the inbox, so nothing is lost while it is off.",
)
def published_chunks(
    context: dg.SensorEvaluationContext, home: KnowledgeHome
) -> dg.SensorResult | dg.SkipReason:
    max_attempts = load_settings(home.location).indexing.max_attempts
    try:
        with home.owner_database() as owner:
            keys = [collection.partition for collection in list_collections(owner)]
            work = pending_work(owner, max_attempts=max_attempts)
            requests = list(_requests(context.instance, owner, work))
            stuck = given_up(owner, max_attempts=max_attempts)
    except Unavailable as error:
        return dg.SkipReason(error.message)
    known = set(context.instance.get_dynamic_partitions(str(collections.name)))
    added = [key for key in keys if key not in known]
    return dg.SensorResult(
        run_requests=requests,
        skip_reason=None if requests else _nothing_to_start(len(keys), len(work), stuck),
        dynamic_partitions_requests=[collections.build_add_request(added)] if added else [],
    )


def _requests(
    instance: DagsterInstance, owner: Database, work: Sequence[PendingWork]
) -> Iterator[dg.RunRequest]:
    if not work:
        return
    unfinished = unfinished_runs(instance)
    for item in work:
        if is_active(instance, unfinished[item.partition]):
            continue
        run_key = f"{item.partition}:{item.last_sequence}:{item.attempt}"
        if was_run(instance, run_key):
            # Its run ended before the step that counts attempts, and Dagster never runs a key
            # twice: counted here, the work comes back with another key.
            count_attempt(owner, find_collection(owner, item.tenant_id, str(item.collection_id)))
            continue
        yield dg.RunRequest(
            run_key=run_key,
            partition_key=item.partition,
            tags={
                "knowledge/sequence": str(item.last_sequence),
                "knowledge/attempt": str(item.attempt + 1),
            },
        )


def _nothing_to_start(count: int, waiting: int, stuck: Sequence[str]) -> str:
    if stuck:
        return (
            f"{', '.join(stuck[:5])} failed as often as is allowed: see the last run, then"
            " materialize the partition by hand"
        )
    if waiting:
        return f"{waiting} of {count} collections are being worked on"
    return f"{count} collections, nothing pending"
