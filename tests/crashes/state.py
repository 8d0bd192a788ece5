"""What a collection is, in PostgreSQL and in its index, without what two runs may differ in."""

from __future__ import annotations

from typing import Any

from knowledge.model.collection import Collection
from knowledge.runtime import Runtime
from knowledge.storage.postgres import generations

State = dict[str, Any]

_VERSIONS = """
    select v.path, v.text, v.from_rev, v.to_rev, v.acl, v.object_id,
           exists (select from metadata_items m where m.object_id = v.object_id) as has_metadata
    from chunk_versions v where v.collection_id = %s order by v.path, v.from_rev
"""
_FACTS = {
    "head": "select head_rev, open_chunks, collected_rev, embedding_profile from collections"
    " where collection_id = %s",
    "served": "select kind, revision, state, item_count, embedding_profile_version,"
    " cardinality(built_from_snapshots) as snapshots, collected_at is not null as collected"
    " from index_revisions where collection_id = %s and built_at is not null order by 1, 2",
    "inbox": "select state, event_type, revision from inbox where collection_id = %s"
    " order by sequence",
    "statistics": "select s.from_rev, s.documents, count(f.term) as terms from term_statistics s"
    " left join term_frequencies f using (collection_id, from_rev)"
    " where s.collection_id = %s group by 1, 2 order by 1",
    "sources": "select source_id, revision from source_versions where collection_id = %s"
    " order by 1, 2",
    "snapshots": "select committed_rev, open_chunks from snapshots where collection_id = %s"
    " order by 1, 2",
    "generations": "select backend, state, embedding_profile, created_rev, items"
    " from generations where collection_id = %s and state <> 'building' order by 1, 2, 4",
    "rebuilds": "select state, revision from rebuilds where collection_id = %s order by 1",
    "announced": "select r.kind, r.revision, o.event_type from outbox o join index_revisions r"
    " on r.index_revision_id::text = o.subject where r.collection_id = %s order by 2, 1, 3",
}


def state_of(runtime: Runtime, collection: Collection) -> State:
    """Everything but ids, times and attempts; the index by the paths of its items."""
    with runtime.app.tenant(collection.tenant_id) as connection:
        versions = connection.execute(_VERSIONS, [collection.collection_id]).fetchall()
        state: State = {
            name: connection.execute(query, [collection.collection_id]).fetchall()
            for name, query in _FACTS.items()
        }
        serving = generations.serving_generation(connection, collection)
    paths = {row.pop("object_id"): (row["path"], row["from_rev"]) for row in versions}
    state["versions"] = versions
    state["index"] = sorted(
        (paths[item.object_id], item.to_rev, item.acl, item.vector is not None)
        for item in (runtime.index.items(serving, with_vectors=True) if serving else ())
    )
    return state


def abandoned_generations(runtime: Runtime, collection: Collection) -> int:
    """How many generations are neither serving, kept for pins, nor dropped."""
    with runtime.app.tenant(collection.tenant_id) as connection:
        row = connection.execute(
            "select count(*) as n from generations where collection_id = %s and state = 'building'",
            [collection.collection_id],
        ).fetchone()
    assert row is not None
    return int(row["n"])
