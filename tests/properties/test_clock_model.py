"""The clock, driven at random and crashed, beside a reference that keeps every revision whole."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

import hypothesis
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from knowledge.crash_points import COLLECT_POINTS, PUBLISH_POINTS, REBUILD_POINTS
from knowledge.model.scope import Caller
from knowledge.retrieval.request import BUILT, Leg
from knowledge.storage.postgres import catalogue, generations
from knowledge.storage.postgres.publishing import Acl as AclGiven
from knowledge.storage.snapshots import Mode
from tests.asking import caller_of
from tests.properties.comparing import Comparison
from tests.properties.conftest import Site
from tests.properties.driving import Driver, Publication
from tests.properties.dying import Crash, crashing
from tests.properties.reference import Acl, Asker, Clock, Document, Wanted
from tests.properties.strategies import (
    ACLS,
    DOCUMENTS,
    MEANWHILE,
    PROFILE,
    PROJECTS,
    SLUGS,
    SOURCES,
    USER,
    WANTED,
    WHICH,
    crash_at,
)

_tenants = itertools.count(1)
GROUPS: dict[str, tuple[str, ...]] = {"anyone": (), "member": ("x",), "user": ()}
"""The callers and the groups they are in; ``user`` is the one that ACLs name."""


class ClockMachine(RuleBasedStateMachine):
    """A tenant of its own: collections are published to, indexed, rebuilt, collected, and asked."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.runtime = site.runtime
        self.tenant_id = f"m{next(_tenants)}-{os.getpid()}"
        for project in PROJECTS:
            catalogue.ensure_project(self.runtime.owner, self.tenant_id, project)
        self.driver = Driver(self.runtime, self.tenant_id)
        self.compared = Comparison(site, self.tenant_id, self.driver.clocks)
        self.callers = {
            name: caller_of(self.runtime, self.tenant_id, projects=PROJECTS, groups=groups)
            for name, groups in GROUPS.items()
        }
        self.turn = itertools.count()

    # --- what is done to it -------------------------------------------------------------

    @initialize(
        project=st.sampled_from(PROJECTS),
        profile=PROFILE,
        published=st.lists(DOCUMENTS, max_size=4),
    )
    def create_first(
        self, project: str, profile: str | None, published: list[list[Document]]
    ) -> None:
        """With a history or without: rebuilds and collections do little before there is one."""
        self.driver.create(SLUGS[0], project, profile)
        clock = self._clock(0)
        for documents in published:
            named = [replace(document, acl=self._named(document.acl)) for document in documents]
            self.driver.announce(clock, Publication(SOURCES[0], project, "full", named))
            self.driver.index(clock)

    @precondition(lambda self: len(self.driver.clocks) < len(SLUGS))
    @rule(project=st.sampled_from(PROJECTS), profile=PROFILE)
    def create(self, project: str, profile: str | None) -> None:
        self.driver.create(SLUGS[len(self.driver.clocks)], project, profile)

    @rule(
        which=WHICH,
        source=st.sampled_from(SOURCES),
        project=st.sampled_from(PROJECTS),
        mode=st.sampled_from(["full", "delta", "delta"]),
        documents=DOCUMENTS,
        read_by=st.one_of(st.just(AclGiven.UNCHANGED), ACLS),
        revive=st.booleans(),
        then_index=st.sampled_from([True, True, False]),
        crash=crash_at(*PUBLISH_POINTS),
        data=st.data(),
    )
    def publish(
        self,
        which: int,
        source: str,
        project: str,
        mode: Mode,
        documents: list[Document],
        read_by: Acl | AclGiven,
        revive: bool,
        then_index: bool,
        crash: str | None,
        data: st.DataObject,
    ) -> None:
        clock = self._clock(which)
        known = clock.sources.get(source)
        publication = Publication(
            source,
            known.project if known else project,
            mode,
            [replace(document, acl=self._named(document.acl)) for document in documents],
            self._dropped(clock, source, documents, data) if mode == "delta" else (),
            read_by if isinstance(read_by, AclGiven) else self._named(read_by),
            revive,
        )
        self.driver.announce(clock, publication)
        if then_index:
            with suppress(Crash), crashing(crash):
                self.driver.index(clock)

    @rule(which=WHICH, crash=crash_at(*PUBLISH_POINTS), again=st.booleans())
    def index(self, which: int, crash: str | None, again: bool) -> None:
        clock = self._clock(which)
        try:
            with crashing(crash):
                self.driver.index(clock)
        except Crash:
            if again:
                self.driver.index(clock)

    @rule(which=WHICH, source=st.sampled_from(SOURCES), acl=ACLS, deleted=st.booleans())
    def change_source(self, which: int, source: str, acl: Acl, deleted: bool) -> None:
        clock = self._clock(which)
        if source not in clock.sources:
            return
        if deleted:
            self.driver.delete(clock, source)
        else:
            self.driver.change_access(clock, source, self._named(acl))

    @rule(
        which=WHICH,
        profile=PROFILE,
        crash=crash_at(*REBUILD_POINTS, "embeddings.stored", "index.part_written"),
        again=st.booleans(),
        data=st.data(),
    )
    def rebuild(
        self, which: int, profile: str | None, crash: str | None, again: bool, data: st.DataObject
    ) -> None:
        clock = self._clock(which)
        wanted = self.driver.request_rebuild(clock, profile)
        if wanted is None:
            return
        actions = iter(range(3))

        def meanwhile() -> None:
            with crashing(None):
                self.answers_are_the_references()
                if next(actions, None) is not None:
                    self._act_meanwhile(clock, data)

        def before_the_lease(point: str) -> None:
            meanwhile()

        try:
            with crashing(crash) if crash else crashing("rebuild.caught_up", before_the_lease):
                self.driver.rebuild(clock, wanted, meanwhile)
        except Crash as killed:
            if again and killed.point != "rebuild.switched":
                self.driver.rebuild(clock, wanted, meanwhile)

    def _act_meanwhile(self, clock: Clock, data: st.DataObject) -> None:
        action = data.draw(MEANWHILE, "meanwhile")
        if action in ("publish", "announce"):
            source = data.draw(st.sampled_from(SOURCES))
            self.publish(
                SLUGS.index(clock.slug),
                source,
                clock.project,
                "delta",
                data.draw(DOCUMENTS),
                AclGiven.UNCHANGED,
                True,
                action == "publish",
                data.draw(crash_at(*PUBLISH_POINTS)),
                data,
            )
        elif action == "collect":
            self.driver.collect(clock, 2)
        elif action == "cancel":
            self.cancel(SLUGS.index(clock.slug))

    @rule(which=WHICH)
    def cancel(self, which: int) -> None:
        clock = self._clock(which)
        active = self.driver.active_rebuild(clock)
        if active is not None:
            self.driver.cancel(clock, active)

    @rule(
        which=WHICH,
        keep=st.sampled_from([2, 3]),
        crash=crash_at(*COLLECT_POINTS),
        again=st.booleans(),
    )
    def collect(self, which: int, keep: int, crash: str | None, again: bool) -> None:
        clock = self._clock(which)
        try:
            with crashing(crash):
                self.driver.collect(clock, keep)
        except Crash:
            if again:
                self.driver.collect(clock, keep)

    # --- what it is asked ---------------------------------------------------------------

    @rule(
        who=st.sampled_from(sorted(GROUPS)),
        project=st.sampled_from(PROJECTS),
        wanted=WANTED,
        legs=st.sampled_from([(Leg.FULL_TEXT,), BUILT]),
        pins=st.dictionaries(st.sampled_from(SLUGS), st.integers(1, 12), max_size=2),
    )
    def ask(
        self, who: str, project: str, wanted: Wanted, legs: tuple[Leg, ...], pins: dict[str, int]
    ) -> None:
        if wanted.word != "lease":
            legs = (Leg.FULL_TEXT,)  # by meaning or path one finds what does not say the word
        self.compared.ask(*self._asker(who, project), wanted, pins=pins, legs=legs)

    @invariant()
    def answers_are_the_references(self) -> None:
        """In one project after the other, in turn: two steps are about both."""
        project = PROJECTS[next(self.turn) % len(PROJECTS)]
        for who in GROUPS:
            self.compared.ask(*self._asker(who, project))
        asks = self._asker("member", project)
        self.compared.ask(*asks, legs=(Leg.VECTOR,))
        for slug, clock in self.driver.clocks.items():
            if clock.is_shown_in(project):
                for pin in self._some_pins(clock):
                    self.compared.ask_again(*asks, slug, pin)
                    self.compared.ask(*asks, pins={slug: pin}, legs=(Leg.VECTOR,))

    @invariant()
    def clock_and_index_are_the_references(self) -> None:
        for slug, clock in self.driver.clocks.items():
            collection = self.runtime.collection(self.tenant_id, slug)
            assert collection.head_rev == clock.head, slug
            if clock.is_settled and clock.floor == clock.deleted_below:
                self.compared.require_index(collection, clock)

    def teardown(self) -> None:
        for collection in self.driver.collections.values():
            with self.runtime.app.tenant(self.tenant_id) as connection:
                found = generations.generations_in(
                    connection,
                    collection,
                    backend=self.runtime.index.name,
                    states=["building", "serving", "retired"],
                )
            for generation in found:
                self.runtime.index.drop_generation(generation)

    # --- names --------------------------------------------------------------------------

    def _clock(self, which: int) -> Clock:
        clocks = list(self.driver.clocks.values())
        return clocks[which % len(clocks)]

    def _asker(self, who: str, project: str) -> tuple[Caller, Asker]:
        caller = self.callers[who]
        groups = {f"group:{group}" for group in GROUPS[who]}
        return caller, Asker(frozenset({f"user:{caller.client_id}", *groups}), project)

    def _named(self, acl: Acl) -> Acl:
        """The ACL with the client that stands for the drawn user."""
        user = f"user:{self.callers['user'].client_id}"
        return acl if acl is None else tuple(sorted(user if e == USER else e for e in acl))

    def _dropped(
        self, clock: Clock, source: str, documents: list[Document], data: st.DataObject
    ) -> list[str]:
        """Paths that a delta may delete: what the source holds and the delta does not bring."""
        paths = sorted(clock.announced(source) - {document.path for document in documents})
        return data.draw(st.lists(st.sampled_from(paths), unique=True)) if paths else []

    def _some_pins(self, clock: Clock) -> Iterator[int]:
        """The oldest that can be pinned, and the others in turn."""
        oldest = max(clock.floor, 1)
        yield oldest
        if clock.head > oldest:
            yield oldest + 1 + next(self.turn) // 2 % (clock.head - oldest)


def test_every_answer_and_index_is_what_the_reference_says(
    site: Site, effort: hypothesis.settings
) -> None:
    machine = partial(ClockMachine, site)
    run_state_machine_as_test(machine, settings=effort)  # type: ignore[arg-type]  # any factory
