"""Facts are read here: in scope, as believed at one time, with the windows that then hold.

Every statement carries the whole scope (tenant by row-level security; project, sources, ACL,
chunk), before anything is ordered or limited. The end of a functional predicate's fact is
computed from the facts that follow it on its timeline; what the caller may not read plays no
part unless it has the same readers, and then the caller reads it too.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Literal, LiteralString

from knowledge.model.fact import Closing, Domain, EntityName, Fact, Moment, Precision, Provenance
from knowledge.model.scope import TrustTier
from knowledge.storage.postgres.database import AsyncDatabase, Row, Transaction
from knowledge.storage.postgres.facts.writing import TRUST


@dataclass(frozen=True, slots=True)
class FactScope:
    """What a caller may read, and as of when it was believed.

    ``acl`` are the caller's entries, ``denied`` the sources that are not readable today,
    ``known_at`` the time whose beliefs are read. Suggestions are inferred facts that nobody
    confirmed.
    """

    tenant_id: str
    project_id: str
    acl: tuple[str, ...]
    denied: tuple[str, ...]
    known_at: datetime
    with_suggestions: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page ended: the order is by begin of validity, newest first, then by id."""

    begins: datetime | None
    fact_id: uuid.UUID


@dataclass(frozen=True, slots=True)
class FactFilter:
    """All that are given must hold; a window is half-open.

    ``subjects`` are the names of one entity, ``mentioned`` names of which any may be subject or
    object. ``changed_in`` is a window in which validity begins or ends.
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


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The facts one hop from some names. ``cut`` are the keys of which more were there."""

    facts: list[Fact] = field(default_factory=list)
    cut: frozenset[str] = frozenset()


_FIELDS: Final = """
    f.fact_id, f.telling_id, f.tenant_id, f.project_id, f.namespace, f.domain, f.subject, f.subject_key,
    f.subject_type, f.predicate, f.object, f.object_key, f.object_type, w.holds_from,
    f.valid_from, f.valid_from_precision, w.holds_to, f.valid_to, f.valid_to_precision, later.fact_id as superseded_by,
    f.timeline is not null as is_functional, f.observed_at, f.recorded_at, f.closed_at, f.closing,
    f.closed_by, f.confidence, f.trust_tier, f.verified, f.principal, f.source_id, f.source_version,
    f.client, f.model, f.session_id, f.acl, f.collection_id, f.chunk_id, f.rule, f.lineage,
    f.lineage_sources, f.suggestion, f.confirmed_by
"""
_WINDOWS: Final = """
    left join lateral (
        select g.starts, g.fact_id from graph_facts g
        where g.timeline = f.timeline and g.fact_id <> f.fact_id and g.trust >= f.trust
          and (g.starts, g.trust, g.confidence, g.observed_at, g.fact_id)
              > (f.starts, f.trust, f.confidence, f.observed_at, f.fact_id)
          and g.recorded_at <= %(known_at)s and (g.closed_at is null or g.closed_at > %(known_at)s)
          and g.suggestion is distinct from 'suggested' and g.acl is not distinct from f.acl
          and (g.source_id is not distinct from f.source_id
               or source_readers(g.project_id, g.source_id) is not distinct from source_readers(f.project_id, f.source_id))
          and (g.chunk_id is null or chunk_is_readable(g.project_id, %(acl)s, g.collection_id, g.chunk_id))
          and (g.lineage_sources is null or not g.lineage_sources && %(denied)s)
        order by g.starts, g.trust, g.confidence, g.observed_at, g.fact_id limit 1
    ) later on f.timeline is not null
    cross join lateral (
        select least(f.valid_to, later.starts) as holds_to,
               case when f.valid_from is null and f.timeline is not null and exists (
                        select from graph_facts h
                        where h.timeline = f.timeline and h.fact_id <> f.fact_id and h.starts <= f.starts and h.trust >= f.trust
                          and h.recorded_at <= %(known_at)s and (h.closed_at is null or h.closed_at > %(known_at)s)
                          and h.suggestion is distinct from 'suggested' and h.acl is not distinct from f.acl
                          and (h.source_id is not distinct from f.source_id
                               or source_readers(h.project_id, h.source_id) is not distinct from source_readers(f.project_id, f.source_id))
                          and (h.chunk_id is null or chunk_is_readable(h.project_id, %(acl)s, h.collection_id, h.chunk_id))
                          and (h.lineage_sources is null or not h.lineage_sources && %(denied)s))
                    then f.starts else f.valid_from end as holds_from
    ) w
"""
_SEEN: Final = """
    f.project_id = %(project)s
    and (f.source_id is null or f.source_id <> all(%(denied)s))
    and (f.lineage_sources is null or not f.lineage_sources && %(denied)s)
    and (f.acl is null or f.acl && %(acl)s)
    and (f.chunk_id is null or chunk_is_readable(f.project_id, %(acl)s, f.collection_id, f.chunk_id))
"""
_BELIEVED: Final = (
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
    "mentioned_keys": "(f.subject_key = any(%(mentioned_keys)s) or f.object_key = any(%(mentioned_keys)s))",
    "mentioned_named": f"({_named('mentioned', 'subject')} or {_named('mentioned', 'object')})",
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
            and w.holds_to < coalesce(%(changed_to)s::timestamptz, 'infinity'))""",
    "min_trust": "f.trust >= %(min_trust)s",
    "verified": "f.verified = %(verified)s",
    "source_id": "f.source_id = %(source_id)s",
    "source_ids": "f.source_id = any(%(source_ids)s)",
    "suggestions_only": "f.suggestion = 'suggested'",
    "fact_ids": "f.fact_id = any(%(fact_ids)s)",
    "listing": "f.place = %(listing)s",
    "after": "f.begins <= coalesce(%(after_begins)s::timestamptz, '-infinity')"
    " and (f.begins < coalesce(%(after_begins)s::timestamptz, '-infinity') or f.fact_id > %(after_id)s)",
}
_SELECTIVE: Final = frozenset(
    (
        "subjects_key",
        "subjects_keys",
        "objects_key",
        "objects_keys",
        "mentioned_keys",
        "predicate",
        "fact_ids",
    )
)
"""Filters that have an index of their own; without any, the project's facts are listed."""
_CONFIRMED: Final = "f.suggestion is distinct from 'suggested'"
_ORDER: Final = " order by f.begins desc, f.fact_id"
_LIMIT: Final = " limit %(limit)s"


def _select(*clauses: LiteralString) -> LiteralString:
    return f"select {_FIELDS} from graph_facts f {_WINDOWS} where " + " and ".join(clauses)


def _clauses(scope: FactScope, given: Mapping[str, Any]) -> list[LiteralString]:
    clauses = [_CLAUSES[name] for name in given if name in _CLAUSES]
    if not (scope.with_suggestions or "suggestions_only" in given):
        clauses.append(_CONFIRMED)
    return clauses


async def find_facts(
    database: AsyncDatabase,
    scope: FactScope,
    wanted: FactFilter,
    limit: int,
    after: Place | None = None,
) -> list[Fact]:
    """Believed facts in scope that meet the filter, newest begin of validity first; ties by id."""
    given = _given(wanted) | _after(after)
    if not given.keys() & _SELECTIVE:
        given["listing"] = f"{scope.tenant_id}/{scope.project_id}"
    query = _select(_SEEN, _BELIEVED, *_clauses(scope, given)) + _ORDER + _LIMIT
    [rows] = await database.rows(scope.tenant_id, (query, _values(scope, given, limit)))
    return [fact_of(row) for row in rows]


async def find_functional(
    database: AsyncDatabase,
    scope: FactScope,
    pairs: Collection[tuple[str, str]],
    wanted: FactFilter,
    limit: int,
) -> list[Fact]:
    """Believed facts of functional predicates by (subject key, predicate), in no order."""
    given = _given(wanted)
    conditions = " and ".join((_SEEN, _BELIEVED, *_clauses(scope, given)))
    query = f"select {_FIELDS} {_FUNCTIONAL} {_WINDOWS} where {conditions}" + _LIMIT
    keys, predicates = zip(*sorted(pairs), strict=True)
    values = _values(scope, given, limit) | {"keys": list(keys), "names": list(predicates)}
    [rows] = await database.rows(scope.tenant_id, (query, values))
    return [fact_of(row) for row in rows]


_FUNCTIONAL: Final = """
    from unnest(%(keys)s::text[], %(names)s::text[]) as k(key, predicate)
    join lateral (
        select * from graph_facts where subject_key = k.key and project_id = %(project)s
        and timeline is not null offset 0) f on f.predicate = k.predicate
"""


async def find_history(
    database: AsyncDatabase, scope: FactScope, wanted: FactFilter, limit: int
) -> list[Fact]:
    """Every telling in scope, believed or not, oldest validity first; windows as of now."""
    given = _given(wanted)
    query = _select(_SEEN, *_clauses(scope, given))
    query += " order by f.starts, f.predicate, f.recorded_at, f.telling_id" + _LIMIT
    [rows] = await database.rows(scope.tenant_id, (query, _values(scope, given, limit)))
    return [fact_of(row) for row in rows]


def believed_facts(
    connection: Transaction,
    project_id: str,
    known_at: datetime,
    by: By,
    keys: Collection[tuple[Any, ...]],
    limit: int,
) -> list[Fact]:
    """Every believed fact of the project by these keys, suggestions too, whoever may read it: for
    inference, whose facts carry the permissions of what they rest on.

    A key is (fact id,), (subject key, predicate), (object key, predicate), or (subject key,
    predicate, object key). Each is looked up by itself, whatever the planner knows of the table.
    """
    columns = list(zip(*keys, strict=True)) if keys else []
    if not columns:
        return []
    query = f"select {_FIELDS} {_BY[by]} {_WINDOWS} {_LIMIT}"
    values: dict[str, Any] = {f"column_{n}": list(column) for n, column in enumerate(columns)}
    values |= {"project": project_id, "known_at": known_at, "limit": limit, "acl": [], "denied": []}
    return [fact_of(row) for row in connection.execute(query, values).fetchall()]


MAX_NEIGHBOURS: Final = 20_000
"""Facts of one hop, of all nodes together."""

By = Literal["fact", "subject", "object", "triple"]
_BY: Final[Mapping[By, LiteralString]] = {
    "fact": """
    from unnest(%(column_0)s::uuid[]) as k(id)
    cross join lateral (
        select * from graph_facts where fact_id = k.id and project_id = %(project)s
        and closed_at is null offset 0) f""",
    "subject": """
    from unnest(%(column_0)s::text[], %(column_1)s::text[]) as k(key, predicate)
    join lateral (
        select * from graph_facts where project_id = %(project)s and subject_key = k.key
        and closed_at is null offset 0) f on f.predicate = k.predicate""",
    "object": """
    from unnest(%(column_0)s::text[], %(column_1)s::text[]) as k(key, predicate)
    join lateral (
        select * from graph_facts where project_id = %(project)s and object_key = k.key
        and closed_at is null offset 0) f on f.predicate = k.predicate""",
    "triple": """
    from unnest(%(column_0)s::text[], %(column_1)s::text[], %(column_2)s::text[]) as k(key, predicate, object)
    join lateral (
        select * from graph_facts where project_id = %(project)s and subject_key = k.key
        and closed_at is null offset 0) f on f.predicate = k.predicate and f.object_key = k.object""",
}


async def known_names(database: AsyncDatabase, scope: FactScope, keys: Sequence[str]) -> set[str]:
    """Those of the keys that a believed fact in scope has as subject or object."""
    sides = " or ".join(
        f"exists (select from graph_facts f where f.{side}_key = k.key and {_SEEN} and {_BELIEVED})"
        for side in _ENDS
    )
    query = f"select k.key from unnest(%(keys)s::text[]) as k(key) where {sides}"
    [rows] = await database.rows(
        scope.tenant_id, (query, _values(scope, {"keys": list(keys)}, len(keys)))
    )
    return {row["key"] for row in rows}


_ENDS: Final[tuple[LiteralString, ...]] = ("subject", "object")
_SIDES: Final[Mapping[str, LiteralString]] = {
    "out": "f.subject_key = k.key and (k.namespace is null or k.namespace = f.namespace)"
    " and (k.type is null or f.subject_type is null or f.subject_type = k.type)",
    "in": "f.object_key = k.key and (k.namespace is null or k.namespace = f.namespace)"
    " and (k.type is null or f.object_type is null or f.object_type = k.type)",
}


async def find_neighbours(
    database: AsyncDatabase,
    scope: FactScope,
    nodes: Sequence[EntityName],
    wanted: FactFilter,
    *,
    directions: Sequence[str],
    fan_out: int,
) -> Neighbourhood:
    """The facts that leave or reach the nodes, at most ``fan_out`` a node and
    direction, newest first. ``directions`` are of ``out`` and ``in``."""
    given = _given(wanted)
    clauses = (_SEEN, _BELIEVED, *_clauses(scope, given))
    sides = " union all ".join(
        f"({_select(_SIDES[side], *clauses)}{_ORDER}{_LIMIT})" for side in directions
    )
    query = (
        "select k.key as of_key, hop.* from unnest(%(keys)s::text[], %(namespaces)s::text[],"
        " %(types)s::text[]) as k(key, namespace, type)"
        f" cross join lateral ({sides}) hop limit %(most)s"
    )
    values = _values(scope, given, fan_out + 1) | {
        "keys": [node.key for node in nodes],
        "namespaces": [node.namespace for node in nodes],
        "types": [node.type for node in nodes],
        "most": MAX_NEIGHBOURS,
    }
    [rows] = await database.rows(scope.tenant_id, (query, values))
    found = _within(rows, fan_out)
    is_cut = len(rows) == MAX_NEIGHBOURS
    return replace(found, cut=found.cut | {rows[-1]["of_key"]}) if is_cut else found


def _within(rows: Sequence[Row], fan_out: int) -> Neighbourhood:
    """At most ``fan_out`` facts a node and direction; each fact once."""
    counts: dict[tuple[str, bool], int] = {}
    kept: dict[uuid.UUID, Fact] = {}
    cut = set()
    for row in rows:
        side = row["of_key"], row["subject_key"] == row["of_key"]
        counts[side] = counts.get(side, 0) + 1
        if counts[side] > fan_out:
            cut.add(row["of_key"])
        elif row["telling_id"] not in kept:
            kept[row["telling_id"]] = fact_of(row)
    return Neighbourhood(list(kept.values()), frozenset(cut))


def _given(wanted: FactFilter) -> dict[str, Any]:
    """The filters that are set, by clause, with their values."""
    given: dict[str, Any] = {}
    for name in ("subjects", "objects", "mentioned"):
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
    return given


def _names(several: str, names: Sequence[EntityName]) -> dict[str, Any]:
    given: dict[str, Any] = {f"{several}_keys": [name.key for name in names]}
    if len(names) == 1 and several != "mentioned":
        given[f"{several}_key"] = given.pop(f"{several}_keys")[0]
    if any(name.namespace or name.type for name in names):
        given |= {
            f"{several}_named": True,
            f"{several}_keys": [name.key for name in names],
            f"{several}_namespaces": [name.namespace for name in names],
            f"{several}_types": [name.type for name in names],
        }
    return given


def _after(after: Place | None) -> dict[str, Any]:
    if after is None:
        return {}
    return {"after": True, "after_begins": after.begins, "after_id": after.fact_id}


def _values(scope: FactScope, given: Mapping[str, Any], limit: int) -> dict[str, Any]:
    return {
        **given,
        "limit": limit,
        "project": scope.project_id,
        "acl": list(scope.acl),
        "denied": list(scope.denied),
        "known_at": scope.known_at,
    }


def fact_of(row: Row) -> Fact:
    stated_from = _moment(row["valid_from"], row["valid_from_precision"])
    stated_to = _moment(row["valid_to"], row["valid_to_precision"])
    is_cut = row["holds_to"] is not None and row["holds_to"] != row["valid_to"]
    return Fact(
        fact_id=row["fact_id"],
        telling_id=row["telling_id"],
        tenant_id=row["tenant_id"],
        project_id=row["project_id"],
        namespace=row["namespace"],
        domain=Domain(row["domain"]),
        subject=row["subject"],
        subject_type=row["subject_type"],
        predicate=row["predicate"],
        object=row["object"],
        object_type=row["object_type"],
        valid_from=stated_from or _moment(row["holds_from"], None),
        valid_to=_moment(row["holds_to"], None) if is_cut else stated_to,
        stated_from=stated_from,
        stated_to=stated_to,
        superseded_by=row["superseded_by"] if is_cut else None,
        is_functional=row["is_functional"],
        observed_at=row["observed_at"],
        recorded_at=row["recorded_at"],
        closed_at=row["closed_at"],
        closing=None if row["closing"] is None else Closing(row["closing"]),
        closed_by=row["closed_by"],
        confidence=row["confidence"],
        tier=TrustTier(row["trust_tier"]),
        verified=row["verified"],
        provenance=Provenance(
            principal=row["principal"],
            source_id=row["source_id"],
            source_version=row["source_version"],
            client=row["client"],
            model=row["model"],
            session_id=row["session_id"],
        ),
        acl=None if row["acl"] is None else tuple(row["acl"]),
        collection_id=row["collection_id"],
        chunk_id=row["chunk_id"],
        rule=row["rule"],
        lineage=tuple(row["lineage"] or ()),
        lineage_sources=tuple(row["lineage_sources"] or ()),
        suggestion=row["suggestion"],
        confirmed_by=row["confirmed_by"],
    )


def _moment(at: datetime | None, precision: str | None) -> Moment | None:
    if at is None:
        return None
    return Moment(at, Precision(precision) if precision else Precision.INSTANT)
