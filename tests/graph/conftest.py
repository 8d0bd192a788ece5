"""One reader of facts for all tests, and a tenant for each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from knowledge.graph.querying import FactReader
from knowledge.runtime import Runtime
from knowledge.storage.postgres.database import AsyncDatabase
from tests.graph.telling import Graph


@pytest.fixture(scope="session")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as opened:
        yield opened


@pytest.fixture(scope="session")
def reader(runtime: Runtime, runner: asyncio.Runner) -> Iterator[FactReader]:
    database = AsyncDatabase(runtime.urls.app_url)
    runner.run(database.open())
    try:
        yield FactReader(database)
    finally:
        runner.run(database.close())


@pytest.fixture
def graph(runtime: Runtime, tenant: str, reader: FactReader, runner: asyncio.Runner) -> Graph:
    """The facts of a tenant that has none yet."""
    return Graph(runtime, tenant, reader, runner)
