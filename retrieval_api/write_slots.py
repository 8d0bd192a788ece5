"""Slots for writing facts: a tenant's batches wait for one another, not others for them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from knowledge.errors import Busy

CONCURRENT_WRITES: Final = 2
"""Of facts: each takes a thread and a connection, which searches and events need as well."""

SLOT_TIMEOUT_S: Final = 10.0


class WriteSlots:
    """For one event loop."""

    def __init__(self) -> None:
        self._all = asyncio.Semaphore(CONCURRENT_WRITES)
        self._of_tenant: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @asynccontextmanager
    async def of(self, tenant_id: str) -> AsyncIterator[None]:
        """Wait until nobody else of the tenant writes facts, and fewer than `CONCURRENT_WRITES` of
        all. Raises `Busy`."""
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(SLOT_TIMEOUT_S):
                    await held.enter_async_context(self._of_tenant[tenant_id])
                    await held.enter_async_context(self._all)
            except TimeoutError as error:
                raise Busy("others are writing facts: try again") from error
            yield
