"""Facts are read here: in scope, as believed at one time, with the windows that then hold.

Every statement carries the whole scope (tenant by row-level security; project, sources, ACL,
chunk), before anything is ordered or limited. The end of a functional predicate's fact is
computed from the facts that follow it on its timeline; what the caller may not read plays no
part unless it has the same readers, and then the caller reads it too.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
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
class Near:
    """The end by which a fact was found: the place of its name among those asked for."""

    place: int
    is_subject: bool


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The facts one hop from some names, each once, and the end that each was found by.

    ``cut`` are the places of the names that have more facts. ``is_full`` says that some are left
    out for the limit of the whole.
    """

    facts: list[Fact] = field(default_factory=list)
    near: list[Near] = field(default_factory=list)
    cut: frozenset[int] = frozenset()
    is_full: bool = False


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
    found = []
    for side in _sides(wanted):
        given = given_values(side) | place_values(after)
        if not given.keys() & SELECTIVE:
            given["listing"] = True
        query = _select(SEEN, BELIEVED, *clauses_of(scope, given)) + _ORDER + _LIMIT
        found.append((query, bound(scope, given, limit)))
    rows = _merged(await database.rows(scope.tenant_id, *found))
    # Stable: by id first, then by begin, where none is the oldest.
    rows.sort(key=lambda row: row["fact_id"])
    rows.sort(key=lambda row: row["valid_from"] or _OLDEST, reverse=True)
    return [fact_of(row) for row in rows[:limit]]


_OLDEST: Final = datetime.min.replace(tzinfo=UTC)


def _sides(wanted: FactFilter) -> Sequence[FactFilter]:
    """A filter for either end of a mention, so that each can go along its index."""
    if not wanted.mentioned:
        return (wanted,)
    return (
        replace(wanted, mentioned=(), subjects=wanted.mentioned),
        replace(wanted, mentioned=(), objects=wanted.mentioned),
    )


def _merged(parts: Sequence[Sequence[Row]]) -> list[Row]:
    return list({row["telling_id"]: row for rows in parts for row in rows}.values())


async def find_functional(
    database: AsyncDatabase,
    scope: FactScope,
    pairs: Collection[tuple[str, str]],
    wanted: FactFilter,
    limit: int,
) -> list[Fact]:
    """Believed facts of functional predicates by (subject key, predicate), by id."""
    given = given_values(wanted)
    conditions = " and ".join((SEEN, BELIEVED, *clauses_of(scope, given)))
    query = f"select {FIELDS} {_FUNCTIONAL} {WINDOWS} where {conditions} order by f.fact_id{_LIMIT}"
    keys, predicates = zip(*sorted(pairs), strict=True)
    values = bound(scope, given, limit) | {"keys": list(keys), "names": list(predicates)}
    [rows] = await database.rows(scope.tenant_id, (query, values))
    return [fact_of(row) for row in rows]


_FUNCTIONAL: Final = """
    from unnest(%(keys)s::text[], %(names)s::text[]) as k(key, predicate)
    join lateral (
        select * from graph_facts where subject_key = k.key and scope_key = %(scope_key)s
        offset 0) f on f.predicate = k.predicate and f.timeline is not null
"""


async def find_history(
    database: AsyncDatabase, scope: FactScope, wanted: FactFilter, limit: int
) -> list[Fact]:
    """Every telling in scope, believed or not, oldest validity first; windows as of now."""
    found = []
    for side in _sides(wanted):
        given = given_values(side)
        query = (
            f"select {FIELDS}, f.starts from graph_facts f {WINDOWS} where "
            + " and ".join((SEEN, *clauses_of(scope, given)))
            + " order by f.starts, f.predicate, f.recorded_at, f.telling_id"
            + _LIMIT
        )
        found.append((query, bound(scope, given, limit)))
    rows = _merged(await database.rows(scope.tenant_id, *found))
    rows.sort(key=lambda r: (r["starts"], r["predicate"], r["recorded_at"], r["telling_id"]))
    return [fact_of(row) for row in rows[:limit]]


def believed_facts(
    connection: Transaction,
    place: str,
    known_at: datetime,
    by: By,
    keys: Collection[tuple[Any, ...]],
    limit: int,
    readers: str,
) -> list[Fact]:
    """Every believed fact of a project (its `scope_key`) by these keys, suggestions too, whoever may
    read it: for inference, whose facts carry the permissions of what they rest on.

    A key is (fact id,), (subject key, predicate), (object key, predicate), or (subject key,
    predicate, object key). Each is looked up by itself, whatever the planner knows of the table.
    ``readers`` is what `ending.restricted_sources` gives.
    """
    columns = list(zip(*keys, strict=True)) if keys else []
    if not columns:
        return []
    query = f"select {FIELDS} {_BY[by]} {WINDOWS} {_LIMIT}"
    values: dict[str, Any] = {f"column_{n}": list(column) for n, column in enumerate(columns)}
    values |= {"scope_key": place, "known_at": known_at, "limit": limit, "readers": readers}
    values |= {"acl": [], "denied": []}
    return [fact_of(row) for row in connection.execute(query, values).fetchall()]


MAX_NEIGHBOURS: Final = 20_000
"""Facts of one hop, of all nodes together."""

MAX_TWICE: Final = 1_000
"""Facts of one hop that may be between two of the nodes, and so come twice."""

By = Literal["fact", "subject", "object", "triple"]
_BY: Final[Mapping[By, LiteralString]] = {
    "fact": """
    from unnest(%(column_0)s::uuid[]) as k(id)
    cross join lateral (
        select * from graph_facts where fact_id = k.id and scope_key = %(scope_key)s
        and closed_at is null offset 0) f""",
    "subject": """
    from unnest(%(column_0)s::text[], %(column_1)s::text[]) as k(key, predicate)
    join lateral (
        select * from graph_facts where scope_key = %(scope_key)s and subject_key = k.key
        and closed_at is null offset 0) f on f.predicate = k.predicate""",
    "object": """
    from unnest(%(column_0)s::text[], %(column_1)s::text[]) as k(key, predicate)
    join lateral (
        select * from graph_facts where scope_key = %(scope_key)s and object_key = k.key
        and closed_at is null offset 0) f on f.predicate = k.predicate""",
    "triple": """
    from unnest(%(column_0)s::text[], %(column_1)s::text[], %(column_2)s::text[]) as k(key, predicate, object)
    join lateral (
        select * from graph_facts where scope_key = %(scope_key)s and subject_key = k.key
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
    most: int = MAX_NEIGHBOURS,
    known: Collection[uuid.UUID] = (),
) -> Neighbourhood:
    """The facts that leave or reach the nodes, at most ``fan_out`` a node and direction, newest
    first, and ``most`` in all without the ``known`` ones. ``directions`` are of ``out`` and ``in``.
    A fact that is found from both of its ends is there twice.
    """
    given = given_values(wanted)
    clauses = (SEEN, BELIEVED, *clauses_of(scope, given))
    sides = " union all ".join(f"({_side(side, clauses)})" for side in directions)
    # Names are looked up one after the other, so a limit cuts off the last ones.
    query = (
        "select k.place, hop.* from unnest(%(keys)s::text[], %(namespaces)s::text[],"
        " %(types)s::text[]) with ordinality as k(key, namespace, type, place)"
        f" cross join lateral ({sides}) hop limit %(rows)s"
    )
    row_limit = min(most + len(known) + min(most, MAX_TWICE), MAX_NEIGHBOURS) + 1
    values = bound(scope, given, fan_out + 1) | {
        "keys": [node.key for node in nodes],
        "namespaces": [node.namespace for node in nodes],
        "types": [node.type for node in nodes],
        "rows": row_limit,
    }
    [rows] = await database.rows(scope.tenant_id, (query, values))
    return _within(rows, len(nodes), row_limit, fan_out=fan_out, most=most, known=known)


def _side(side: str, clauses: Sequence[LiteralString]) -> LiteralString:
    facts = _select(_SIDES[side], *clauses)
    name: LiteralString = "true" if side == "out" else "false"
    return f"select {name} as is_out, one.* from ({facts}{_ORDER}{_LIMIT}) one"


def _within(
    rows: Sequence[Row],
    nodes: int,
    row_limit: int,
    *,
    fan_out: int,
    most: int,
    known: Collection[uuid.UUID],
) -> Neighbourhood:
    """The facts of the rows within the limits, and of which nodes there are more."""
    counts: Counter[Near] = Counter()
    kept: dict[tuple[uuid.UUID, bool], tuple[Fact, Near]] = {}
    facts = set(known)
    cut: set[int] = set()
    is_full = len(rows) >= row_limit
    if is_full:
        cut.update(range(rows[-1]["place"] - 1, nodes))
    for row in rows:
        near, fact_id = Near(row["place"] - 1, row["is_out"]), row["fact_id"]
        counts[near] += 1
        if counts[near] > fan_out:
            cut.add(near.place)
        elif (fact_id, near.is_subject) in kept:
            continue
        elif fact_id in facts or len(facts) - len(known) < most:
            facts.add(fact_id)
            kept[fact_id, near.is_subject] = fact_of(row), near
        else:
            is_full = True
            cut.add(near.place)
    found, ends = [fact for fact, _ in kept.values()], [near for _, near in kept.values()]
    return Neighbourhood(found, ends, frozenset(cut), is_full)
