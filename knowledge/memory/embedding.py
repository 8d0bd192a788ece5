"""Entity names and queries as vectors, by a model on this machine or network only.

Nothing but names is ever embedded for a memory, redacted first. A question does not wait for a
slow model: it is answered from the names.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from knowledge.crash_points import reached
from knowledge.errors import InvalidConfiguration, KnowledgeError, ModelUnavailable
from knowledge.profiles.profile import Embedder, EmbeddingProfile
from knowledge.profiles.registry import Profiles
from knowledge.security.local_hosts import require_local
from knowledge.security.redaction import redact
from knowledge.settings import MemorySettings
from knowledge.storage.postgres.database import AsyncDatabase
from knowledge.storage.postgres.facts import memory_vectors

logger = logging.getLogger(__name__)

BATCH: Final = 64
MAX_DIMENSION: Final = 4096
WAITING: Final = 8
"""Queries in a model's queue from which on it counts as too slow."""


def require_local_routes(settings: MemorySettings, profiles: Profiles, default: str) -> None:
    """Raises `InvalidConfiguration` where names or turns would leave this machine and network."""
    key = settings.embeddings or default
    definition = profiles.definition(key)
    if definition.provider == "litellm":
        if definition.api_base is None:
            raise InvalidConfiguration(
                f"memory.embeddings: profile {key} is a remote provider without api_base, and names of"
                " a memory stay local: choose a local profile, such as minilm@1"
            )
        require_local(
            definition.api_base, settings.allowed_hosts, url_key=f"profiles.{key}.api_base"
        )
    if settings.extraction.api_base is not None:
        if settings.extraction.model is None:
            raise InvalidConfiguration(
                "memory.extraction.model is missing: name a model of memory.extraction.api_base"
            )
        require_local(settings.extraction.api_base, settings.allowed_hosts)


class NameEmbedder:
    """Embeds for memories with one profile, in threads of its own."""

    def __init__(self, profiles: Profiles, key: str, timeout_s: float) -> None:
        self.key = key
        self._profiles = profiles
        self._timeout_s = timeout_s
        self._pool = ThreadPoolExecutor(2, "memory-embedding")
        self._waiting = 0
        self._loaded: Embedder | None = None

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    @property
    def profile(self) -> EmbeddingProfile | None:
        """What the model is, once it is loaded."""
        return None if self._loaded is None else self._loaded.profile

    async def load(self) -> EmbeddingProfile:
        """Raises what loading the model raises, and `ModelUnavailable` for one of too many
        dimensions."""
        if self._loaded is None:
            loaded = await asyncio.to_thread(self._profiles.get, self.key)
            if loaded.profile.dimension > MAX_DIMENSION:
                raise ModelUnavailable(
                    f"profile {self.key} has {loaded.profile.dimension:,} dimensions, memories take"
                    f" at most {MAX_DIMENSION:,}: choose another",
                    profile=self.key,
                )
            self._loaded = loaded
        return self._loaded.profile

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """A query's vector, after redaction. Raises `ModelUnavailable` with the reason when there is none in time."""
        model = self._loaded
        if model is None:
            raise ModelUnavailable(f"model {self.key} is not loaded", profile=self.key)
        if self._waiting >= WAITING:
            raise ModelUnavailable(f"model {self.key} does not keep up", profile=self.key)
        self._waiting += 1
        running = asyncio.get_running_loop().run_in_executor(
            self._pool, lambda: model.embed_query(redact(text).text)
        )
        running.add_done_callback(self._ended)
        try:
            async with asyncio.timeout(self._timeout_s):
                vector: NDArray[np.float32] = await asyncio.shield(running)
                return vector
        except TimeoutError as error:
            raise ModelUnavailable(
                f"model {self.key} gave no answer within {self._timeout_s * 1000:.0f} ms",
                profile=self.key,
            ) from error

    async def embed_names(self, names: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of names, ``[n, dimension]``, each of length 1, after a last redaction."""
        model = self._loaded
        assert model is not None
        safe = [redact(name).text for name in names]
        embedded = await asyncio.to_thread(model.embed, safe)
        return embedded.vectors

    def _ended(self, running: asyncio.Future[NDArray[np.float32]]) -> None:
        self._waiting -= 1
        if not running.cancelled():
            running.exception()  # a failure that nobody waits for any more is no news


class BackgroundEmbedder:
    """Gives names that are new, of every tenant, their vectors: every interval, or when kicked."""

    def __init__(self, database: AsyncDatabase, embedder: NameEmbedder, interval_s: float) -> None:
        self._database = database
        self._embedder = embedder
        self._interval_s = interval_s
        self._kicked = asyncio.Event()

    def kick(self) -> None:
        """There are new names."""
        self._kicked.set()

    async def run(self) -> None:
        """Until it is cancelled. A model or server that is away is tried again."""
        while True:
            try:
                await self.embed_pending()
            except KnowledgeError as error:
                logger.info("names wait for their vectors", extra={"reason": error.message})
            except Exception:  # the task's outermost handler: one bad round must not end it
                logger.exception("embedding names failed")
            try:
                async with asyncio.timeout(self._interval_s):
                    await self._kicked.wait()
            except TimeoutError:
                continue
            self._kicked.clear()

    async def embed_pending(self) -> int:
        """Embed every name that lacks a vector of the model; returns how many."""
        profile = await self._embedder.load()
        done = 0
        for row in await memory_vectors.memories_to_embed(self._database, profile.fingerprint):
            place = row["tenant_id"], row["project_id"], row["namespace"]
            try:
                done += await self._embed_memory(place, profile, row["written_at"])
            except KnowledgeError as error:  # the others must not wait for this one
                logger.warning(
                    "a memory's names were not embedded", extra={"reason": error.message}
                )
        return done

    async def _embed_memory(
        self, place: tuple[str, str, str], profile: EmbeddingProfile, upto: datetime
    ) -> int:
        fingerprint, done = profile.fingerprint, 0
        while rows := await memory_vectors.names_without_vector(
            self._database, *place, fingerprint, BATCH
        ):
            vectors = await self._embedder.embed_names([row["name"] for row in rows])
            reached("memory.names_embedded")
            stored: Mapping[str, bytes] = {
                row["name_key"]: vector.astype("<f4").tobytes()
                for row, vector in zip(rows, vectors, strict=True)
            }
            await memory_vectors.store_vectors(self._database, *place, fingerprint, stored)
            reached("memory.vectors_stored")
            done += len(rows)
        await memory_vectors.note_embedded(self._database, *place, fingerprint, upto)
        return done
