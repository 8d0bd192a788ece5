"""The Weaviate class of an embedding profile version, its properties, and its filters.

A class is multi-tenant: one Weaviate tenant a generation. Every text property that filters is
tokenised as one field, because word tokenisation would let ``acme`` match ``acme-eu``, and is
stored with its white space escaped, because even a field is trimmed: ``s1 `` would match ``s1``.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from typing import Any, Final

from weaviate.classes.config import (
    Configure,
    DataType,
    Property,
    StopwordsPreset,
    Tokenization,
    VectorDistances,
)
from weaviate.classes.query import Filter

from knowledge.errors import NoTenant
from knowledge.model.chunk import ChunkVersion
from knowledge.model.revision import OPEN, VISIBILITY_MARGIN
from knowledge.model.scope import EVERYONE
from knowledge.storage.backend import ScopeFilter
from knowledge.text.bm25 import K1, B

SCHEMA_VERSION: Final = "3"
"""To be raised with any change of properties or filters: backends then prove them again."""

MAX_REVISIONS_LISTED: Final = 500
"""A pin further back than this uses ranges instead of sets (slower, but of bounded size)."""

_FIRST_DATE: Final = datetime(1678, 1, 1, tzinfo=UTC)
_LAST_DATE: Final = datetime(2262, 1, 1, tzinfo=UTC)
"""Weaviate counts nanoseconds in 64 bits: a later date wraps round and would match everything."""

_TRIMMED: Final = re.compile(r"[\s\\]")

_FIELDS: Final = (
    ("project", DataType.TEXT),
    ("source", DataType.TEXT),
    ("acl", DataType.TEXT_ARRAY),
    ("path", DataType.TEXT),
    ("kind", DataType.TEXT),
    ("language", DataType.TEXT),
    ("tags", DataType.TEXT_ARRAY),
)


def class_name(installation_id: str, profile: str | None) -> str:
    """``K{installation}_{schema}_{profile}``: letters, digits and underscores.

    Unique per profile version, and per schema version: an object whose analysed text changes in
    place is scored by the changed words alone, so another schema needs another class.
    """
    name = profile or "none"
    readable = re.sub(r"[^A-Za-z0-9]", "_", name)
    if readable.replace("_", "") != re.sub(r"[@]", "", name):
        readable += "_" + hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"K{installation_id[:12]}_{SCHEMA_VERSION}_{readable}"


def class_definition(name: str, *, with_vectors: bool, flat_search_cutoff: int) -> dict[str, Any]:
    """Keyword arguments of the client's ``collections.create``."""
    text = [
        Property(
            name="analysed",
            data_type=DataType.TEXT,
            tokenization=Tokenization.WHITESPACE,
            index_filterable=False,
            index_searchable=True,
        )
    ]
    fields = [
        Property(
            name=field,
            data_type=data_type,
            tokenization=Tokenization.FIELD,
            index_filterable=True,
            index_searchable=False,
        )
        for field, data_type in _FIELDS
    ]
    numbers = [
        Property(name=field, data_type=DataType.INT, index_filterable=True)
        for field in ("from_rev", "to_rev")
    ]
    dates = [
        Property(
            name="updated_at",
            data_type=DataType.DATE,
            index_filterable=True,
            index_range_filters=True,
        )
    ]
    hnsw = Configure.VectorIndex.hnsw(
        distance_metric=VectorDistances.COSINE,
        ef_construction=64,
        max_connections=16,
        flat_search_cutoff=flat_search_cutoff,
    )
    return {
        "name": name,
        "properties": [*text, *fields, *numbers, *dates],
        "multi_tenancy_config": Configure.multi_tenancy(
            enabled=True, auto_tenant_creation=False, auto_tenant_activation=False
        ),
        "inverted_index_config": Configure.inverted_index(
            bm25_b=B, bm25_k1=K1, stopwords_preset=StopwordsPreset.NONE
        ),
        "vector_config": Configure.Vectors.self_provided(vector_index_config=hnsw)
        if with_vectors
        else Configure.Vectors.self_provided(
            vector_index_config=Configure.VectorIndex.flat(distance_metric=VectorDistances.COSINE)
        ),
    }


def properties(version: ChunkVersion) -> dict[str, Any]:
    """The stored properties of a chunk version: an analysed copy and what filters need."""
    chunk = version.chunk
    values: dict[str, Any] = {
        "analysed": version.analysed,
        "project": version.project_id,
        "source": exact(version.source_id),
        "acl": [EVERYONE] if chunk.acl is None else list(chunk.acl),
        "path": exact(chunk.path),
        "kind": chunk.kind,
        "tags": [exact(tag) for tag in chunk.tags],
        "from_rev": version.from_rev,
        "to_rev": version.to_rev,
    }
    if chunk.language:
        values["language"] = exact(chunk.language)
    if chunk.updated_at:
        values["updated_at"] = _date(chunk.updated_at)
    return values


def exact(value: str) -> str:
    """The value as it is stored and looked for: equal, or a prefix, just when the values are.

    Each character has a code of its own and none begins another's.
    """
    return _TRIMMED.sub(lambda found: f"\\{ord(found[0]):x};", value)


def scope_filter(scope: ScopeFilter) -> Any:
    """The filter that every query carries. Raises `NoTenant` without a tenant."""
    if not scope.tenant_id:
        raise NoTenant()
    by = Filter.by_property
    clauses = [
        by("project").equal(scope.project_id),
        by("source").contains_any([exact(source) for source in scope.sources]),
        by("acl").contains_any([EVERYONE, *scope.acl]),
        *_visibility(scope),
    ]
    if scope.path_prefix:
        prefix = exact(scope.path_prefix)
        clauses += [
            by("path").greater_or_equal(prefix),
            by("path").less_than(prefix + "\U0010ffff"),
        ]
    if scope.kind:
        clauses.append(by("kind").equal(scope.kind))
    if scope.language:
        clauses.append(by("language").equal(exact(scope.language)))
    if scope.tags:
        clauses.append(by("tags").contains_all([exact(tag) for tag in scope.tags]))
    if scope.updated_after:
        clauses.append(by("updated_at").greater_or_equal(_date(scope.updated_after)))
    return Filter.all_of(clauses)


def _visibility(scope: ScopeFilter) -> list[Any]:
    """``from_rev <= R < to_rev`` as a set test: 3.5 times the throughput of range filters."""
    by = Filter.by_property
    later = range(scope.revision + 1, scope.head + VISIBILITY_MARGIN + 1)
    if len(later) > MAX_REVISIONS_LISTED:
        return [
            by("from_rev").less_or_equal(scope.revision),
            by("to_rev").greater_than(scope.revision),
        ]
    return [by("to_rev").contains_any([OPEN, *later]), by("from_rev").contains_none(list(later))]


def _date(value: datetime) -> datetime:
    """In UTC, and moved to the first or last date that Weaviate can compare."""
    if not value.tzinfo:
        value = value.replace(tzinfo=UTC)
    return min(max(value, _FIRST_DATE), _LAST_DATE).astimezone(UTC)
