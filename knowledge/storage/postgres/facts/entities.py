"""Names of one entity: merges are recorded, undone, and never lost."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Final

from psycopg.errors import UniqueViolation

from knowledge.errors import Conflict, NotFound
from knowledge.model.fact import EntityName, name_key
from knowledge.model.merge import Mention, Merge, Merges, SameEntity
from knowledge.storage.postgres.database import AsyncDatabase, Database, Row

_CONNECTED: Final = """
    with recursive named(key) as (
        select unnest(%(keys)s::text[]) collate "C"
        union
        select case when m.name_key = n.key then m.into_key else m.name_key end
        from named n
        join graph_merges m on (m.name_key = n.key or m.into_key = n.key) and m.undone_at is null
    )
    select m.namespace, m.name_key, m.type, m.into_key, m.into_type
    from named n join graph_merges m on m.name_key = n.key and m.undone_at is null
"""


async def connected_merges(database: AsyncDatabase, tenant_id: str, keys: Sequence[str]) -> Merges:
    """The merges in force that have to do with these names, in one step or several.

    Of every namespace: one entity is met in several.
    """
    [rows] = await database.rows(tenant_id, (_CONNECTED, {"keys": list(keys)}))
    return _merges(rows)


async def same_entities(
    database: AsyncDatabase,
    tenant_id: str,
    keys: Sequence[str],
    types: Sequence[str | None] | None = None,
) -> list[SameEntity]:
    """Every name that stands for the same entity as one of these, by namespace.

    ``types`` are those of the keys; None is any type. Nothing for a key that was not merged.
    """
    merges = await connected_merges(database, tenant_id, keys)
    asked = zip(keys, types or [None] * len(keys), strict=True)
    return [same for key, type_ in asked for same in merges.same(EntityName(key, None, type_))]


def _merges(rows: Iterable[Row]) -> Merges:
    return Merges(
        Merge(
            row["namespace"],
            Mention(row["name_key"], row["type"]),
            Mention(row["into_key"], row["into_type"]),
        )
        for row in rows
    )


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
    ends = (name, key, type_, into, into_key, into_type)
    if key == into_key and type_ == into_type:
        raise Conflict(f"{name} is that entity already")
    try:
        with app.tenant(tenant_id) as connection:
            connection.execute(
                "select pg_advisory_xact_lock(hashtextextended(%s, 0))",
                [f"graph merges {tenant_id}"],
            )
            known = _merges(connection.execute(_CONNECTED, {"keys": [into_key]}).fetchall())
            if known.leads_to(namespace, Mention(into_key, into_type), Mention(key, type_)):
                raise Conflict(f"{into} stands for {name} already: undo that merge first")
            connection.execute(
                "insert into graph_merges (merge_id, tenant_id, namespace, name, name_key, type,"
                " into_name, into_key, into_type, reason, merged_by)"
                " values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                (merge_id, tenant_id, namespace, *ends, reason, by),
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
