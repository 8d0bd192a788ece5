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

from knowledge.model.fact import EntityName, Fact
from knowledge.storage.postgres.database import AsyncDatabase, Row, Transaction
from knowledge.storage.postgres.facts.columns import FIELDS, WINDOWS, fact_of
from knowledge.storage.postgres.facts.filters import (
    BELIEVED,
    SEEN,
    SELECTIVE,
    FactFilter,
    FactScope,
    Place,
    bound,
    clauses_of,
    given_values,
    place_values,
)


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The facts one hop from some names. ``cut`` are the keys of which more were there."""

    facts: list[Fact] = field(default_factory=list)
    cut: frozenset[str] = frozenset()


_ORDER: Final = " order by f.begins desc, f.fact_id"
_LIMIT: Final = " limit %(limit)s"


def _select(*clauses: LiteralString) -> LiteralString:
    return f"select {FIELDS} from graph_facts f {WINDOWS} where " + " and ".join(clauses)


async def find_facts(
    database: AsyncDatabase,
    scope: FactScope,
    wanted: FactFilter,
    limit: int,
    after: Place | None = None,
) -> list[Fact]:
    """Believed facts in scope that meet the filter, newest begin of validity first; ties by id."""
    given = given_values(wanted) | place_values(after)
    if not given.keys() & SELECTIVE:
        given["listing"] = f"{scope.tenant_id}/{scope.project_id}"
    query = _select(SEEN, BELIEVED, *clauses_of(scope, given)) + _ORDER + _LIMIT
    [rows] = await database.rows(scope.tenant_id, (query, bound(scope, given, limit)))
    return [fact_of(row) for row in rows]


async def find_functional(
    database: AsyncDatabase,
    scope: FactScope,
    pairs: Collection[tuple[str, str]],
    wanted: FactFilter,
    limit: int,
) -> list[Fact]:
    """Believed facts of functional predicates by (subject key, predicate), in no order."""
    given = given_values(wanted)
    conditions = " and ".join((SEEN, BELIEVED, *clauses_of(scope, given)))
    query = f"select {FIELDS} {_FUNCTIONAL} {WINDOWS} where {conditions}" + _LIMIT
    keys, predicates = zip(*sorted(pairs), strict=True)
    values = bound(scope, given, limit) | {"keys": list(keys), "names": list(predicates)}
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
    given = given_values(wanted)
    query = _select(SEEN, *clauses_of(scope, given))
    query += " order by f.starts, f.predicate, f.recorded_at, f.telling_id" + _LIMIT
    [rows] = await database.rows(scope.tenant_id, (query, bound(scope, given, limit)))
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
    query = f"select {FIELDS} {_BY[by]} {WINDOWS} {_LIMIT}"
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
        f"exists (select from graph_facts f where f.{side}_key = k.key and {SEEN} and {BELIEVED})"
        for side in _ENDS
    )
    query = f"select k.key from unnest(%(keys)s::text[]) as k(key) where {sides}"
    [rows] = await database.rows(
        scope.tenant_id, (query, bound(scope, {"keys": list(keys)}, len(keys)))
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
    given = given_values(wanted)
    clauses = (SEEN, BELIEVED, *clauses_of(scope, given))
    sides = " union all ".join(
        f"({_select(_SIDES[side], *clauses)}{_ORDER}{_LIMIT})" for side in directions
    )
    query = (
        "select k.key as of_key, hop.* from unnest(%(keys)s::text[], %(namespaces)s::text[],"
        " %(types)s::text[]) as k(key, namespace, type)"
        f" cross join lateral ({sides}) hop limit %(most)s"
    )
    values = bound(scope, given, fan_out + 1) | {
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
