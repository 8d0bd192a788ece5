"""The rows of ``hybrid_items``, what their words look like, and the filter of every query."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from pgvector import SparseVector
from pgvector import Vector as PgVector

from knowledge.errors import NoTenant
from knowledge.model.chunk import ChunkVersion
from knowledge.model.revision import Generation
from knowledge.storage.backend import ScopeFilter, Vector
from knowledge.storage.term_weights import saturated_frequencies

SCHEMA_VERSION: Final = "1"
"""To be raised with any change of columns, words or filters: backends then prove them again."""

TERM_PLACES: Final = 1_000_000_000
"""Dimensions of a sparse vector, pgvector's greatest. Of 100,000 terms some five pairs share a
place: an item may then be found for a word it does not hold, and is scored 0 by the caller."""

COLUMNS: Final = (
    *("tenant_id", "generation", "object_id", "project_id", "source_id", "acl", "path", "kind"),
    *("language", "tags", "updated_at", "from_rev", "to_rev", "embedding", "words"),
)

CLAUSES: Final[Mapping[str, str]] = {
    "generation": "generation = %(generation)s",
    "project": "project_id = %(project)s",
    "source": "source_id = any(%(sources)s)",
    "acl": "(acl is null or acl && %(acl)s)",
    "from_rev": "from_rev <= %(revision)s",
    "to_rev": "%(revision)s < to_rev",
    "path": "(%(path_prefix)s::text is null or starts_with(path, %(path_prefix)s))",
    "kind": "(%(kind)s::text is null or kind = %(kind)s)",
    "language": "(%(language)s::text is null or language = %(language)s)",
    "tags": "tags @> %(tags)s",
    "updated_at": "(%(after)s::timestamptz is null or updated_at >= %(after)s)",
}
"""The one filter, by what each clause restricts. The tenant is row-level security's."""


def where() -> str:
    return " and ".join(CLAUSES.values())


def scope_parameters(generation: Generation, scope: ScopeFilter) -> dict[str, Any]:
    """The values that `CLAUSES` binds. Raises `NoTenant` without a tenant."""
    if not scope.tenant_id:
        raise NoTenant()
    return {
        "generation": generation_key(generation),
        "project": scope.project_id,
        "sources": list(scope.sources),
        "acl": list(scope.acl),
        "revision": scope.revision,
        "path_prefix": scope.path_prefix,
        "kind": scope.kind,
        "language": scope.language,
        "tags": list(scope.tags),
        "after": _in_utc(scope.updated_after),
    }


def class_name(profile: str | None) -> str:
    """``hybrid_items:{schema}:{profile}``: one table holds them all, told apart by generation."""
    return f"hybrid_items:{SCHEMA_VERSION}:{profile or 'none'}"


def generation_key(generation: Generation) -> uuid.UUID:
    return uuid.UUID(generation.backend_tenant)


def row(generation: Generation, version: ChunkVersion, vector: Vector | None) -> tuple[Any, ...]:
    """An item's values in the order of `COLUMNS`."""
    chunk = version.chunk
    return (
        generation.tenant_id,
        generation_key(generation),
        version.object_id,
        version.project_id,
        version.source_id,
        None if chunk.acl is None else list(chunk.acl),
        chunk.path,
        chunk.kind,
        chunk.language,
        list(chunk.tags),
        _in_utc(chunk.updated_at),
        version.from_rev,
        version.to_rev,
        None if vector is None else PgVector(vector),
        sparse(saturated_frequencies(version.analysed)),
    )


def sparse(weights: Mapping[str, float]) -> SparseVector:
    """Each term's weight at its place; terms that share one are added up."""
    places: dict[int, float] = {}
    for term, weight in weights.items():
        place = _place(term)
        places[place] = places.get(place, 0.0) + weight
    return SparseVector(places, TERM_PLACES)


def decoded(sent: bytes | None) -> Vector | None:
    """A vector as ``vector_send`` writes it."""
    return None if sent is None else PgVector.from_binary(sent).to_numpy()


def query_words(terms: Iterable[str], weights: Mapping[str, float]) -> str | None:
    """A query's terms as pgvector reads a sparse vector; None when none of them weighs."""
    weighed = {term: weight for term in terms if (weight := weights.get(term, 0.0)) > 0}
    return sparse(weighed).to_text() if weighed else None


@lru_cache(maxsize=65_536)
def _place(term: str) -> int:
    """Stable for ever: stored items depend on it."""
    digest = hashlib.blake2b(term.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % TERM_PLACES


def _in_utc(value: datetime | None) -> datetime | None:
    return value.replace(tzinfo=UTC) if value and not value.tzinfo else value
