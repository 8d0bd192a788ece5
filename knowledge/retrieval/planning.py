"""Scope and plan: who asks, what they may read, and which revisions will be read."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from knowledge.errors import (
    Forbidden,
    InvalidInput,
    NotFound,
    RevisionCollected,
    RevisionUnknown,
    Unauthenticated,
)
from knowledge.model.revision import Generation, IndexKind
from knowledge.model.scope import READ, Scope, TrustTier
from knowledge.retrieval.request import MAX_COLLECTIONS, Filters, SearchRequest
from knowledge.storage.backend import ScopeFilter
from knowledge.storage.postgres.database import AsyncDatabase, Row


@dataclass(frozen=True, slots=True)
class Caller:
    """The verified credential: who, of which tenant, with which OAuth scopes."""

    client_id: str
    tenant_id: str
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Served:
    """One index revision that a leg reads."""

    index_revision_id: uuid.UUID
    revision: int
    generation: Generation


@dataclass(frozen=True, slots=True)
class Target:
    """One collection of a query. ``sources`` maps the readable sources to their trust tier."""

    collection_id: uuid.UUID
    slug: str
    head: int
    profile: str | None
    sources: Mapping[str, TrustTier]
    served: Mapping[IndexKind, Served]


@dataclass(frozen=True, slots=True)
class Plan:
    scope: Scope
    targets: tuple[Target, ...]
    oauth_scopes: tuple[str, ...] = ()


_PLAN = "select plan_request(%s, %s, %s) as plan"
_PINNED = """
    select distinct on (r.kind) r.index_revision_id, r.kind, r.revision, r.collected_at,
           g.backend, g.class_name,
           g.backend_tenant, g.embedding_profile
    from index_revisions r join generations g using (generation_id)
    where r.collection_id = %s and r.revision <= %s and r.built_at is not null
    order by r.kind, r.revision desc
"""


async def plan_search(database: AsyncDatabase, caller: Caller, request: SearchRequest) -> Plan:
    """Resolve scope and targets in one round trip (a second one for pins).

    Raises `Unauthenticated` for a revoked client, `NotFound` for a project or collection that
    is not the caller's (in the same words as for one that does not exist), `RevisionUnknown`,
    `RevisionCollected`, `InvalidInput` for too many collections.
    """
    named = list(request.collections) or None
    [[row]] = await database.rows(
        caller.tenant_id, (_PLAN, [caller.client_id, request.project_id, named])
    )
    found = row["plan"]
    if found is None:
        raise Unauthenticated("the client of this token was revoked: ask for a new one")
    if READ not in found["scopes"]:
        raise Forbidden(f"the client no longer has the scope {READ}")
    if request.project_id not in found["projects"]:
        raise NotFound(f"there is no project {request.project_id}")
    targets = [_target(caller.tenant_id, entry, request) for entry in found["collections"]]
    _require_named(request, targets)
    if request.pinned:
        targets = [await _pinned(database, caller, target, request) for target in targets]
    scope = Scope(caller.tenant_id, request.project_id, caller.client_id, tuple(found["groups"]))
    return Plan(scope, tuple(targets), tuple(found["scopes"]))


def _target(tenant_id: str, entry: Mapping[str, Any], request: SearchRequest) -> Target:
    collection_id = uuid.UUID(entry["collectionId"])
    served = {
        IndexKind(kind): Served(
            uuid.UUID(value["indexRevisionId"]),
            value["revision"],
            _generation(
                tenant_id,
                collection_id,
                value["backend"],
                value["className"],
                value["backendTenant"],
                value["profile"],
            ),
        )
        for kind, value in entry["served"].items()
    }
    return Target(
        collection_id,
        entry["slug"],
        entry["headRev"],
        entry["profile"],
        _admitted(entry["sources"], request),
        served,
    )


def _admitted(sources: Mapping[str, str], request: SearchRequest) -> dict[str, TrustTier]:
    """Readable sources left after the request's own source and trust filters."""
    tiers = {source_id: TrustTier(tier) for source_id, tier in sources.items()}
    if request.min_trust is not None:
        tiers = {s: tier for s, tier in tiers.items() if tier.at_least(request.min_trust)}
    if request.filters.source_id is not None:
        tiers = {s: tier for s, tier in tiers.items() if s == request.filters.source_id}
    return tiers


def _require_named(request: SearchRequest, targets: list[Target]) -> None:
    if len(targets) > MAX_COLLECTIONS:
        raise InvalidInput(
            f"the project has {len(targets)} collections: name at most {MAX_COLLECTIONS}"
            " in collections"
        )
    known = {target.slug for target in targets} | {str(target.collection_id) for target in targets}
    for name in (*request.collections, *request.pinned):
        if name not in known:
            raise NotFound(f"there is no collection {name}")


async def _pinned(
    database: AsyncDatabase, caller: Caller, target: Target, request: SearchRequest
) -> Target:
    pin = request.pinned.get(target.slug, request.pinned.get(str(target.collection_id)))
    if pin is None:
        return target
    [rows] = await database.rows(caller.tenant_id, (_PINNED, [target.collection_id, pin]))
    if pin > target.head or not rows:
        raise RevisionUnknown(
            f"collection {target.slug} has no revision {pin}: its newest is {target.head}"
        )
    if any(row["collected_at"] for row in rows):
        raise RevisionCollected(
            f"revision {pin} of collection {target.slug} was collected: pin a newer one"
        )
    served = {IndexKind(row["kind"]): _served(caller.tenant_id, target, row) for row in rows}
    return Target(
        target.collection_id, target.slug, target.head, target.profile, target.sources, served
    )


def _served(tenant_id: str, target: Target, row: Row) -> Served:
    generation = _generation(
        tenant_id,
        target.collection_id,
        row["backend"],
        row["class_name"],
        row["backend_tenant"],
        row["embedding_profile"],
    )
    return Served(row["index_revision_id"], row["revision"], generation)


def _generation(
    tenant_id: str,
    collection_id: uuid.UUID,
    backend: str,
    class_name: str,
    backend_tenant: str,
    profile: str | None,
) -> Generation:
    return Generation(
        generation_id=uuid.UUID(int=0),
        tenant_id=tenant_id,
        collection_id=collection_id,
        backend=backend,
        class_name=class_name,
        backend_tenant=backend_tenant,
        embedding_profile=profile,
        created_rev=0,
        applied_rev=0,
        state="serving",
    )


def scope_filter(plan: Plan, target: Target, revision: int, filters: Filters) -> ScopeFilter:
    """The filter that every backend query of this target carries."""
    return ScopeFilter(
        tenant_id=plan.scope.tenant_id,
        project_id=plan.scope.project_id,
        sources=tuple(sorted(target.sources)),
        acl=plan.scope.acl_entries,
        revision=revision,
        head=max(target.head, revision),
        path_prefix=filters.path_prefix,
        kind=filters.kind,
        language=filters.language,
        tags=filters.tags,
        updated_after=filters.updated_after,
    )
