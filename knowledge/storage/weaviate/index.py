"""The hybrid index in Weaviate, written: one Weaviate tenant a generation."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import weaviate
from weaviate.classes.data import DataObject
from weaviate.classes.query import Filter
from weaviate.classes.tenants import Tenant, TenantActivityStatus

from knowledge.errors import PartialWrite
from knowledge.model.chunk import ChunkVersion
from knowledge.model.revision import Generation
from knowledge.model.scope import EVERYONE
from knowledge.storage.backend import StoredItem, Vector, require_finite
from knowledge.storage.weaviate.address import WeaviateAddress
from knowledge.storage.weaviate.client import connect, translated
from knowledge.storage.weaviate.schema import (
    SCHEMA_VERSION,
    class_definition,
    class_name,
    properties,
)

_BATCH: Final = 500


class WeaviateIndex:
    """Implements `HybridIndex`. Connects at first use; close it when done."""

    name = "weaviate"

    def __init__(
        self, address: WeaviateAddress, *, installation_id: str, flat_search_cutoff: int = 40_000
    ) -> None:
        self._address = address
        self._installation_id = installation_id
        self._flat_search_cutoff = flat_search_cutoff
        self._connected: weaviate.WeaviateClient | None = None

    @property
    def _client(self) -> weaviate.WeaviateClient:
        if self._connected is None:
            self._connected = connect(self._address)
        return self._connected

    def close(self) -> None:
        if self._connected is not None:
            self._connected.close()
            self._connected = None

    def version(self) -> str:
        with translated():
            return str(self._client.get_meta()["version"])

    def schema_fingerprint(self) -> str:
        return f"{SCHEMA_VERSION} cutoff {self._flat_search_cutoff}"

    def class_name(self, profile: str | None) -> str:
        return class_name(self._installation_id, profile)

    def create_generation(self, generation: Generation, *, with_vectors: bool) -> None:
        with translated():
            collections = self._client.collections
            if not collections.exists(generation.class_name):
                self._create_class(generation.class_name, with_vectors=with_vectors)
            tenants = collections.use(generation.class_name).tenants
            if not tenants.exists(generation.backend_tenant):
                tenants.create([Tenant(name=generation.backend_tenant)])

    def _create_class(self, name: str, *, with_vectors: bool) -> None:
        definition = class_definition(
            name, with_vectors=with_vectors, flat_search_cutoff=self._flat_search_cutoff
        )
        try:
            self._client.collections.create(**definition)
        except weaviate.exceptions.UnexpectedStatusCodeError:
            # Two first publishes of a profile may meet here; the class of the other will do.
            if not self._client.collections.exists(name):
                raise

    def upsert(
        self, generation: Generation, versions: Sequence[ChunkVersion], vectors: Vector | None
    ) -> None:
        require_finite(vectors)
        data = self._tenant(generation).data
        for start in range(0, len(versions), _BATCH):
            rows = versions[start : start + _BATCH]
            objects = [
                DataObject(
                    uuid=version.object_id,
                    properties=properties(version),
                    vector=None if vectors is None else vectors[start + offset].tolist(),
                )
                for offset, version in enumerate(rows)
            ]
            with translated():
                result = data.insert_many(objects)
            if result.errors:
                first = next(iter(result.errors.values()))
                raise PartialWrite(
                    f"Weaviate refused {len(result.errors)} of {len(objects)} objects:"
                    f" {first.message}",
                    refused=len(result.errors),
                )

    def count(self, generation: Generation) -> int:
        with translated():
            found = self._tenant(generation).aggregate.over_all(total_count=True)
        return int(found.total_count or 0)

    def items(
        self,
        generation: Generation,
        *,
        after: uuid.UUID | None = None,
        limit: int | None = None,
        with_vectors: bool = False,
    ) -> Iterator[StoredItem]:
        with translated():
            found = self._tenant(generation).iterator(
                include_vector=with_vectors,
                return_properties=["from_rev", "to_rev", "acl"],
                after=after,
                cache_size=min(limit or _BATCH, _BATCH),
            )
            for item in itertools.islice(found, limit):
                yield _stored(item)

    def delete(self, generation: Generation, object_ids: Sequence[uuid.UUID]) -> None:
        data = self._tenant(generation).data
        for start in range(0, len(object_ids), _BATCH):
            part = list(object_ids[start : start + _BATCH])
            with translated():
                data.delete_many(where=Filter.by_id().contains_any(part))

    def probe(self, generation: Generation, version: ChunkVersion) -> bool:
        terms = sorted(set(version.analysed.split()), key=lambda term: (-len(term), term))[:24]
        if not terms:
            return True
        with translated():
            found = self._tenant(generation).query.bm25(
                query=" ".join(terms),
                query_properties=["analysed"],
                filters=Filter.by_id().equal(version.object_id),
                limit=1,
                return_properties=[],
            )
        return bool(found.objects)

    def drop_generation(self, generation: Generation) -> None:
        with translated():
            if not self._client.collections.exists(generation.class_name):
                return
            tenants = self._client.collections.use(generation.class_name).tenants
            found = tenants.get_by_name(generation.backend_tenant)
            if found is None:
                return
            if found.activity_status is not TenantActivityStatus.ACTIVE:
                # Deleting a cold tenant has left its files behind.
                tenants.activate(generation.backend_tenant)
            tenants.remove([generation.backend_tenant])

    def _tenant(self, generation: Generation) -> Any:
        return self._client.collections.use(generation.class_name).with_tenant(
            generation.backend_tenant
        )


def _stored(item: Any) -> StoredItem:
    acl = item.properties["acl"] or ()
    vector = next(iter(item.vector.values()), None) if item.vector else None
    return StoredItem(
        object_id=item.uuid,
        from_rev=int(item.properties["from_rev"]),
        to_rev=int(item.properties["to_rev"]),
        acl=None if EVERYONE in acl else tuple(acl),
        vector=None if vector is None else np.asarray(vector, dtype=np.float32),
    )
