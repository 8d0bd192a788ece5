"""Why the last attempt at a collection failed, kept where publishers and operators look."""

from __future__ import annotations

from knowledge.storage.postgres import catalogue, inbox, revisions
from knowledge.storage.postgres.database import Database


def note_failure(owner: Database, tenant_id: str, slug: str, error: str) -> None:
    """Keep the reason with the pending events and the revisions being built."""
    collection = catalogue.find_collection(owner, tenant_id, slug)
    inbox.record_failure(owner, collection.collection_id, error)
    revisions.record_build_error(owner, collection, collection.head_rev, error)
