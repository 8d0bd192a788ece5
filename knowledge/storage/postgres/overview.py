"""How every collection stands: lag by index kind, waiting events, dead rows."""

from __future__ import annotations

from typing import Any, Final

from knowledge.storage.postgres.database import Database, Row

_OVERVIEW: Final = """
    select c.tenant_id, c.slug, c.collection_id, c.project_id, c.embedding_profile, c.head_rev,
           (select coalesce(jsonb_object_agg(r.kind, jsonb_build_object(
                'revision', r.revision, 'state', r.state)), '{}')
            from index_revisions r where r.collection_id = c.collection_id
              and r.state in ('Ready', 'Rebuilding', 'Degraded')) as served,
           i.pending, i.oldest, i.attempts, i.error,
           v.live, v.dead,
           (select count(*) from vectors x where x.tenant_id = c.tenant_id
              and x.profile = c.embedding_profile) as vectors
    from collections c
    left join lateral (
        select count(*) as pending, min(received_at) as oldest, max(attempts) as attempts,
               max(error) as error
        from inbox where collection_id = c.collection_id and state in ('pending', 'committed')
    ) i on true
    left join lateral (
        select count(*) filter (where to_rev > c.head_rev) as live,
               count(*) filter (where to_rev <= c.head_rev) as dead
        from chunk_versions where collection_id = c.collection_id
    ) v on true
    order by c.tenant_id, c.slug
"""
_KINDS: Final = ("vector", "full_text", "metadata")


def collection_overview(owner: Database) -> list[dict[str, Any]]:
    """One object a collection, as ``knowledge status --json`` prints it.

    ``lag`` counts revisions between what serves and the clock's head, by kind; a kind that does
    not exist for the collection (no model) has none. ``tenantVectors`` counts the texts of the
    tenant that have a vector of the collection's profile.
    """
    with owner.transaction() as connection:
        return [_entry(row) for row in connection.execute(_OVERVIEW).fetchall()]


def _entry(row: Row) -> dict[str, Any]:
    served = row["served"]
    kinds = [kind for kind in _KINDS if kind != "vector" or row["embedding_profile"]]
    total = row["live"] + row["dead"]
    return {
        "tenant": row["tenant_id"],
        "project": row["project_id"],
        "collection": row["slug"],
        "collectionId": str(row["collection_id"]),
        "embeddingProfileVersion": row["embedding_profile"],
        "headRevision": row["head_rev"],
        "served": served,
        "lag": {
            kind: row["head_rev"] - served.get(kind, {"revision": 0})["revision"] for kind in kinds
        },
        "pendingEvents": row["pending"],
        "oldestPendingEvent": row["oldest"] and row["oldest"].isoformat(),
        "attempts": row["attempts"] or 0,
        "error": row["error"],
        "chunks": row["live"],
        "deadRowRatio": round(row["dead"] / total, 4) if total else 0.0,
        "tenantVectors": row["vectors"],
    }
