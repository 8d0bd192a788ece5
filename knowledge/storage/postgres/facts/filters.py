"""Which facts are read: the scope of a caller, and the filters of a question, as clauses of SQL."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, LiteralString

from knowledge.model.fact import Domain, EntityName
from knowledge.model.scope import TrustTier
from knowledge.storage.postgres.facts.writing import TRUST, scope_key


@dataclass(frozen=True, slots=True)
class FactScope:
    """What a caller may read, and as of when it was believed.

    ``acl`` are the caller's entries, ``denied`` the sources that are not readable today,
    ``readers`` who reads those that not everyone may read, ``known_at`` the time whose beliefs are read. Suggestions are inferred facts that nobody
    confirmed. Facts of one session only are read for the ``sessions`` that are named.
    """

    tenant_id: str
    project_id: str
    acl: tuple[str, ...]
    denied: tuple[str, ...]
    known_at: datetime
    readers: Mapping[str, str] = field(default_factory=dict)
    with_suggestions: bool = False
    sessions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page ended: the order is by begin of validity, newest first, then by id."""

    begins: datetime | None
    fact_id: uuid.UUID


@dataclass(frozen=True, slots=True)
class FactFilter:
    """All that are given must hold; a window is half-open.

    ``subjects`` are the names of one entity, ``mentioned`` names of which any may be subject or
    object. ``changed_in`` is a window in which validity begins or ends. ``of_session`` leaves out
    what is shared.
    """

    subjects: tuple[EntityName, ...] = ()
    objects: tuple[EntityName, ...] = ()
    mentioned: tuple[EntityName, ...] = ()
    predicate: str | None = None
    predicates: tuple[str, ...] = ()
    domains: tuple[Domain, ...] = ()
    namespace: str | None = None
    as_of: datetime | None = None
    between: tuple[datetime | None, datetime | None] | None = None
    changed_in: tuple[datetime | None, datetime | None] | None = None
    min_trust: TrustTier | None = None
    verified: bool | None = None
    source_id: str | None = None
    source_ids: tuple[str, ...] | None = None
    suggestions_only: bool = False
    fact_ids: tuple[uuid.UUID, ...] = ()
    of_session: bool = False


SEEN: Final = """
    f.scope_key = %(scope_key)s
    and (f.source_id is null or f.source_id <> all(%(denied)s))
    and (f.lineage_sources is null or not f.lineage_sources && %(denied)s)
    and (f.acl is null or f.acl && %(acl)s)
    and (f.chunk_id is null or chunk_is_readable(f.project_id, %(acl)s, f.collection_id, f.chunk_id))
    and coalesce(f.session_scope is null or f.session_scope = any(%(sessions)s), false)
"""
BELIEVED: Final = (
    "f.recorded_at <= %(known_at)s and (f.closed_at is null or f.closed_at > %(known_at)s)"
)


def _named(several: LiteralString, side: LiteralString) -> LiteralString:
    return (
        f"exists (select from unnest(%({several}_keys)s::text[], %({several}_namespaces)s::text[],"
        f" %({several}_types)s::text[]) as e(key, namespace, type)"
        f" where e.key = f.{side}_key and (e.namespace is null or e.namespace = f.namespace)"
        f" and (e.type is null or f.{side}_type is null or e.type = f.{side}_type))"
    )


_CLAUSES: Final[Mapping[str, LiteralString]] = {
    # One key keeps the order of its index; several have to be sorted.
    "subjects_key": "f.subject_key = %(subjects_key)s",
    "subjects_keys": "f.subject_key = any(%(subjects_keys)s)",
    "subjects_named": _named("subjects", "subject"),
    "objects_key": "f.object_key = %(objects_key)s",
    "objects_keys": "f.object_key = any(%(objects_keys)s)",
    "objects_named": _named("objects", "object"),
    "predicate": "f.predicate = %(predicate)s",
    "predicates": "f.predicate = any(%(predicates)s)",
    "domains": "f.domain = any(%(domains)s)",
    "namespace": "f.namespace = %(namespace)s",
    "as_of": "f.begins <= %(as_of)s and (w.holds_from is null or w.holds_from <= %(as_of)s)"
    " and (w.holds_to is null or %(as_of)s < w.holds_to)",
    "between": """
    f.begins < coalesce(%(between_to)s::timestamptz, 'infinity')
    and (w.holds_from is null or w.holds_from < coalesce(%(between_to)s::timestamptz, 'infinity'))
    and (w.holds_to is null or w.holds_to > coalesce(%(between_from)s::timestamptz, '-infinity'))
    and (w.holds_from is null or w.holds_to is null or w.holds_from < w.holds_to)""",
    "changed_in": """
    f.begins < coalesce(%(changed_to)s::timestamptz, 'infinity')
    and (f.begins >= coalesce(%(changed_from)s::timestamptz, '-infinity') and f.valid_from is not null
         or w.holds_to >= coalesce(%(changed_from)s::timestamptz, '-infinity')
            and w.holds_to < coalesce(%(changed_to)s::timestamptz, 'infinity'))
    and (w.holds_from is null or w.holds_to is null or w.holds_from < w.holds_to)""",
    "min_trust": "f.trust >= %(min_trust)s",
    "verified": "f.verified = %(verified)s",
    "source_id": "f.source_id = %(source_id)s",
    "source_ids": "f.source_id = any(%(source_ids)s)",
    "suggestions_only": "f.suggestion = 'suggested'",
    "fact_ids": "f.fact_id = any(%(fact_ids)s)",
    "of_session": "f.session_scope is not null",
    "listing": "f.listing_key = %(scope_key)s",
    "after": "f.begins <= coalesce(%(after_begins)s::timestamptz, '-infinity')"
    " and (f.begins < coalesce(%(after_begins)s::timestamptz, '-infinity') or f.fact_id > %(after_id)s)",
}
SELECTIVE: Final = frozenset(
    (
        "subjects_key",
        "subjects_keys",
        "objects_key",
        "objects_keys",
        "predicate",
        "fact_ids",
    )
)
"""Filters that have an index of their own; without any, the project's facts are listed."""
_CONFIRMED: Final = "f.suggestion is distinct from 'suggested'"


def clauses_of(scope: FactScope, given: Mapping[str, Any]) -> list[LiteralString]:
    clauses = [_CLAUSES[name] for name in given if name in _CLAUSES]
    if not (scope.with_suggestions or "suggestions_only" in given):
        clauses.append(_CONFIRMED)
    return clauses


def given_values(wanted: FactFilter) -> dict[str, Any]:
    """The filters that are set, by clause, with their values."""
    given: dict[str, Any] = {}
    for name in ("subjects", "objects"):
        if names := getattr(wanted, name):
            given |= _names(name, names)
    if wanted.predicates:
        given["predicates"] = list(wanted.predicates)
    if wanted.fact_ids:
        given["fact_ids"] = list(wanted.fact_ids)
    for name in ("predicate", "namespace", "as_of", "source_id"):
        if (value := getattr(wanted, name)) is not None:
            given[name] = value
    if wanted.domains:
        given["domains"] = [domain.value for domain in wanted.domains]
    if wanted.min_trust is not None:
        given["min_trust"] = TRUST[wanted.min_trust]
    if wanted.source_ids is not None:
        given["source_ids"] = list(wanted.source_ids)
    if wanted.verified is not None:
        given["verified"] = wanted.verified
    for name, prefix in (("between", "between"), ("changed_in", "changed")):
        if (window := getattr(wanted, name)) is not None:
            given |= {name: True, f"{prefix}_from": window[0], f"{prefix}_to": window[1]}
    if wanted.suggestions_only:
        given["suggestions_only"] = True
    if wanted.of_session:
        given["of_session"] = True
    return given


def _names(several: str, names: Sequence[EntityName]) -> dict[str, Any]:
    given: dict[str, Any] = {f"{several}_keys": [name.key for name in names]}
    if len(names) == 1:
        given[f"{several}_key"] = given.pop(f"{several}_keys")[0]
    if any(name.namespace or name.type for name in names):
        given |= {
            f"{several}_named": True,
            f"{several}_keys": [name.key for name in names],
            f"{several}_namespaces": [name.namespace for name in names],
            f"{several}_types": [name.type for name in names],
        }
    return given


def place_values(after: Place | None) -> dict[str, Any]:
    if after is None:
        return {}
    return {"after": True, "after_begins": after.begins, "after_id": after.fact_id}


def bound(scope: FactScope, given: Mapping[str, Any], limit: int) -> dict[str, Any]:
    return {
        **given,
        "limit": limit,
        "scope_key": scope_key(scope.tenant_id, scope.project_id),
        "acl": list(scope.acl),
        "denied": list(scope.denied),
        "known_at": scope.known_at,
        "readers": json.dumps(dict(scope.readers)),
        "sessions": list(scope.sessions),
    }
