"""Memories that are kept warm: each brought up to what a question may know before it is asked."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Final
from weakref import WeakValueDictionary

import numpy as np

from knowledge.memory.names import BEFORE_ALL, NameIndex
from knowledge.memory.plan import MemoryPlan
from knowledge.storage.postgres.database import AsyncDatabase
from knowledge.storage.postgres.facts import memories, memory_vectors

MAX_WARM: Final = 256
MAX_NAMES: Final = 250_000
"""Memories, and names of all of them, that are kept; 5,000 names take about 12 MB."""

UNCOMMITTED: Final = timedelta(minutes=1)
"""How much later than it says a vector of another process may have become visible."""

Place = tuple[str, str, str]
"""Tenant, project, namespace."""


class WarmNames:
    """Name indexes by place, the least used dropped first. For one event loop."""

    def __init__(self, database: AsyncDatabase) -> None:
        self._database = database
        self._kept: OrderedDict[Place, NameIndex] = OrderedDict()
        # A lock lives as long as somebody holds it or waits for it.
        self._locks: WeakValueDictionary[Place, asyncio.Lock] = WeakValueDictionary()

    async def current(self, plan: MemoryPlan, fingerprint: str | None) -> NameIndex:
        """The names as of what the plan knows, with the vectors of a model where one is given."""
        place = plan.place
        async with self._lock(place):
            index = self._kept.get(place)
            if index is None or index.erased_at != plan.erased_at or index.is_sparse:
                index = NameIndex(*place)
                index.erased_at = plan.erased_at
            if index.known_at < plan.known_at or index.merges != plan.merges:
                await self._take_facts(index, plan)
            if fingerprint is not None and (
                index.fingerprint != fingerprint or index.embedded_at != plan.embedded_at
            ):
                await self._take_vectors(index, fingerprint)
                index.embedded_at = plan.embedded_at
            # What holds nothing is not worth a place, and names nobody has are asked for freely.
            if len(index):
                self._keep(place, index)
            return index

    def drop(self, place: Place) -> None:
        self._kept.pop(place, None)

    def _lock(self, place: Place) -> asyncio.Lock:
        lock = self._locks.get(place)
        if lock is None:
            lock = self._locks[place] = asyncio.Lock()
        return lock

    def _keep(self, place: Place, index: NameIndex) -> None:
        self._kept[place] = index
        self._kept.move_to_end(place)
        while len(self._kept) > 1 and (
            len(self._kept) > MAX_WARM or sum(map(len, self._kept.values())) > MAX_NAMES
        ):
            self._kept.popitem(last=False)

    async def _take_facts(self, index: NameIndex, plan: MemoryPlan) -> None:
        upto = max(plan.known_at, index.known_at)
        facts, merges = await memories.changed_names(
            self._database, *plan.place, since=index.known_at, upto=upto
        )
        if index.known_at == BEFORE_ALL:  # nobody else has it yet, and it must not hold up others
            await asyncio.to_thread(index.apply, facts, merges, upto)
        else:
            index.apply(facts, merges, upto)
        index.merges = plan.merges

    async def _take_vectors(self, index: NameIndex, fingerprint: str) -> None:
        is_same = index.fingerprint == fingerprint and index.vectors_at != BEFORE_ALL
        after: datetime = index.vectors_at - UNCOMMITTED if is_same else BEFORE_ALL
        place = index.tenant_id, index.project_id, index.namespace
        rows = await memory_vectors.vectors_of(self._database, *place, fingerprint, after)
        index.take_vectors(
            fingerprint,
            ((row["name_key"], np.frombuffer(row["vector"], np.float32)) for row in rows),
        )
        index.vectors_at = max([index.vectors_at, *(row["embedded_at"] for row in rows)])
