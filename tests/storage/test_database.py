"""A question that is broken off leaves the pool's connections well."""

from __future__ import annotations

import asyncio
from typing import LiteralString

import pytest

from knowledge.errors import InvalidInput
from knowledge.runtime import Runtime
from knowledge.storage.postgres.database import AsyncDatabase, Params

UNTIL_PREPARED = 5
"""Uses of a statement before the driver has the server keep it."""


def ask_again_after(runtime: Runtime, breaking: tuple[LiteralString, Params]) -> object:
    """Break off a pipeline in which a statement is kept for the first time; use it once more."""

    async def asked() -> object:
        database = AsyncDatabase(runtime.urls.app_url, max_size=1)
        await database.open()
        kept: tuple[LiteralString, Params] = ("select %s::int as found", [7])
        try:
            for _ in range(UNTIL_PREPARED):
                await database.rows("t1", kept)
            with pytest.raises((TimeoutError, InvalidInput)):
                async with asyncio.timeout(0.3):
                    await database.rows("t1", breaking, kept)
            [[row]] = await database.rows("t1", kept)
            return row["found"]
        finally:
            await database.close()

    return asyncio.run(asked())


def test_a_cancelled_question_leaves_nothing_half_prepared(runtime: Runtime) -> None:
    assert ask_again_after(runtime, ("select pg_sleep(%s)", [30])) == 7


def test_a_refused_value_leaves_nothing_half_prepared(runtime: Runtime) -> None:
    assert ask_again_after(runtime, ("select %s::text::int", ["no number"])) == 7
