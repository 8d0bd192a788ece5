"""The health of the hybrid index's server, and what it means for the revisions that serve."""

from __future__ import annotations

from dataclasses import dataclass

from knowledge.errors import IndexUnavailable
from knowledge.home import Home
from knowledge.model.revision import IndexState
from knowledge.runtime import index_location
from knowledge.settings import load_settings
from knowledge.stack.servers import current_addresses
from knowledge.storage.postgres import revisions
from knowledge.storage.postgres.bootstrap import database_urls
from knowledge.storage.postgres.database import Database


@dataclass(frozen=True, slots=True)
class BackendHealth:
    """``version`` of the server that answers, else the ``reason`` why none does."""

    version: str | None
    reason: str | None

    @property
    def is_reachable(self) -> bool:
        return self.version is not None


@dataclass(frozen=True, slots=True)
class HealthChange:
    """How many serving revisions, over all tenants, changed their state."""

    degraded: int
    recovered: int


def probe_backend(home: Home) -> BackendHealth:
    """Ask the index's server for its version; starts nothing."""
    settings = load_settings(home)
    servers = current_addresses(home, settings)
    if servers is None:
        return BackendHealth(None, "a server of this installation does not run")
    urls = database_urls(servers.database_admin_url, home.database_key)
    database = Database(urls.app_url, max_size=1)
    try:
        return BackendHealth(index_location(home, settings, servers).probe(database), None)
    except IndexUnavailable as error:
        return BackendHealth(None, error.message)
    finally:
        database.close()


def is_noted(owner: Database, health: BackendHealth) -> bool:
    """Whether the states of the revisions already say what the probe found."""
    contradicted = IndexState.DEGRADED if health.is_reachable else IndexState.READY
    return revisions.count_in_state(owner, contradicted) == 0


def note_health(owner: Database, health: BackendHealth) -> HealthChange:
    """Move the serving vector and full-text revisions to Degraded, or back to Ready.

    States and events are one transaction; what is noted already is left alone.
    """
    with owner.transaction() as connection:
        if health.is_reachable:
            return HealthChange(0, len(revisions.mark_recovered(connection)))
        return HealthChange(len(revisions.mark_degraded(connection)), 0)
