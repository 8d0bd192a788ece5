"""What the memory's operations use, opened and closed with the service."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from knowledge.graph.querying import FactReader
from knowledge.memory.embedding import BackgroundEmbedder, NameEmbedder, require_local_routes
from knowledge.memory.extraction.extractor import Extractor, FallbackExtractor
from knowledge.memory.extraction.llm_extractor import LlmExtractor
from knowledge.memory.extraction.spacy_extractor import SpacyExtractor
from knowledge.memory.offloading import OffloadQueue
from knowledge.memory.recalling import Recaller
from knowledge.memory.warm import WarmNames
from knowledge.profiles.registry import Profiles
from knowledge.settings import MemorySettings, Settings
from knowledge.storage.postgres.database import Database
from retrieval_api.offload_target import OffloadTarget, TargetWriter, WriteSlot


@dataclass(frozen=True, slots=True)
class MemoryService:
    """``names`` are kept warm by what ``recaller`` is asked; ``embedder`` follows what is written,
    ``queue`` reads turns that are handed in."""

    names: WarmNames
    recaller: Recaller
    embedder: BackgroundEmbedder
    queue: OffloadQueue[OffloadTarget]


@asynccontextmanager
async def open_memory(
    settings: Settings,
    profiles: Profiles,
    facts: FactReader,
    writer: Database,
    write_slot: WriteSlot,
) -> AsyncIterator[MemoryService]:
    """Raises `InvalidConfiguration` where a route of the memory leads out of the local network."""
    require_local_routes(settings.memory, profiles, settings.default_profile)
    key = settings.memory.embeddings or settings.default_profile
    embedder = NameEmbedder(profiles, key, settings.memory.embedding_timeout_s)
    names = WarmNames(facts.database)
    recaller = Recaller(facts, names, embedder)
    background = BackgroundEmbedder(facts.database, embedder, settings.memory.embedding_interval_s)
    target = TargetWriter(facts, recaller, writer, write_slot, background.kick)
    queue = OffloadQueue(
        _extractor(settings.memory),
        vocabulary=target.vocabulary,
        write=target.write,
        max_jobs=settings.memory.offload_jobs,
    )
    running = asyncio.create_task(background.run(), name="names")
    try:
        async with queue:
            yield MemoryService(names, recaller, background, queue)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        embedder.close()


def _extractor(settings: MemorySettings) -> Extractor:
    """The configured model, with grammar where it fails; without one grammar alone."""
    extraction = settings.extraction
    if extraction.api_base is None:
        return SpacyExtractor()
    assert extraction.model is not None  # required with the address
    variable = extraction.api_key_env
    model = LlmExtractor(
        api_base=extraction.api_base,
        model=extraction.model,
        api_key=os.environ.get(variable) if variable else None,
        timeout_s=extraction.timeout_s,
        allowed_hosts=settings.allowed_hosts,
    )
    return FallbackExtractor(model, SpacyExtractor(reason=None))
