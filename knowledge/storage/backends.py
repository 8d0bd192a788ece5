"""The backends that a hybrid index can be kept in, by the name they have in the settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from knowledge.errors import InvalidConfiguration
from knowledge.storage.backend import HybridIndex, HybridSearch
from knowledge.storage.pgvector import probe as pgvector_probe
from knowledge.storage.pgvector.index import PgvectorIndex
from knowledge.storage.pgvector.search import PgvectorSearch
from knowledge.storage.postgres.database import AsyncDatabase, Database
from knowledge.storage.weaviate import probe as weaviate_probe
from knowledge.storage.weaviate.address import WeaviateAddress
from knowledge.storage.weaviate.index import WeaviateIndex
from knowledge.storage.weaviate.search import WeaviateSearch


@dataclass(frozen=True, slots=True)
class IndexLocation:
    """The backend of an installation's hybrid index and what is needed to open it.

    ``weaviate`` is None where the backend does not use it.
    """

    backend: str
    installation_id: str
    flat_search_cutoff: int
    weaviate: WeaviateAddress | None = None

    def open_index(self, database: Database) -> HybridIndex:
        """The writing side; ``database`` is the application role's and stays the caller's."""
        return _OPENERS[self.backend].index(self, database)

    def open_search(self, database: AsyncDatabase) -> HybridSearch:
        """The querying side; ``database`` is the application role's and stays the caller's."""
        return _OPENERS[self.backend].search(self, database)

    def probe(self, database: Database) -> str:
        """The version of the server that answers; cheap. Raises `IndexUnavailable`."""
        return _OPENERS[self.backend].probe(self, database)

    def required_weaviate(self) -> WeaviateAddress:
        if self.weaviate is None:
            raise InvalidConfiguration("the vector backend weaviate needs the address of a server")
        return self.weaviate


@dataclass(frozen=True, slots=True)
class _Openers:
    index: Callable[[IndexLocation, Database], HybridIndex]
    search: Callable[[IndexLocation, AsyncDatabase], HybridSearch]
    probe: Callable[[IndexLocation, Database], str]


def _weaviate_index(location: IndexLocation, _database: Database) -> HybridIndex:
    return WeaviateIndex(
        location.required_weaviate(),
        installation_id=location.installation_id,
        flat_search_cutoff=location.flat_search_cutoff,
    )


_OPENERS: Final[Mapping[str, _Openers]] = {
    "weaviate": _Openers(
        index=_weaviate_index,
        search=lambda location, _database: WeaviateSearch(location.required_weaviate()),
        probe=lambda location, _database: weaviate_probe.server_version(
            location.required_weaviate()
        ),
    ),
    "pgvector": _Openers(
        index=lambda _location, database: PgvectorIndex(database),
        search=lambda _location, database: PgvectorSearch(database),
        probe=lambda _location, database: pgvector_probe.server_version(database),
    ),
}
