"""The suite over PostgreSQL: each fault is found by its check."""

from __future__ import annotations

import pytest

from dbt_like_checks import Status
from knowledge.model.collection import Collection
from knowledge.runtime import Runtime
from orchestration.checking import COLLECTION, run_suite
from tests.checks.conftest import bad
from tests.publication import collection_of, publish_documents

FAR = "now() - interval '1 hour'"
ROWS: list[tuple[str, dict[str, Status]]] = [
    (
        "delete from metadata_items where object_id in (select object_id from chunk_versions"
        " where collection_id = %(c)s and to_rev = 2147483647 limit 1)",
        {"every_chunk_has_a_metadata_item": Status.FAIL},
    ),
    (
        "update chunk_versions set acl = '{everyone}' where collection_id = %(c)s",
        {"chunk_acl_names_a_user_or_group": Status.FAIL},
    ),
    (
        "update sources set acl = array[null] where collection_id = %(c)s",
        {"source_acl_names_a_user_or_group": Status.FAIL},
    ),
    (
        "delete from source_versions where collection_id = %(c)s",
        {"every_source_with_chunks_has_a_version": Status.FAIL},
    ),
    (
        "delete from vectors where tenant_id = %(t)s",
        {"every_chunk_has_a_vector": Status.FAIL},
    ),
    (
        "delete from term_frequencies where collection_id = %(c)s;"
        "delete from term_statistics where collection_id = %(c)s",
        {"term_statistics_are_frozen": Status.FAIL},
    ),
    (
        "update index_revisions set state = 'Retired' where collection_id = %(c)s"
        " and kind = 'metadata'",
        {"one_revision_of_a_kind_serves": Status.FAIL},
    ),
    (
        "update index_revisions set state = 'Building', error = 'no' where collection_id = %(c)s"
        " and revision = 1",
        {},  # a later switch superseded it
    ),
    (
        "update index_revisions set state = 'Building', error = 'no', revision = 3"
        " where collection_id = %(c)s and revision = 1 and kind = 'vector'",
        {"no_build_failed": Status.WARN},
    ),
    (
        "update generations set applied_rev = 1 where collection_id = %(c)s"
        " and backend = 'postgres'",
        {
            "serving_generation_is_at_the_head": Status.WARN,
            "kept_counts_equal_the_rows": Status.FAIL,
        },
    ),
    (
        "update collections set open_chunks = open_chunks + 1 where collection_id = %(c)s",
        {"kept_counts_equal_the_rows": Status.FAIL},
    ),
    (
        "update collections set embedding_profile = 'other@1' where collection_id = %(c)s",
        {"pinned_profile_serves_or_is_being_built": Status.FAIL},
    ),
    (
        "update generations set items = items - 1 where collection_id = %(c)s",
        {"kept_counts_equal_the_rows": Status.FAIL},
    ),
    (
        "update chunk_versions set to_rev = 2 where collection_id = %(c)s and path in ('1', '2')",
        {"kept_counts_equal_the_rows": Status.FAIL},  # three dead rows: too few to build anew
    ),
    (
        "update chunk_versions set to_rev = 3 where collection_id = %(c)s and to_rev = 2",
        {
            "no_revision_shows_two_versions_of_a_chunk": Status.FAIL,
            "one_version_of_a_chunk_serves": Status.FAIL,
        },
    ),
    (
        "update chunk_versions set to_rev = 1 where collection_id = %(c)s and to_rev = 2",
        {
            "version_opens_before_it_closes": Status.FAIL,
            "kept_counts_equal_the_rows": Status.FAIL,
        },
    ),
    (
        f"update inbox set state = 'pending', received_at = {FAR} where collection_id = %(c)s",
        {"no_event_waits_5_minutes": Status.WARN, "no_event_waits_30_minutes": Status.FAIL},
    ),
    (
        "update inbox set state = 'committed', received_at = now() - interval '6 minutes'"
        " where collection_id = %(c)s",
        {"no_event_waits_5_minutes": Status.WARN},
    ),
    (
        "update inbox set state = 'rejected' where collection_id = %(c)s",
        {"no_event_was_rejected_within_a_day": Status.WARN},
    ),
    (
        f"update inbox set state = 'rejected', settled_at = {FAR} - interval '1 day'"
        " where collection_id = %(c)s",
        {},
    ),
]


@pytest.mark.parametrize(("change", "names"), ROWS)
def test_a_fault_in_postgresql_is_found_by_its_checks(
    runtime: Runtime, collection: Collection, change: str, names: dict[str, Status]
) -> None:
    with runtime.owner.transaction() as connection:
        for statement in change.split(";"):
            connection.execute(
                statement, {"c": collection.collection_id, "t": collection.tenant_id}
            )
    assert bad(run_suite(runtime, collection, COLLECTION)) == names


@pytest.mark.parametrize(("dead", "status"), [(19, None), (20, Status.WARN)])
def test_dead_rows_are_told_of_from_the_number_on_that_is_built_anew(
    runtime: Runtime, tenant: str, dead: int, status: Status | None
) -> None:
    collection = collection_of(runtime, tenant)
    documents = [{"id": str(n), "text": f"page {n}"} for n in range(dead + 5)]
    publish_documents(runtime, collection, documents)
    publish_documents(runtime, collection, documents[:5])
    found = bad(run_suite(runtime, runtime.collection(tenant, "docs"), COLLECTION))
    assert found.get("at_most_a_fifth_of_the_rows_is_dead") is status
