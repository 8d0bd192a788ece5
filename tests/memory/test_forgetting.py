"""Names that are forgotten while they are being embedded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knowledge.memory.embedding import BackgroundEmbedder, NameEmbedder
from knowledge.profiles.registry import Profiles
from knowledge.runtime import Runtime
from knowledge.stack.cache import cache_folder
from knowledge.storage.postgres.database import AsyncDatabase
from tests.memory.worker import forget, tell


class ForgetsMeanwhile(NameEmbedder):
    """Forgets everything while the first batch is with the model."""

    def __init__(self, *arguments: Any, runtime: Runtime, tenant: str) -> None:
        super().__init__(*arguments)
        self._left = [(runtime, tenant)]

    async def embed_names(self, names: Sequence[str]) -> NDArray[np.float32]:
        vectors = await super().embed_names(names)
        for runtime, tenant in self._left:
            await asyncio.to_thread(forget, runtime.app, tenant)
        self._left.clear()
        return vectors


def test_a_name_that_is_forgotten_meanwhile_gets_no_vector(runtime: Runtime, tenant: str) -> None:
    tell(runtime.app, tenant)

    async def embed() -> None:
        database = AsyncDatabase(runtime.urls.app_url)
        await database.open()
        profiles = Profiles(runtime.settings, cache_folder())
        embedder = ForgetsMeanwhile(profiles, "minilm@1", 5.0, runtime=runtime, tenant=tenant)
        try:
            await BackgroundEmbedder(database, embedder, 30).embed_pending()
        finally:
            embedder.close()
            await database.close()

    asyncio.run(embed())
    with runtime.app.tenant(tenant) as connection:
        row = connection.execute("select count(*) as held from memory_vectors").fetchone()
    assert row == {"held": 0}
