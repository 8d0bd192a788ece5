"""A batch of facts that is sent again is written once, and answered as the first time."""

from __future__ import annotations

import asyncio
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from knowledge.runtime import Runtime
from knowledge.storage.postgres import catalogue
from knowledge.storage.postgres.database import AsyncDatabase
from knowledge.storage.postgres.idempotency import delete_expired_keys
from tests.graph.telling import fact
from tests.retrieval_api.conftest import CallerFactory
from tests.retrieval_api.graph import GRAPH, WRITER, facts, objects, tell, try_tell
from tests.retrieval_api.service import Caller, assert_problem, http


@pytest.fixture
def writer(tenant: str, caller_factory: CallerFactory) -> Caller:
    return caller_factory(tenant, scopes=WRITER)


def _owned(by: str, since: str) -> dict[str, Any]:
    return fact("billing", "OWNED_BY", by, validFrom=since)


def test_the_same_key_answers_as_the_first_time(writer: Caller) -> None:
    said = _owned("a", "2024")
    first = tell(writer, said, key="k1")
    assert first["added"] == 1
    tell(writer, _owned("b", "2025"))
    assert tell(writer, dict(reversed(said.items())), key="k1") == first
    assert tell(writer, said)["unchanged"] == 1


def test_the_same_key_with_other_facts_is_a_conflict(
    writer: Caller, tenant: str, caller_factory: CallerFactory
) -> None:
    tell(writer, fact("a", "USES", "b"), key="k1")
    for other in (
        try_tell(writer, fact("a", "USES", "c"), key="k1"),
        try_tell(writer, key="k1"),
        try_tell(writer, fact("a", "USES", "b"), retract=[str(uuid.uuid4())], key="k1"),
    ):
        assert_problem(other, 409, "this Idempotency-Key came with another request")
    assert objects(writer) == ["b"]
    another = caller_factory(tenant, scopes=WRITER)
    assert tell(another, fact("a", "USES", "c"), key="k1")["added"] == 1


def test_a_refused_request_does_not_use_up_its_key(writer: Caller) -> None:
    assert_problem(try_tell(writer, fact("a", "lower", "b"), key="k1"), 422)
    assert tell(writer, fact("a", "USES", "b"), key="k1")["added"] == 1


@pytest.mark.parametrize("key", ["", "k" * 201])
def test_a_key_has_1_to_200_characters(writer: Caller, key: str) -> None:
    response = http().post(
        f"{writer.url}{GRAPH}/facts",
        headers={**writer.headers, "Idempotency-Key": key},
        json={"projectId": "p1", "facts": []},
    )
    assert_problem(response, 422, "Idempotency-Key must have 1 to 200 characters")


def test_a_request_sent_many_times_at_once_is_written_once(writer: Caller) -> None:
    said = [fact("hub", "USES", f"part-{n}") for n in range(50)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: tell(writer, *said, key="at once"), range(8)))
    assert all(answer == answers[0] for answer in answers)
    assert answers[0]["added"] == 50
    assert len(facts(writer, limit=1000)) == 50


def test_a_key_without_the_project_any_more_answers_nothing(
    runtime: Runtime, writer: Caller
) -> None:
    tell(writer, fact("a", "USES", "b"), key="k1")
    catalogue.change_client(runtime.owner, writer.client_id, projects=["p2"])
    assert_problem(try_tell(writer, fact("a", "USES", "b"), key="k1"), 404, "no project p1")


async def _forget(url: str, hours: int) -> int:
    database = AsyncDatabase(url)
    await database.open()
    try:
        return await delete_expired_keys(database, hours)
    finally:
        await database.close()


def test_an_answer_is_kept_for_a_day(runtime: Runtime, tenant: str, writer: Caller) -> None:
    first = tell(writer, fact("a", "USES", "b"), key="old")
    fresh = tell(writer, fact("a", "USES", "c"), key="fresh")
    with runtime.owner.transaction() as connection:
        connection.execute(
            "update idempotency_keys set stored_at = stored_at - interval '25 hours'"
            " where tenant_id = %s and key = 'old'",
            [tenant],
        )
    asyncio.run(_forget(runtime.urls.app_url, 24))
    assert tell(writer, fact("a", "USES", "c"), key="fresh") == fresh
    again = tell(writer, fact("a", "USES", "b"), key="old")
    assert (again["unchanged"], again["factIds"]) == (1, first["factIds"])
