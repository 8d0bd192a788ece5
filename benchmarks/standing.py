"""The collection that searches are measured on: made once, then used as it stands."""

from __future__ import annotations

from benchmarks.installation import Installation
from benchmarks.publishing import grow
from knowledge.model.collection import Collection
from knowledge.storage.postgres.clock import open_chunks


def standing_collection(installation: Installation, size: int) -> Collection:
    """A served collection of the corpus's first ``size`` documents."""
    slug = f"search-{size}"
    found = installation.collection(slug)
    if found is None:
        found = installation.new_collection(slug)
    with installation.runtime.app.tenant(installation.tenant) as connection:
        reached = open_chunks(connection, found)
    grow(installation, found, reached, size)  # an interrupted run left it smaller
    return installation.runtime.collection(installation.tenant, slug)
