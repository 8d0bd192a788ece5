"""Rebuilds asked for and cancelled: rows of PostgreSQL alone, so that the service can do it too."""

from __future__ import annotations

import uuid

from knowledge.model.collection import Collection
from knowledge.storage.postgres import catalogue, clock, generations, rebuilds, revisions
from knowledge.storage.postgres.database import Database, Transaction
from knowledge.storage.postgres.rebuilds import Reason, Rebuild


def request_rebuild(
    app: Database,
    collection: Collection,
    *,
    profile: str | None,
    reason: Reason,
    requested_by: str,
    rebuild_id: uuid.UUID | None = None,
) -> Rebuild | None:
    """Pin ``profile`` and ask for a generation built with it, which `rebuilding.rebuild` makes.

    None where nothing was published yet: then the first publish builds with it. The same
    ``rebuild_id`` again, or a rebuild to the same profile that is active, changes nothing.
    Raises `Conflict` while another one is active, `Busy` while a publish commits.
    """
    with app.tenant(collection.tenant_id) as connection:
        clock.lock_head(connection, collection, patient=False)
        if generations.serving_generation(connection, collection) is None:
            catalogue.set_embedding_profile(connection, collection, profile)
            return None
        asked = rebuilds.request(
            connection,
            collection,
            rebuild_id=rebuild_id or uuid.uuid4(),
            reason=reason,
            profile=profile,
            requested_by=requested_by,
        )
        if asked.state.is_active:
            catalogue.set_embedding_profile(connection, collection, profile)
        return asked


def cancel_rebuild(app: Database, collection: Collection, wanted: Rebuild) -> bool:
    """Cancel an active rebuild; False for one that has ended. What served goes on serving.

    A builder that runs notices at its next batch and removes what it wrote; what a killed one
    left is removed by `rebuilding.clear_ended` or garbage collection. Raises `Busy`.
    """
    with app.tenant(wanted.tenant_id) as connection:
        clock.lock_head(connection, collection, patient=False)
        if not rebuilds.cancel(connection, wanted.rebuild_id):
            return False
        keep_serving(connection, collection)
    return True


def keep_serving(connection: Transaction, collection: Collection) -> None:
    """A rebuild ended without a switch: what serves is Ready, and its profile pinned."""
    revisions.mark_rebuilt(connection, collection)
    serving = generations.serving_generation(connection, collection)
    if serving is not None:
        catalogue.set_embedding_profile(connection, collection, serving.embedding_profile)


def builder_lock(rebuild_id: uuid.UUID) -> str:
    """The name of the session lock that the one builder of a rebuild holds."""
    return f"rebuild {rebuild_id}"
