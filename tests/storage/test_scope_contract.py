"""A backend that does not filter, or filters after top-k, is found out and not enabled."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from knowledge.errors import NoTenant, ScopeContractBroken
from knowledge.model.chunk import ChunkVersion
from knowledge.model.revision import Generation
from knowledge.storage import contract
from knowledge.storage.backend import Hit, HybridSearch, ScopeFilter, Vector
from knowledge.storage.contract import admits, prove_scope
from tests.storage.conftest import BACKENDS, Backend
from tests.storage.filter_faults import FAULTS, RESTRICTIONS, Impossible, injectable


async def _prove(
    backend: Backend, wrap: Callable[[HybridSearch], Any] = lambda inner: inner
) -> None:
    async with backend.search() as opened:
        await prove_scope(backend.index, wrap(opened))


def test_the_backend_keeps_the_contract(backend: Backend) -> None:
    asyncio.run(_prove(backend))


class PostFiltering:
    """Ranks the nearest of everything, and drops afterwards what the scope does not admit."""

    name = "post-filtering"

    def __init__(self, inner: HybridSearch, versions: dict[uuid.UUID, ChunkVersion]) -> None:
        self.inner = inner
        self.versions = versions

    def _wide(self, scope: ScopeFilter) -> list[ScopeFilter]:
        seen = {(v.project_id, v.source_id) for v in self.versions.values()}
        acl = ("group:a", "group:b")
        return [
            replace(scope, project_id=p, sources=(s,), acl=acl, path_prefix=None, tags=())
            for p, s in sorted(seen)
        ]

    async def _dropped(
        self, scope: ScopeFilter, ask: Callable[[ScopeFilter], Any], limit: int
    ) -> list[Hit]:
        found = [hit for wide in self._wide(scope) for hit in await ask(wide)]
        best = sorted(found, key=lambda hit: (-hit.score, hit.object_id))[:limit]
        return [hit for hit in best if admits(scope, self.versions[hit.object_id])]

    async def near_vector(
        self, generation: Generation, vector: Vector, scope: ScopeFilter, limit: int
    ) -> list[Hit]:
        return await self._dropped(
            scope, lambda wide: self.inner.near_vector(generation, vector, wide, limit), limit
        )

    async def bm25(
        self,
        generation: Generation,
        terms: Sequence[str],
        scope: ScopeFilter,
        limit: int,
        *,
        weights: Mapping[str, float],
        with_vectors: bool,
    ) -> list[Hit]:
        return await self._dropped(
            scope,
            lambda wide: self.inner.bm25(
                generation, terms, wide, limit, weights=weights, with_vectors=with_vectors
            ),
            limit,
        )

    async def vectors(
        self, generation: Generation, object_ids: Sequence[uuid.UUID], scope: ScopeFilter
    ) -> dict[uuid.UUID, Vector]:
        return await self.inner.vectors(generation, object_ids, scope)

    async def close(self) -> None:
        await self.inner.close()


def test_a_backend_that_filters_after_top_k_is_not_enabled(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = contract._versions()
    monkeypatch.setattr(contract, "_versions", lambda: versions)
    by_id = {version.object_id: version for version in versions}
    with pytest.raises(ScopeContractBroken, match="does not filter before top-k"):
        asyncio.run(_prove(backend, lambda inner: PostFiltering(inner, by_id)))


def test_every_restriction_of_a_scope_is_put_to_the_test_in_every_backend() -> None:
    assert set(FAULTS) == set(BACKENDS)
    for backend, faults in FAULTS.items():
        assert set(RESTRICTIONS) <= set(faults), backend


@pytest.mark.parametrize(("backend", "fault"), injectable(), indirect=["backend"])
def test_a_filter_with_a_fault_is_found_out(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    inject = FAULTS[backend.index.name][fault]
    assert not isinstance(inject, Impossible)
    inject(monkeypatch)
    with pytest.raises(ScopeContractBroken):
        asyncio.run(_prove(backend))


def test_a_backend_that_asks_another_generation_is_found_out(backend: Backend) -> None:
    """Tenants are kept apart by the generation: one that is ignored shows another's items."""

    class Mixed(PostFiltering):
        async def near_vector(
            self, generation: Generation, vector: Vector, scope: ScopeFilter, limit: int
        ) -> list[Hit]:
            self.seen = getattr(self, "seen", generation)
            return await self.inner.near_vector(self.seen, vector, scope, limit)

        async def bm25(
            self,
            generation: Generation,
            terms: Sequence[str],
            scope: ScopeFilter,
            limit: int,
            *,
            weights: Mapping[str, float],
            with_vectors: bool,
        ) -> list[Hit]:
            return await self.inner.bm25(
                self.seen, terms, scope, limit, weights=weights, with_vectors=with_vectors
            )

    with pytest.raises(ScopeContractBroken):
        asyncio.run(_prove(backend, lambda inner: Mixed(inner, {})))


def test_a_query_without_a_tenant_is_never_sent(backend: Backend) -> None:
    async def ask() -> None:
        scope = ScopeFilter("", "p1", ("s1",), (), 1, 1)
        generation = contract._generation(backend.index, "contract-a")
        async with backend.search() as opened:
            with pytest.raises(NoTenant):
                await opened.near_vector(generation, contract._vectors(1)[0], scope, 1)
            with pytest.raises(NoTenant):
                await opened.bm25(
                    generation, ["x"], scope, 1, weights={"x": 1.0}, with_vectors=False
                )
            with pytest.raises(NoTenant):
                await opened.vectors(generation, [uuid.uuid4()], scope)

    asyncio.run(ask())
