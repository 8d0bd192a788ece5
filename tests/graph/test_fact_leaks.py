"""Randomised questions find what is in scope and nothing else; ``make leaks`` asks fifty times as often."""

from __future__ import annotations

import asyncio

from benchmarks.fact_leaks import find_fact_leaks
from knowledge.runtime import Runtime


def test_four_hundred_random_questions_find_all_that_is_in_scope_and_nothing_else(
    runtime: Runtime, tenant: str
) -> None:
    counts = asyncio.run(find_fact_leaks(runtime, 400, 120, seed=4, prefix=f"{tenant}-"))
    assert (counts["queries"], counts["foreign"], counts["short"]) == (400, 0, 0)
    assert counts["facts"] > 1_000
