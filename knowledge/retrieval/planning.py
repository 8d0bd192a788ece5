"""Scope and plan: who asks, what they may read, and which revisions will be read."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
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
from knowledge.model.scope import READ, Caller, Scope, TrustTier
from knowledge.retrieval.request import MAX_COLLECTIONS, Filters, SearchRequest
from knowledge.storage.backend import ScopeFilter
from knowledge.storage.postgres.database import AsyncDatabase, Row
from knowledge.text.bm25 import TermStatistics


@dataclass(frozen=True, slots=True)
class Served:
    """One index revision that a leg reads."""

    index_revision_id: uuid.UUID
    revision: int
    generation: Generation


@dataclass(frozen=True, slots=True)
class Target:
    """One collection of a query. ``sources`` maps the readable sources to their trust tier,
    ``versions`` the sources to the version that the revision read holds. ``statistics`` are those
    frozen for that revision, with the frequencies of the query's terms. ``newest_until`` is when a
    newer revision replaced the one a pin reads; None while there is none."""

    collection_id: uuid.UUID
    slug: str
    head: int
    profile: str | None
    sources: Mapping[str, TrustTier]
    served: Mapping[IndexKind, Served]
    statistics: TermStatistics
    versions: Mapping[str, str]
    newest_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class FactPlan:
    """What the legs over facts need: sources not readable today, who reads those that
    not everyone may read, whose beliefs are read, and (None:
    all) the sources whose facts the request's collections stand for."""

    denied: tuple[str, ...]
    readers: Mapping[str, str]
    known_at: datetime
    has_merges: bool
    source_ids: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """``facts`` is None for a project without facts."""

    scope: Scope
    targets: tuple[Target, ...]
    facts: FactPlan | None = None


_PLAN = "select plan_request(%s, %s, %s, %s) as plan"
_PINNED_TERMS = """
    select statistics_at(%(collection)s, read.revision, %(terms)s) as statistics,
           source_versions_at(%(collection)s, read.revision) as versions
    from (select max(revision) as revision from index_revisions
          where collection_id = %(collection)s and revision <= %(pin)s
            and kind = 'full_text' and built_at is not null) read
"""
"""Those of the revision that is read: the one pinned may never have been served."""
_PINNED = """
    select distinct on (r.kind) r.index_revision_id, r.kind, r.revision, r.collected_at,
           r.retired_at, g.backend, g.class_name,
           g.backend_tenant, g.embedding_profile
    from index_revisions r join generations g using (generation_id)
    where r.collection_id = %(collection)s and r.revision <= %(pin)s and r.built_at is not null
    order by r.kind, r.revision desc
"""


async def plan_search(
    database: AsyncDatabase, caller: Caller, request: SearchRequest, terms: Sequence[str] = ()
) -> Plan:
    """Resolve scope and targets in one round trip (a second one for pins).

    ``terms`` are the query's analysed words, whose statistics come along.

    Raises `Unauthenticated` for a revoked client, `NotFound` for a project or collection that
    is not the caller's (in the same words as for one that does not exist), `RevisionUnknown`,
    `RevisionCollected`, `InvalidInput` for too many collections.
    """
    named = list(request.collections) or None
    [[row]] = await database.rows(
        caller.tenant_id, (_PLAN, [caller.client_id, request.project_id, named, list(terms)])
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
        targets = [await _pinned(database, caller, target, request, terms) for target in targets]
    scope = Scope(caller.tenant_id, request.project_id, caller.client_id, tuple(found["groups"]))
    return Plan(scope, tuple(targets), _facts(found["facts"], request, targets))


def _facts(
    found: Mapping[str, Any] | None, request: SearchRequest, targets: Sequence[Target]
) -> FactPlan | None:
    if found is None:
        return None
    newest = datetime.fromisoformat(found["knownAt"])
    return FactPlan(
        denied=tuple(found["denied"]),
        readers=found["readers"],
        # A pinned answer knows what was known while its revision was the newest.
        known_at=min(
            (t.newest_until for t in targets if t.newest_until and t.newest_until < newest),
            default=newest,
        ),
        has_merges=found["hasMerges"],
        source_ids=tuple(sorted({source for target in targets for source in target.sources}))
        if request.collections
        else None,
    )


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
        _statistics(entry["statistics"]),
        entry["versions"],
    )


def _statistics(value: Mapping[str, Any] | None) -> TermStatistics:
    """Those of an empty collection when nothing was frozen yet."""
    if value is None:
        return TermStatistics(0, 0.0, 0.0, {}, {})
    terms: Mapping[str, list[int]] = value["terms"]
    return TermStatistics(
        documents=value["documents"],
        average_length=value["averageLength"],
        average_title_length=value["averageTitleLength"],
        in_text={term: counts[0] for term, counts in terms.items()},
        in_title={term: counts[1] for term, counts in terms.items()},
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
    for target in targets:
        if {target.slug, str(target.collection_id)} <= request.pinned.keys():
            raise InvalidInput(f"collection {target.slug} is pinned twice: by slug and by id")


async def _pinned(
    database: AsyncDatabase,
    caller: Caller,
    target: Target,
    request: SearchRequest,
    terms: Sequence[str],
) -> Target:
    pin = request.pinned.get(target.slug, request.pinned.get(str(target.collection_id)))
    if pin is None:
        return target
    place = {"collection": target.collection_id, "pin": pin}
    found, [words] = await database.rows(
        caller.tenant_id, (_PINNED, place), (_PINNED_TERMS, {**place, "terms": list(terms)})
    )
    rows = _not_given_up(found)
    if pin > target.head or not rows:
        raise RevisionUnknown(
            f"collection {target.slug} has no revision {pin}: its newest is {target.head}"
        )
    if any(row["collected_at"] for row in rows):
        raise RevisionCollected(
            f"revision {pin} of collection {target.slug} was collected: pin a newer one"
        )
    return replace(
        target,
        served={IndexKind(row["kind"]): _served(caller.tenant_id, target, row) for row in rows},
        statistics=_statistics(words["statistics"]),
        versions=words["versions"],
        newest_until=max((row["retired_at"] for row in rows if row["retired_at"]), default=None),
    )


def _not_given_up(rows: Sequence[Row]) -> list[Row]:
    """The rows without that of vectors given up, with the profile, before the revision read."""
    read = max((row["revision"] for row in rows if row["kind"] == IndexKind.FULL_TEXT), default=0)
    return [row for row in rows if row["kind"] != IndexKind.VECTOR or row["revision"] >= read]


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
