"""Looks at the stored chunk versions that show no text: for people who watch, and for checks."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from knowledge.model.collection import Collection
from knowledge.storage.postgres.database import Database, Row


def sample_versions(
    app: Database, collection: Collection, revision: int, *, limit: int = 5
) -> list[Row]:
    """Chunks visible in ``revision``, those it opened first: ``{"chunk_id", "path", "kind",
    "characters", "from_rev"}``, never text."""
    with app.tenant(collection.tenant_id) as connection:
        return connection.execute(
            "select chunk_id, path, kind, length(text) as characters, from_rev"
            " from chunk_versions where collection_id = %(c)s"
            " and from_rev <= %(r)s and %(r)s < to_rev order by from_rev desc, path, anchor"
            " limit %(n)s",
            {"c": collection.collection_id, "r": revision, "n": limit},
        ).fetchall()


def versions_among(
    app: Database,
    collection: Collection,
    object_ids: Iterable[uuid.UUID],
    *,
    created: int,
    upto: int,
) -> set[uuid.UUID]:
    """Those of the ids that a generation created at ``created`` holds at clock ``upto``."""
    with app.tenant(collection.tenant_id) as connection:
        rows = connection.execute(
            "select object_id from chunk_versions where collection_id = %s"
            " and object_id = any(%s) and from_rev <= %s and to_rev > %s",
            [collection.collection_id, list(object_ids), upto, created],
        ).fetchall()
    return {row["object_id"] for row in rows}
