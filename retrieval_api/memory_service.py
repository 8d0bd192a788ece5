"""What the memory's operations use, opened and closed with the service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from knowledge.graph.querying import FactReader
from knowledge.memory.embedding import BackgroundEmbedder, NameEmbedder, require_local_routes
from knowledge.memory.recalling import Recaller
from knowledge.memory.warm import WarmNames
from knowledge.profiles.registry import Profiles
from knowledge.settings import Settings


@dataclass(frozen=True, slots=True)
class MemoryService:
    """``names`` are kept warm by what ``recaller`` is asked; ``embedder`` follows what is written."""

    names: WarmNames
    recaller: Recaller
    embedder: BackgroundEmbedder


@asynccontextmanager
async def open_memory(
    settings: Settings, profiles: Profiles, facts: FactReader
) -> AsyncIterator[MemoryService]:
    """Raises `InvalidConfiguration` where a route of the memory leads out of the local network."""
    require_local_routes(settings.memory, profiles, settings.default_profile)
    key = settings.memory.embeddings or settings.default_profile
    embedder = NameEmbedder(profiles, key, settings.memory.embedding_timeout_s)
    names = WarmNames(facts.database)
    background = BackgroundEmbedder(
        facts.database, embedder, names, settings.memory.embedding_interval_s
    )
    running = asyncio.create_task(background.run(), name="names")
    try:
        yield MemoryService(names, Recaller(facts, names, embedder), background)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        embedder.close()
