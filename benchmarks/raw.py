"""The other side of every ratio: weaviate-client used directly, with as little as it takes."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import weaviate
from weaviate.classes.data import DataObject
from weaviate.classes.query import MetadataQuery
from weaviate.classes.tenants import Tenant

from benchmarks.corpus import Vector
from benchmarks.installation import PROFILE, PROJECT, Installation
from knowledge.errors import StackError
from knowledge.model.collection import Collection
from knowledge.model.revision import IndexKind
from knowledge.profiles.profile import Embedder
from knowledge.retrieval.planning import Served, plan_search, scope_filter
from knowledge.retrieval.request import Filters, SearchRequest
from knowledge.stack.servers import current_addresses
from knowledge.storage.postgres import chunk_versions
from knowledge.storage.postgres.database import AsyncDatabase
from knowledge.storage.weaviate.address import WeaviateAddress
from knowledge.storage.weaviate.client import connect, open_async
from knowledge.storage.weaviate.schema import class_definition, properties
from knowledge.storage.weaviate.schema import scope_filter as weaviate_filter
from knowledge.text.analysis import analyse

LIMIT: Final = 20
"""Hits of each query. The product asks for more, to fuse them: this side has the easier task."""

_TENANT: Final = "raw"


# --- searching ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RawTimes:
    """Seconds of one search: embedding the query, then both queries at once."""

    embed: float
    queries: float

    @property
    def total(self) -> float:
        return self.embed + self.queries


class RawSearch:
    """Embeds the query with the same model and runs nearest vectors and BM25 concurrently.

    The filters are those that the product would send for the same caller and collection. It
    checks no token, reads no grants, fuses nothing and fetches no texts.
    """

    def __init__(self, query: Any, filters: Any, embedder: Embedder) -> None:
        self._query = query
        self._filters = filters
        self._embedder = embedder

    async def timed(self, text: str) -> RawTimes:
        started = time.perf_counter()
        vector = await asyncio.to_thread(self._embedder.embed_query, text)
        embedded = time.perf_counter()
        await asyncio.gather(self._near(vector), self._bm25(text))
        return RawTimes(embedded - started, time.perf_counter() - embedded)

    async def _near(self, vector: Vector) -> object:
        return await self._query.near_vector(
            near_vector=vector.tolist(),
            filters=self._filters,
            limit=LIMIT,
            return_metadata=MetadataQuery(distance=True),
            return_properties=[],
        )

    async def _bm25(self, text: str) -> object:
        words = " ".join(analyse(text))
        if not words:  # stop words only: Weaviate refuses an empty query, the product asks none
            return None
        return await self._query.bm25(
            query=words,
            query_properties=["analysed"],
            filters=self._filters,
            limit=LIMIT,
            return_metadata=MetadataQuery(score=True),
            return_properties=[],
        )


@asynccontextmanager
async def opened_raw_search(
    installation: Installation, collection: Collection
) -> AsyncIterator[RawSearch]:
    """Raw queries at the revision that the collection serves now."""
    served, filters = await _served(installation, collection)
    client = open_async(_address(installation))
    await client.connect()
    try:
        generation = served.generation
        place = client.collections.use(generation.class_name).with_tenant(generation.backend_tenant)
        yield RawSearch(place.query, filters, installation.embedder(PROFILE))
    finally:
        await client.close()


async def _served(installation: Installation, collection: Collection) -> tuple[Served, Any]:
    """The revision of the vector index that serves, and the product's filter for it."""
    database = AsyncDatabase(installation.runtime.urls.app_url)
    await database.open()
    try:
        request = SearchRequest("any", PROJECT, (collection.slug,))
        plan = await plan_search(database, installation.caller, request)
    finally:
        await database.close()
    target = plan.targets[0]
    served = target.served[IndexKind.VECTOR]
    return served, weaviate_filter(scope_filter(plan, target, served.revision, Filters()))


# --- importing ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RawObjects:
    """Everything that the collection's index holds, ready to be imported again."""

    ids: Sequence[uuid.UUID]
    properties: Sequence[dict[str, Any]]
    vectors: Vector


def read_objects(installation: Installation, collection: Collection) -> RawObjects:
    """The objects of the collection's head, read ahead so that importing alone is timed."""
    runtime = installation.runtime
    store = runtime.vectors(collection.tenant_id, PROFILE)
    versions = [
        version
        for batch in chunk_versions.versions_visible(runtime.app, collection, collection.head_rev)
        for version in batch
    ]
    return RawObjects(
        [version.object_id for version in versions],
        [properties(version) for version in versions],
        store.get([version.text_hash for version in versions]),
    )


def import_objects(installation: Installation, objects: RawObjects, batch: int) -> float:
    """Import into a new class of the same definition; returns the seconds. The class is removed.

    Raises `StackError` when an object was refused.
    """
    with _raw_class(installation) as place:
        started = time.perf_counter()
        for start in range(0, len(objects.ids), batch):
            result = place.data.insert_many(
                [
                    DataObject(
                        uuid=objects.ids[number],
                        properties=objects.properties[number],
                        vector=objects.vectors[number].tolist(),
                    )
                    for number in range(start, min(start + batch, len(objects.ids)))
                ]
            )
            if result.errors:
                raise StackError(f"the raw import was refused {len(result.errors)} objects")
        return time.perf_counter() - started


@contextmanager
def _raw_class(installation: Installation) -> Iterator[Any]:
    """A new class as the product defines it, with one tenant."""
    client: weaviate.WeaviateClient = connect(_address(installation))
    name = f"Raw{uuid.uuid4().hex[:12]}"
    cutoff = installation.runtime.settings.indexing.flat_search_cutoff
    try:
        client.collections.create(
            **class_definition(name, with_vectors=True, flat_search_cutoff=cutoff)
        )
        place = client.collections.use(name)
        place.tenants.create([Tenant(name=_TENANT)])
        yield place.with_tenant(_TENANT)
    finally:
        client.collections.delete(name)
        client.close()


def _address(installation: Installation) -> WeaviateAddress:
    runtime = installation.runtime
    found = current_addresses(runtime.home, runtime.settings)
    if found is None or found.weaviate is None:
        raise StackError("Weaviate does not run: start the benchmark again")
    return found.weaviate
