"""The scope contract: a backend proves, on scratch names, that it filters before top-k.

Near-identical items stand in several tenants, projects, sources, ACLs and revisions; for each
scope, down to one item in a thousand, a query for k must return exactly the items in scope.
A backend that ranks first and filters afterwards comes back short and is not enabled.
"""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

import numpy as np

from knowledge.errors import ScopeContractBroken
from knowledge.model.chunk import Chunk, ChunkVersion
from knowledge.model.revision import OPEN, Generation
from knowledge.storage.backend import HybridIndex, HybridSearch, ScopeFilter, Vector

CONTRACT: Final = "3"
_ITEMS: Final = 2020
_DIMENSION: Final = 8
_TERM: Final = "contract"
_FAR_AHEAD: Final = 1000
_DATES: Final = (datetime(2026, 6, 1, tzinfo=UTC), datetime(2025, 6, 1, tzinfo=UTC), None)


@dataclass(frozen=True, slots=True)
class _Case:
    """Items ``[first, last)`` share these properties; ``scope`` admits exactly them."""

    name: str
    count: int
    project: str
    source: str
    acl: tuple[str, ...] | None
    from_rev: int
    to_rev: int


_CASES: Final = (
    _Case("everyone", 600, "p1", "s1", None, 1, OPEN),
    _Case("another project", 500, "p1-eu", "s1", None, 1, OPEN),
    _Case("another source", 400, "p1", "s1-private", None, 1, OPEN),
    _Case("a source that differs by a space", 20, "p1", "s1 ", None, 1, OPEN),
    _Case("another group", 300, "p1", "s1", ("group:b",), 1, OPEN),
    _Case("a later revision", 100, "p1", "s1", None, 3, OPEN),
    _Case("a replaced version", 80, "p1", "s1", None, 1, 2),
    _Case("nobody", 18, "p1", "s1", (), 1, OPEN),
    _Case("one in a thousand", 2, "p1", "s1", ("group:a",), 1, OPEN),
)


async def prove_scope(index: HybridIndex, search: HybridSearch) -> None:
    """Run the contract on three scratch generations, which are removed whatever happens.

    Two are the same tenant's, so that one is never answered from the other. Raises
    `ScopeContractBroken` naming the case, or `IndexUnavailable`.
    """
    mine, beside = _generation(index, "contract-a"), _generation(index, "contract-a")
    other = _generation(index, "contract-b")
    versions = _versions()
    moved, twins = _copies(versions[:50]), _copies(versions[:50])
    vectors = _vectors(len(versions))

    def fill() -> None:
        for generation in (mine, beside, other):
            index.create_generation(generation, with_vectors=True)
        index.upsert(mine, versions, vectors)
        index.upsert(beside, twins, vectors[:50])
        index.upsert(other, moved, vectors[:50])

    def drop() -> None:
        for generation in (mine, beside, other):
            index.drop_generation(generation)

    try:
        await asyncio.to_thread(fill)
        await _prove(search, mine, _scopes("contract-a"), versions, vectors)
        for generation, held in ((beside, twins), (other, moved)):
            scopes = {"another generation": _base(generation.tenant_id)}
            await _prove(search, generation, scopes, held, vectors)
    finally:
        await asyncio.to_thread(drop)


def contract_hash(index: HybridIndex) -> str:
    """What a proof is valid for, beside backend and version: this contract and the schema."""
    text = f"{CONTRACT} {index.schema_fingerprint()}"
    return hashlib.sha256(text.encode()).hexdigest()


def _base(tenant_id: str) -> ScopeFilter:
    return ScopeFilter(tenant_id, "p1", ("s1",), (), 1, 3)


def _scopes(tenant_id: str) -> dict[str, ScopeFilter]:
    """One scope for every clause of a filter, by what it restricts to."""
    base = _base(tenant_id)
    return {
        "an open scope": base,
        "a group": replace(base, acl=("group:a",)),
        "a revision": replace(base, revision=3),
        "the revision that replaces a version": replace(base, revision=2),
        "a revision far back": replace(base, head=_FAR_AHEAD),
        "the replacing revision far back": replace(base, revision=2, head=_FAR_AHEAD),
        "a later revision far back": replace(base, revision=3, head=_FAR_AHEAD),
        "another project": replace(base, project_id="p1-eu"),
        "another source": replace(base, sources=("s1-private",)),
        "a source that differs by a space": replace(base, sources=("s1 ",)),
        "no source": replace(base, sources=()),
        "one in a thousand": replace(base, acl=("group:a",), tags=("rare",)),
        "all of two tags": replace(base, tags=("even", "third")),
        "a path": replace(base, path_prefix="src/a_"),
        "a kind": replace(base, kind="code"),
        "a language": replace(base, language="python"),
        "a date": replace(base, updated_after=datetime(2026, 1, 1, tzinfo=UTC)),
    }


async def _prove(
    search: HybridSearch,
    generation: Generation,
    scopes: Mapping[str, ScopeFilter],
    versions: Sequence[ChunkVersion],
    vectors: Vector,
) -> None:
    sample = [version.object_id for version in versions[::10]]
    for name, scope in scopes.items():
        admitted = {version.object_id for version in versions if admits(scope, version)}
        limit = min(len(admitted), 50) or 10
        nearest = await search.near_vector(generation, vectors[0], scope, limit)
        worded = await search.bm25(
            generation, [_TERM], scope, limit, weights={_TERM: 1.0}, with_vectors=False
        )
        listed = await search.vectors(generation, sample, scope)
        for leg, found, expected, wanted in (
            ("near-vector", {hit.object_id for hit in nearest}, admitted, limit),
            ("full-text", {hit.object_id for hit in worded}, admitted, limit),
            ("vectors", set(listed), admitted & set(sample), len(sample)),
        ):
            wanted = min(wanted, len(expected))
            if not found <= expected or len(found) != wanted:
                raise ScopeContractBroken(
                    f"{search.name} does not filter before top-k: {leg} query in scope"
                    f" '{name}' returned {len(found & expected)} of {wanted} items"
                    f" and {len(found - expected)} foreign ones"
                )


def admits(scope: ScopeFilter, version: ChunkVersion) -> bool:
    """Whether the scope admits a version: the rule every backend's filter must equal."""
    chunk = version.chunk
    return (
        version.project_id == scope.project_id
        and version.source_id in scope.sources
        and (chunk.acl is None or not set(chunk.acl).isdisjoint(scope.acl))
        and version.from_rev <= scope.revision < version.to_rev
        and (scope.path_prefix is None or chunk.path.startswith(scope.path_prefix))
        and (scope.kind is None or chunk.kind == scope.kind)
        and (scope.language is None or chunk.language == scope.language)
        and set(scope.tags) <= set(chunk.tags)
        and (
            scope.updated_after is None
            or (chunk.updated_at is not None and chunk.updated_at >= scope.updated_after)
        )
    )


def _generation(index: HybridIndex, tenant_id: str) -> Generation:
    return Generation(
        generation_id=uuid.uuid4(),
        tenant_id=tenant_id,
        collection_id=uuid.uuid4(),
        backend=index.name,
        class_name=index.class_name("scope-contract@1"),
        backend_tenant=uuid.uuid4().hex,
        embedding_profile="scope-contract@1",
        created_rev=1,
        applied_rev=0,
        state="building",
    )


def _versions() -> list[ChunkVersion]:
    versions = []
    for case in _CASES:
        for number in range(case.count):
            chunk = Chunk(
                path=f"src/{'a_' if number % 2 else 'ab'}{number}.md",
                anchor=str(number),
                title="",
                text=_TERM,
                kind="document" if number % 5 else "code",
                language=("python", "python-2", None)[number % 3],
                acl=case.acl,
                tags=_tags(case, number),
                updated_at=_DATES[number % 3],
            )
            versions.append(
                ChunkVersion(
                    object_id=uuid.uuid4(),
                    chunk_id=uuid.uuid4(),
                    from_rev=case.from_rev,
                    to_rev=case.to_rev,
                    source_id=case.source,
                    project_id=case.project,
                    chunk=chunk,
                    analysed=f"{_TERM} w{number}",
                    text_hash=b"",
                )
            )
    assert len(versions) == _ITEMS
    return versions


def _tags(case: _Case, number: int) -> tuple[str, ...]:
    rare = ("rare",) if case.name == "one in a thousand" else ()
    return (
        *rare,
        *(("even",) if number % 2 == 0 else ()),
        *(("third",) if number % 3 == 0 else ()),
    )


def _copies(versions: Sequence[ChunkVersion]) -> list[ChunkVersion]:
    return [replace(version, object_id=uuid.uuid4()) for version in versions]


def _vectors(count: int) -> Vector:
    """Unit vectors [n, d] that differ by little: a filter cannot hide behind distance."""
    random = np.random.default_rng(20)
    vectors = 1 + 0.01 * random.standard_normal((count, _DIMENSION))
    unit: Vector = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit
