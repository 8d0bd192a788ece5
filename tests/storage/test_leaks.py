"""Randomised scopes find nothing out of scope; ``make leaks`` asks fifty times as often."""

from __future__ import annotations

import asyncio
from collections import Counter

from benchmarks.leaks import find_leaks
from tests.storage.conftest import Backend


def test_two_thousand_random_scopes_find_all_that_is_in_scope_and_nothing_else(
    backend: Backend,
) -> None:
    async def ask() -> Counter[str]:
        async with backend.search() as search:
            return await find_leaks([(backend.index, True)], search, 2000, 300, seed=4)

    counts = asyncio.run(ask())
    assert (counts["queries"], counts["foreign"], counts["short"]) == (2000, 0, 0)
    assert counts["hits"] > 5000
