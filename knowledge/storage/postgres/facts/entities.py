"""Names of one entity: merges are recorded, undone, and never lost."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from psycopg.errors import UniqueViolation

from knowledge.errors import Conflict, NotFound
from knowledge.model.fact import name_key
from knowledge.storage.postgres.database import AsyncDatabase, Database, Row


@dataclass(frozen=True, slots=True)
class SameEntity:
    """One name of an entity that goes by several within a namespace.

    ``asked`` is the key it was found from; ``root_key`` and ``root_name`` are what all of them
    were merged into.
    """

    asked: str
    namespace: str
    key: str
    type: str | None
    root_key: str
    root_name: str


_SAME: Final = """
    with recursive same(asked, namespace, key, type) as (
        select k.key, m.namespace, k.key collate "C", case when m.name_key = k.key then m.type else m.into_type end
        from unnest(%(keys)s::text[], %(types)s::text[]) as k(key, type)
        join graph_merges m on m.undone_at is null and (
            m.name_key = k.key and (k.type is null or m.type is null or m.type = k.type)
            or m.into_key = k.key and (k.type is null or m.into_type is null or m.into_type = k.type))
        union
        select s.asked, s.namespace, other.key, other.type
        from same s
        join graph_merges m on m.namespace = s.namespace and m.undone_at is null
             and (m.name_key = s.key or m.into_key = s.key)
        cross join lateral (
            select case when m.name_key = s.key then m.into_key else m.name_key end as key,
                   case when m.name_key = s.key then m.into_type else m.type end as type,
                   case when m.name_key = s.key then m.type else m.into_type end as own
        ) other
        where s.type is null or other.own is null or s.type = other.own
    ), rooted as (
        select s.*, not exists (
            select from graph_merges m where m.namespace = s.namespace and m.name_key = s.key
              and m.undone_at is null) as is_root
        from same s
    )
    select s.asked, s.namespace, s.key, s.type, r.key as root_key,
           coalesce((select m.into_name from graph_merges m
                     where m.namespace = s.namespace and m.into_key = r.key and m.undone_at is null
                     order by m.merged_at, m.merge_id limit 1), r.key) as root_name
    from rooted s join rooted r on r.asked = s.asked and r.namespace = s.namespace and r.is_root
    order by 1, 2, 3
"""


async def same_entities(
    database: AsyncDatabase,
    tenant_id: str,
    keys: Sequence[str],
    types: Sequence[str | None] | None = None,
) -> list[SameEntity]:
    """Every name that stands for the same entity as one of these, by namespace.

    ``types`` are those of the keys; None is any type. Nothing for a key that was not merged.
    """
    values = {"keys": list(keys), "types": list(types or [None] * len(keys))}
    [rows] = await database.rows(tenant_id, (_SAME, values))
    return [SameEntity(**row) for row in rows]


def merge(
    app: Database,
    tenant_id: str,
    *,
    namespace: str,
    name: str,
    into: str,
    type_: str | None = None,
    into_type: str | None = None,
    reason: str,
    by: str,
) -> uuid.UUID:
    """Say that ``name`` stands for the entity ``into``; facts stay as they were told.

    Raises `Conflict` when the name was merged already, or when it would stand for itself.
    """
    merge_id = uuid.uuid4()
    key, into_key = name_key(name), name_key(into)
    if key == into_key and type_ == into_type:
        raise Conflict(f"{name} is that entity already")
    try:
        with app.tenant(tenant_id) as connection:
            connection.execute(
                "select pg_advisory_xact_lock(hashtextextended(%s, 0))",
                [f"graph merges {tenant_id}"],
            )
            circle = connection.execute(
                'with recursive up(key) as (select %(into)s::text collate "C" union'
                " select m.into_key from graph_merges m join up on m.name_key = up.key"
                " where m.namespace = %(namespace)s and m.undone_at is null)"
                " select 1 from up where key = %(key)s and %(key)s <> %(into)s",
                {"into": into_key, "namespace": namespace, "key": key},
            ).fetchone()
            if circle is not None:
                raise Conflict(f"{into} stands for {name} already: undo that merge first")
            connection.execute(
                "insert into graph_merges (merge_id, tenant_id, namespace, name, name_key, type,"
                " into_name, into_key, into_type, reason, merged_by)"
                " values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                [
                    merge_id,
                    tenant_id,
                    namespace,
                    name,
                    key,
                    type_,
                    into,
                    into_key,
                    into_type,
                    reason,
                    by,
                ],
            )
    except UniqueViolation as error:
        raise Conflict(f"{name} was merged already: undo that merge first") from error
    return merge_id


def undo_merge(app: Database, tenant_id: str, merge_id: uuid.UUID, *, by: str) -> None:
    """Take a merge back; both names stand for themselves again. Raises `NotFound`."""
    with app.tenant(tenant_id) as connection:
        done = connection.execute(
            "update graph_merges set undone_at = now(), undone_by = %s"
            " where merge_id = %s and undone_at is null",
            [by, merge_id],
        )
        if not done.rowcount:
            raise NotFound(f"there is no merge {merge_id}, or it was undone")


def list_merges(app: Database, tenant_id: str) -> list[Row]:
    """All merges, undone ones too, oldest first."""
    with app.tenant(tenant_id) as connection:
        return connection.execute(
            "select merge_id, namespace, name, type, into_name, into_type, reason, merged_by,"
            " merged_at, undone_by, undone_at from graph_merges order by merged_at, merge_id"
        ).fetchall()
