"""Steps taken in the product and in the reference at once; a crash stops both at the same place."""

from __future__ import annotations

import itertools
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from knowledge.crash_points import PUBLISH_POINTS
from knowledge.errors import Conflict, RebuildCancelled
from knowledge.indexing.collecting import collect
from knowledge.indexing.rebuild_requests import cancel_rebuild, request_rebuild
from knowledge.indexing.rebuilding import clear_ended, rebuild
from knowledge.model.collection import Collection
from knowledge.publishing.announcing import delete_source
from knowledge.publishing.publish import PublishRequest, publish
from knowledge.runtime import Runtime
from knowledge.storage.postgres import catalogue, generations, rebuilds
from knowledge.storage.postgres.publishing import Acl as AclGiven
from knowledge.storage.postgres.rebuilds import Rebuild
from knowledge.storage.snapshots import Mode
from tests.properties.dying import Crash
from tests.properties.reference import Acl, Clock, Deleted, Document, Published, Source
from tests.publication import collection_of, index

_COMMITTED = PUBLISH_POINTS[PUBLISH_POINTS.index("tick.committed") :]
_owners = itertools.count(1)


def _owner() -> str:
    return f"machine-{os.getpid()}-{next(_owners)}"


@dataclass(frozen=True, slots=True)
class Publication:
    """A publish of ``documents``, which a delta leaves the other paths for, but those ``dropped``."""

    source: str
    project: str
    mode: Mode
    documents: Sequence[Document]
    dropped: Sequence[str] = ()
    read_by: Acl | AclGiven = AclGiven.UNCHANGED
    revive: bool = False

    @property
    def replaced(self) -> frozenset[str] | None:
        if self.mode == "full":
            return None
        return frozenset({*(document.path for document in self.documents), *self.dropped})


@dataclass(slots=True)
class Driver:
    """One tenant: its collections, and the reference's clock of each."""

    runtime: Runtime
    tenant_id: str
    collections: dict[str, Collection] = field(default_factory=dict)
    clocks: dict[str, Clock] = field(default_factory=dict)

    def create(self, slug: str, project: str, profile: str | None) -> None:
        self.collections[slug] = collection_of(
            self.runtime, self.tenant_id, slug, project_id=project, profile=profile
        )
        self.clocks[slug] = Clock(slug, project, profile)

    def announce(self, clock: Clock, wanted: Publication) -> None:
        """Publish; nothing is indexed yet. A deleted source refuses it unless it is revived."""
        known = clock.sources.get(wanted.source)
        if known and known.is_deleted and not wanted.revive:
            with pytest.raises(Conflict, match="was deleted"):
                self._announce(clock, wanted)
            return
        version = self._announce(clock, wanted)
        source = clock.sources.setdefault(wanted.source, Source(wanted.project))
        source.is_deleted = False
        if not isinstance(wanted.read_by, AclGiven):
            source.acl = wanted.read_by
        clock.pending.append(Published(wanted.source, wanted.documents, wanted.replaced, version))

    def _announce(self, clock: Clock, wanted: Publication) -> str:
        with tempfile.TemporaryDirectory() as folder:
            feed = Path(folder) / "feed.jsonl"
            feed.write_text("".join(json.dumps(_line(d)) + "\n" for d in wanted.documents))
            request = PublishRequest(
                [feed],
                wanted.project,
                source_id=wanted.source,
                mode=wanted.mode,
                acl=wanted.read_by,
                deleted=wanted.dropped,
                revive=wanted.revive,
            )
            return publish(self.runtime, self.collections[clock.slug], request).source_version

    def change_access(self, clock: Clock, source: str, acl: Acl) -> None:
        catalogue.set_source_acl(self.runtime.app, self.collections[clock.slug], source, acl)
        clock.sources[source].acl = acl

    def delete(self, clock: Clock, source: str) -> None:
        delete_source(self.runtime.app, self.collections[clock.slug], source)
        clock.sources[source].is_deleted = True
        clock.pending.append(Deleted(source))

    def index(self, clock: Clock) -> None:
        """Raises `Crash`, then both stand where the killed run left them."""
        try:
            done = index(self.runtime, self.collections[clock.slug])
        except Crash as crash:
            if crash.point in _COMMITTED:
                clock.tick()
            if crash.point == "serving.switched":
                clock.serve()
            raise
        assert (done.ticked, done.revision) == (clock.tick(), clock.head), clock.slug
        clock.serve()

    def active_rebuild(self, clock: Clock) -> Rebuild | None:
        with self.runtime.app.tenant(self.tenant_id) as connection:
            return rebuilds.active(connection, self.collections[clock.slug])

    def request_rebuild(self, clock: Clock, profile: str | None) -> Rebuild | None:
        """None before anything serves; then the next run builds with the profile."""
        active = self.active_rebuild(clock)
        if active is not None and active.embedding_profile != profile:
            with pytest.raises(Conflict):
                self._request_rebuild(clock, profile)
            return active
        wanted = self._request_rebuild(clock, profile)
        assert (wanted is None) == (not clock.served)
        clock.profile = profile
        return wanted

    def _request_rebuild(self, clock: Clock, profile: str | None) -> Rebuild | None:
        return request_rebuild(
            self.runtime.app,
            self.collections[clock.slug],
            profile=profile,
            reason="requested",
            requested_by="machine",
        )

    def rebuild(self, clock: Clock, wanted: Rebuild, meanwhile: Callable[[], None]) -> None:
        """``meanwhile`` is called after each round. Raises `Crash`, as `index` does."""
        try:
            done = rebuild(self.runtime, wanted, owner=_owner(), progress=lambda _line: meanwhile())
        except Crash as crash:
            if crash.point == "rebuild.switched":
                clock.rebuilt(wanted.embedding_profile)
            elif not self._is_active(wanted):
                clear_ended(self.runtime, self.collections[clock.slug], wanted.rebuild_id)
            raise
        except RebuildCancelled:
            assert not self._is_active(wanted)
            return
        clock.rebuilt(wanted.embedding_profile)
        assert (done.revision, done.profile) == (clock.head, wanted.embedding_profile)

    def _is_active(self, wanted: Rebuild) -> bool:
        found = rebuilds.find(self.runtime.app, self.tenant_id, wanted.rebuild_id)
        return found.state.is_active

    def cancel(self, clock: Clock, wanted: Rebuild) -> None:
        if cancel_rebuild(self.runtime.app, self.collections[clock.slug], wanted):
            clear_ended(self.runtime, self.collections[clock.slug], wanted.rebuild_id)

    def collect(self, clock: Clock, keep: int) -> None:
        """Keep the last ``keep`` revisions, however young. Raises `Crash`, as `index` does."""
        indexing = self.runtime.settings.indexing.model_copy(update={"keep_revisions": keep})
        settings = self.runtime.settings.model_copy(update={"indexing": indexing})
        runtime = replace(self.runtime, settings=settings)
        try:
            done = collect(runtime, self.collections[clock.slug], owner=_owner())
        except Crash as crash:
            floor = clock.mark_collected(keep)
            if crash.point == "collect.rows_deleted":
                clock.delete_below(floor)
            raise
        assert done.floor == clock.mark_collected(keep)
        clock.delete_below(done.floor)
        self._require_nothing_left_over(clock)

    def _require_nothing_left_over(self, clock: Clock) -> None:
        """Beside what serves and what pins read there is only what a rebuild is building."""
        active = self.active_rebuild(clock)
        with self.runtime.app.tenant(self.tenant_id) as connection:
            building = generations.generations_in(
                connection,
                self.collections[clock.slug],
                backend=self.runtime.index.name,
                states=["building"],
            )
        builders = {generation.rebuild_id for generation in building}
        expected = {active.rebuild_id} if active else set()
        assert builders <= (expected if clock.served else {None}), builders


def _line(document: Document) -> dict[str, Any]:
    metadata = {"language": document.language, "updatedAt": document.updated}
    return {
        "id": document.path,
        "text": document.text,
        "acl": None if document.acl is None else list(document.acl),
        "tags": list(document.tags),
        "metadata": {key: value for key, value in metadata.items() if value is not None},
    }
