"""What the checks of a collection select from: its relations on Parquet and on PostgreSQL."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from dbt_like_checks import ParquetRelations, QueryFailed, open_parquet
from dbt_like_checks.check import Parameter
from knowledge.errors import InvalidQuery
from knowledge.indexing.consistency import compare_hybrid, generation_of
from knowledge.model.collection import Collection
from knowledge.runtime import Runtime
from knowledge.storage.postgres.expected import needed_texts, profile_dimension
from knowledge.storage.postgres.relations import SelectRelations, open_relations
from knowledge.storage.snapshots import CHUNK_SCHEMA, Snapshot

_EMBEDDINGS: Final = """
    SELECT needed.chunk_id, needed.file_name, needed.profile_dimension,
           cached.dimension, cached.norm
    FROM needed_texts AS needed
    LEFT JOIN (
        SELECT text_hash, file_name, len(vector) AS dimension,
               sqrt(list_inner_product(vector, vector)) AS norm
        FROM vectors
    ) AS cached ON cached.text_hash = needed.text_hash AND cached.file_name = needed.file_name
"""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where relations come from: Parquet files, tables, or a SELECT of the others, by name."""

    files: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)

    def __or__(self, other: "Sources") -> "Sources":
        return Sources(
            {**self.files, **other.files},
            {**self.tables, **other.tables},
            {**self.views, **other.views},
        )


def snapshot_sources(snapshot: Snapshot) -> Sources:
    """``chunks``: the rows of a snapshot; ``manifest_sources``: what its manifest declares."""
    manifest = snapshot.manifest
    declared = pa.table(
        {
            "source_id": [source.source_id for source in manifest.sources],
            "source_version": [source.source_version for source in manifest.sources],
            "mode": [manifest.mode for _ in manifest.sources],
            "chunk_count": [source.chunk_count for source in manifest.sources],
        }
    )
    if files := snapshot.parquet_files:
        return Sources({"chunks": files}, {"manifest_sources": declared})
    return Sources(
        tables={"manifest_sources": declared, "chunks": CHUNK_SCHEMA.empty_table()},
    )


def embedding_sources(runtime: Runtime, collection: Collection, *, whole: bool) -> Sources | None:
    """``embeddings``: the texts that the index being built, or serving, needs, each with its
    cached vector. Those the index lacks yet, or the ``whole``. None without a profile."""
    generation = generation_of(runtime, collection)
    if generation is None or generation.embedding_profile is None:
        return None
    tenant_id, profile = collection.tenant_id, generation.embedding_profile
    texts = needed_texts(runtime.app, collection, after=0 if whole else generation.applied_rev)
    parts = runtime.vectors(tenant_id, profile).parts([row["text_hash"] for row in texts])
    dimension = profile_dimension(runtime.app, tenant_id, profile)
    needed = {
        "text_hash": pa.array([row["text_hash"] for row in texts], pa.binary()),
        "chunk_id": pa.array([str(row["chunk_id"]) for row in texts], pa.string()),
        "file_name": pa.array([_name(parts.get(row["text_hash"])) for row in texts], pa.string()),
        "profile_dimension": pa.array([dimension for _ in texts], pa.int32()),
    }
    tables = {"needed_texts": pa.table(needed)}
    if files := sorted(set(parts.values())):
        return Sources({"vectors": files}, tables, {"embeddings": _EMBEDDINGS})
    empty = {"text_hash": pa.binary(), "vector": pa.list_(pa.float32()), "file_name": pa.string()}
    tables["vectors"] = pa.schema(list(empty.items())).empty_table()
    return Sources(tables=tables, views={"embeddings": _EMBEDDINGS})


def index_sources(runtime: Runtime, collection: Collection, *, whole: bool) -> Sources | None:
    """``index_items``: what the hybrid index holds; ``expected_items``: what it must, both over
    a stretch of ids or the ``whole``; ``hybrid_index``: one row. None before it was built."""
    found = compare_hybrid(runtime, collection, whole=whole)
    if found is None:
        return None
    rows, has_profile = len(found.held), found.generation.embedding_profile is not None
    held = found.held.append_column("has_profile", pa.array([has_profile] * rows, pa.bool_()))
    held = held.append_column("profile_dimension", pa.array([found.dimension] * rows, pa.int32()))
    summary = {
        "generation_id": [str(found.generation.generation_id)],
        "applied_rev": [found.revision],
        "items_held": [found.found],
        "items_expected": [found.expected],
        "items_looked_at": [found.looked_at],
    }
    return Sources(
        tables={
            "hybrid_index": pa.table(summary),
            "index_items": held,
            "expected_items": found.owed,
        }
    )


PARQUET_RELATIONS: Final[dict[Callable[..., Sources | None], frozenset[str]]] = {
    embedding_sources: frozenset({"embeddings", "needed_texts", "vectors"}),
    index_sources: frozenset({"hybrid_index", "index_items", "expected_items"}),
}
"""Which relations of a collection come from where."""


@contextmanager
def open_sources(sources: Sources) -> Iterator[ParquetRelations]:
    """Raises `UnreadableRelation` for a file that is broken."""
    with open_parquet(
        sources.files, tables=sources.tables, views=sources.views, file_names={"vectors"}
    ) as relations:
        yield relations


class PostgresRelations:
    """The relations of a collection in PostgreSQL, as an engine of checks."""

    def __init__(self, relations: SelectRelations) -> None:
        self._relations = relations

    def rows(self, sql: str, parameters: Sequence[Parameter]) -> list[tuple[Any, ...]]:
        """As `dbt_like_checks.Relations.rows`."""
        try:
            return self._relations.rows(sql, parameters)
        except InvalidQuery as error:
            raise QueryFailed(error.message) from error


@contextmanager
def open_postgres(runtime: Runtime, collection: Collection) -> Iterator[PostgresRelations]:
    """Raises `DatabaseUnavailable`."""
    with open_relations(runtime.app, collection) as relations:
        yield PostgresRelations(relations)


def _name(path: Path | None) -> str | None:
    return None if path is None else path.name
