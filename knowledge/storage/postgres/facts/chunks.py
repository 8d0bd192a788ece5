"""The chunks that facts name: found and read under the sender's permissions."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from knowledge.storage.postgres.database import Transaction


def collection_ids(connection: Transaction, project_id: str) -> dict[str, uuid.UUID]:
    """Collections that belong to the project or hold a source of it, by name and by id."""
    rows = connection.execute(
        "select c.slug, c.collection_id from collections c"
        " where c.project_id = %(project)s or exists (select from sources s"
        "     where s.collection_id = c.collection_id and s.project_id = %(project)s)",
        {"project": project_id},
    ).fetchall()
    by_name = {row["slug"]: row["collection_id"] for row in rows}
    return by_name | {str(row["collection_id"]): row["collection_id"] for row in rows}


def first_unreadable(
    connection: Transaction,
    project_id: str,
    acl: Sequence[str],
    chunks: Sequence[tuple[uuid.UUID, uuid.UUID]],
) -> int | None:
    """The first place of a chunk (collection id, chunk id) that is not there or not readable."""
    if not chunks:
        return None
    collections, ids = zip(*chunks, strict=True)
    row = connection.execute(
        "select k.place from unnest(%s::uuid[], %s::uuid[]) with ordinality"
        " as k(collection, chunk, place)"
        " where not chunk_is_readable(%s, %s::text[], k.collection, k.chunk)"
        " order by k.place limit 1",
        [list(collections), list(ids), project_id, list(acl)],
    ).fetchone()
    return None if row is None else int(row["place"]) - 1
