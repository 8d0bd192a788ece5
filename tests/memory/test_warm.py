"""Memories kept warm: every write is seen by the next question, whoever made it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable

import pytest

from knowledge.graph.asserting import Batch, Retraction, assert_facts
from knowledge.graph.querying import FactReader
from knowledge.graph.receiving import Sender
from knowledge.memory import warm
from knowledge.memory.names import NameIndex
from knowledge.memory.plan import MemoryPlan, MemoryScope, plan_memory
from knowledge.memory.warm import WarmNames
from knowledge.memory.writing import Told, upsert
from knowledge.model.scope import READ, Caller
from knowledge.runtime import Runtime
from knowledge.storage.postgres import catalogue
from knowledge.storage.postgres.database import AsyncDatabase
from tests.memory.worker import sender_of


class Memories:
    """One tenant's memories, their writer, and a process that keeps them warm."""

    def __init__(self, runtime: Runtime, tenant: str, reader: FactReader) -> None:
        self.runtime, self.tenant = runtime, tenant
        self.reader = reader
        self.told: list[uuid.UUID] = []
        self.warm = WarmNames(reader.database)
        client_id, _ = catalogue.create_client(
            runtime.owner, tenant, projects=["p1"], groups=(), scopes=[READ]
        )
        self.caller = Caller(client_id, tenant, (READ,))

    @property
    def sender(self) -> Sender:
        return sender_of(self.runtime.app, self.tenant)

    async def tell(self, subject: str, object_: str, graph: str = "main") -> None:
        triple = {"subject": subject, "predicate": "NEXT_TO", "object": object_}
        told = Told(f"{self.tenant}|{graph}", [triple], "tests", "s1")
        done = await asyncio.to_thread(upsert, self.runtime.app, self.sender, told)
        self.told += [uuid.UUID(fact["factId"]) for fact in done["facts"]]

    def retract_all(self) -> None:
        sender = self.sender
        batch = Batch(retractions=[Retraction(fact) for fact in self.told])
        assert_facts(
            self.runtime.app,
            self.tenant,
            "p1",
            batch,
            writer=sender.writer,
            ontology=sender.ontology,
        )

    async def plan(self, graph: str = "main") -> MemoryPlan:
        return await plan_memory(self.reader, self.caller, MemoryScope("p1", graph))

    async def index(self, graph: str = "main") -> NameIndex:
        return await self.warm.current(await self.plan(graph), None)

    async def names(self, graph: str = "main") -> set[str]:
        index = await self.index(graph)
        return {index.entity(number).key for number in range(len(index))}


Work = Callable[[Memories], Awaitable[None]]


@pytest.fixture
def running(runtime: Runtime, tenant: str) -> Callable[[Work], None]:
    def run(work: Work) -> None:
        async def main() -> None:
            database = AsyncDatabase(runtime.urls.app_url)
            await database.open()
            try:
                await work(Memories(runtime, tenant, FactReader(database)))
            finally:
                await database.close()

        asyncio.run(main())

    return run


def test_writes_of_others_are_seen_by_the_next_question(running: Callable[[Work], None]) -> None:
    async def work(memories: Memories) -> None:
        await memories.tell("a", "b")
        first = await memories.index()
        await memories.tell("c", "d")
        await memories.tell("x", "y", graph="other")
        assert await memories.names() == {"a", "b", "c", "d"}
        assert await memories.index() is first  # brought up to date, not read anew
        assert await memories.names("other") == {"x", "y"}

    running(work)


def test_questions_at_once_with_writes_lose_no_name(running: Callable[[Work], None]) -> None:
    async def work(memories: Memories) -> None:
        async def ask() -> None:
            for _ in range(15):
                await asyncio.gather(*(memories.names() for _ in range(4)))

        async def write(writer: int) -> None:
            for number in range(10):
                await memories.tell(f"s{writer}-{number}", "hub")

        await asyncio.gather(ask(), ask(), write(1), write(2))
        wanted = {f"s{writer}-{number}" for writer in (1, 2) for number in range(10)}
        assert await memories.names() == wanted | {"hub"}
        await asyncio.to_thread(memories.retract_all)
        index = await memories.index()
        plan = await memories.plan()
        assert not index.visible(plan.facts.facts).any()  # nothing was counted twice

    running(work)


def test_memories_that_hold_nothing_take_no_place_and_the_least_used_go(
    running: Callable[[Work], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm, "MAX_WARM", 2)

    async def work(memories: Memories) -> None:
        for graph in ("g1", "g2", "g3"):
            await memories.tell("a", graph, graph=graph)
        first = await memories.index("g1")
        for number in range(20):
            assert await memories.names(f"nothing-{number}") == set()
        assert await memories.index("g1") is first
        await memories.index("g2")
        await memories.index("g3")
        assert await memories.index("g1") is not first
        assert await memories.names("g1") == {"a", "g1"}

    running(work)
