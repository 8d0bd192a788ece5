"""Inferred facts: what they rest on, what rests on facts, and the confirmation of suggestions."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from datetime import datetime

from knowledge.storage.postgres.database import Row, Transaction
from knowledge.storage.postgres.facts.writing import stage


def confirm(connection: Transaction, suggestion: uuid.UUID, *, at: datetime, principal: str) -> Row:
    """Close the suggested telling and open the same as confirmed; returns telling_id, domain, trust_tier and
    timeline of the new one."""
    values = {"fact": suggestion, "at": at, "by": principal, "telling": uuid.uuid4()}
    stage(connection)
    connection.execute(
        "insert into told_facts select * from graph_facts"
        " where fact_id = %(fact)s and closed_at is null",
        values,
    )
    connection.execute(
        "update graph_facts set closed_at = %(at)s, closing = 'restated', closed_by = %(telling)s::text"
        " where fact_id = %(fact)s and closed_at is null",
        values,
    )
    connection.execute(
        "update told_facts set telling_id = %(telling)s, suggestion = 'confirmed',"
        " confirmed_by = %(by)s, recorded_at = %(at)s",
        values,
    )
    row = connection.execute(
        "insert into graph_facts select * from told_facts returning telling_id, domain, trust_tier, timeline"
    ).fetchone()
    assert row is not None
    return row


def premises_after(
    connection: Transaction,
    place: str,
    predicates: Sequence[str],
    after: uuid.UUID | None,
    limit: int,
) -> list[uuid.UUID]:
    """Ids of a project's (its `scope_key`) believed facts with these predicates, in their order, page by page."""
    rows = connection.execute(
        "select fact_id from graph_facts where scope_key = %s and predicate = any(%s)"
        " and closed_at is null and (%s::uuid is null or fact_id > %s)"
        " order by fact_id limit %s",
        [place, list(predicates), after, after, limit],
    ).fetchall()
    return [row["fact_id"] for row in rows]


def resting_on(connection: Transaction, fact_ids: Sequence[uuid.UUID]) -> list[uuid.UUID]:
    """Every believed fact that rests on one of these, directly or not."""
    rows = connection.execute(
        "with recursive resting as ("
        " select fact_id from graph_premises where premise_id = any(%s)"
        " union select p.fact_id from graph_premises p join resting r on p.premise_id = r.fact_id)"
        " select f.fact_id from resting r cross join lateral ("
        "select fact_id from graph_facts f where f.fact_id = r.fact_id and f.closed_at is null"
        " offset 0) f",
        [list(fact_ids)],
    ).fetchall()
    return [row["fact_id"] for row in rows]


def triples_of(
    connection: Transaction, fact_ids: Sequence[uuid.UUID]
) -> list[tuple[str, str, str]]:
    """Subject key, predicate and object key of facts, believed or not."""
    rows = connection.execute(
        "select distinct f.subject_key, f.predicate, f.object_key from unnest(%s::uuid[]) as k(id)"
        " cross join lateral (select subject_key, predicate, object_key from graph_facts"
        " where fact_id = k.id offset 0) f order by 1, 2, 3",
        [list(fact_ids)],
    ).fetchall()
    return [(row["subject_key"], row["predicate"], row["object_key"]) for row in rows]


def believed(connection: Transaction, fact_ids: Sequence[uuid.UUID]) -> set[uuid.UUID]:
    """Those that are believed."""
    rows = connection.execute(
        "select f.fact_id from unnest(%s::uuid[]) as k(id) cross join lateral ("
        "select fact_id from graph_facts where fact_id = k.id and closed_at is null offset 0) f",
        [list(fact_ids)],
    ).fetchall()
    return {row["fact_id"] for row in rows}


def rejected(
    connection: Transaction, place: str, triples: Collection[tuple[str, str, str]]
) -> set[tuple[str, str, str, str]]:
    """Those of the triples of a project (its `scope_key`) that were rejected once, each with the
    namespace in front, whatever the time they were suggested for."""
    subjects, predicates, objects = zip(*triples, strict=True)
    rows = connection.execute(
        "select distinct f.namespace, k.subject, k.predicate, k.object"
        " from unnest(%s::text[], %s::text[], %s::text[]) as k(subject, predicate, object)"
        " join lateral (select namespace, predicate, object_key from graph_facts"
        " where subject_key = k.subject and scope_key = %s and closing = 'rejected' offset 0) f"
        " on f.predicate = k.predicate and f.object_key = k.object",
        [list(subjects), list(predicates), list(objects), place],
    ).fetchall()
    return {(r["namespace"], r["subject"], r["predicate"], r["object"]) for r in rows}


def confirmed_until(
    connection: Transaction, fact_ids: Sequence[uuid.UUID], at: datetime
) -> dict[uuid.UUID, str]:
    """Confirmed facts among these that were withdrawn at this very time, and who confirmed them."""
    rows = connection.execute(
        "select f.fact_id, f.confirmed_by from unnest(%s::uuid[]) as k(id) cross join lateral ("
        "select fact_id, confirmed_by from graph_facts where fact_id = k.id and closed_at = %s"
        " and closing = 'premise' and suggestion = 'confirmed' offset 0) f",
        [list(fact_ids), at],
    ).fetchall()
    return {row["fact_id"]: row["confirmed_by"] for row in rows}


def mirrored(
    connection: Transaction, suggestion: uuid.UUID, inverse: str | None
) -> list[uuid.UUID]:
    """Suggestions that say the same from the object, for the same time and readers."""
    rows = connection.execute(
        "select m.fact_id from graph_facts f join graph_facts m"
        " on m.scope_key = f.scope_key and m.subject_key = f.object_key and m.predicate = %s"
        " and m.object_key = f.subject_key and m.namespace = f.namespace"
        " and m.acl is not distinct from f.acl and m.begins = f.begins"
        " and m.valid_to is not distinct from f.valid_to"
        " where f.fact_id = %s and f.closed_at is null and m.closed_at is null"
        " and m.suggestion = 'suggested'",
        [inverse, suggestion],
    ).fetchall()
    return [row["fact_id"] for row in rows]
