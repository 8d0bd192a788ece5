"""The composition root of everything that writes: one object holding what a process opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from knowledge.errors import DatabaseUnavailable, Forbidden
from knowledge.home import Home
from knowledge.model.collection import Collection
from knowledge.model.identity import require_slug
from knowledge.profiles.profile import Embedder
from knowledge.profiles.registry import Profiles
from knowledge.settings import Settings, load_settings
from knowledge.stack.cache import cache_folder
from knowledge.stack.postgres import admin_url, is_postgres_ready
from knowledge.stack.servers import ServerAddresses, running_servers, silent
from knowledge.storage.backend import HybridIndex
from knowledge.storage.backends import IndexLocation
from knowledge.storage.postgres import catalogue, profiles
from knowledge.storage.postgres.bootstrap import DatabaseUrls, database_urls, prepare_database
from knowledge.storage.postgres.database import Database
from knowledge.storage.vectors import VectorStore


@dataclass(frozen=True, slots=True)
class Runtime:
    """An installation, opened for writing. ``app`` is the application role, ``owner`` the owner's."""

    home: Home
    settings: Settings
    urls: DatabaseUrls
    app: Database
    owner: Database
    profiles: Profiles
    index: HybridIndex
    _vectors: dict[tuple[str, str], VectorStore] = field(default_factory=dict, repr=False)

    def collection(self, tenant_id: str, slug_or_id: str) -> Collection:
        """Raises `NotFound`."""
        return catalogue.find_collection(self.app, require_slug(tenant_id, "tenant"), slug_or_id)

    def source_projects(self, collection: Collection) -> dict[str, str]:
        return {
            source.source_id: source.project_id
            for source in catalogue.list_sources(self.app, collection)
        }

    def permitted_embedder(self, profile: str, *, allow_remote: bool) -> Embedder:
        """`permitted_embedder` of this installation."""
        return permitted_embedder(self.app, self.profiles, profile, allow_remote=allow_remote)

    def vectors(self, tenant_id: str, profile: str) -> VectorStore:
        """The tenant's cache of vectors of a profile; it keeps what it has read."""
        key = tenant_id, profile
        if key not in self._vectors:
            self._vectors[key] = VectorStore(
                self.app, self.home.vectors_dir, tenant_id=tenant_id, profile=profile
            )
        return self._vectors[key]


def index_location(home: Home, settings: Settings, servers: ServerAddresses) -> IndexLocation:
    """Where the installation's hybrid index is, while these servers run."""
    return IndexLocation(
        backend=settings.vector_backend,
        installation_id=home.installation_id,
        flat_search_cutoff=settings.indexing.flat_search_cutoff,
        weaviate=servers.weaviate,
    )


def permitted_embedder(
    app: Database, known: Profiles, profile: str, *, allow_remote: bool
) -> Embedder:
    """The profile's embedder, once its definition is the one stored under this name.

    Raises `Forbidden` for a remote profile before its service is asked anything,
    `ProfileMismatch`, `ModelUnavailable`, `InvalidConfiguration`.
    """
    if not allow_remote and not known.is_local(profile):
        raise Forbidden(
            f"profile {profile} sends texts to a remote model: allow that with"
            " `knowledge collections create|set --allow-remote`"
        )
    embedder = known.get(profile)
    profiles.require_same(app, embedder.profile)
    return embedder


@contextmanager
def open_runtime(home: Home, progress: Callable[[str], None] = silent) -> Iterator[Runtime]:
    """Open the home for the length of the block, starting its servers when none run."""
    home.prepare()
    settings = load_settings(home)
    with running_servers(home, settings, progress) as servers:
        urls = prepare_database(servers.database_admin_url, home.database_key)
        app, owner = Database(urls.app_url), Database(urls.owner_url)
        index = index_location(home, settings, servers).open_index(app)
        try:
            yield Runtime(
                home=home,
                settings=settings,
                urls=urls,
                app=app,
                owner=owner,
                profiles=Profiles(settings, cache_folder()),
                index=index,
            )
        finally:
            index.close()
            app.close()
            owner.close()


@contextmanager
def open_owner(home: Home) -> Iterator[Database]:
    """The owner's database alone, of an installation that runs: starts and migrates nothing.

    For what runs every few seconds. Raises `DatabaseUnavailable`.
    """
    settings = load_settings(home)
    if not settings.database_url and not is_postgres_ready(home):
        raise DatabaseUnavailable(f"the servers of {home.root} do not run: knowledge up")
    url = database_urls(settings.database_url or admin_url(home), home.database_key).owner_url
    database = Database(url, max_size=1)
    try:
        yield database
    finally:
        database.close()
