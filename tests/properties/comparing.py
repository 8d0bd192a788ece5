"""Questions put to the product and to the reference, and to the index what it holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from knowledge.errors import RevisionCollected, RevisionUnknown
from knowledge.model.collection import Collection
from knowledge.model.scope import Caller
from knowledge.retrieval.answer import Answer, Candidate
from knowledge.retrieval.request import BUILT, Filters, Leg, SearchRequest
from knowledge.storage.postgres import generations, rebuilds
from tests.properties.conftest import Site
from tests.properties.reference import Asker, Cited, Clock, Wanted

EVERYTHING = Wanted()
_Said = tuple[Cited, dict[str, float], float]


def cited(candidate: Candidate) -> Cited:
    citation = candidate.citation
    return Cited(
        citation.collection,
        citation.source_id,
        citation.path,
        candidate.text,
        citation.source_version,
        citation.index_revision,
        citation.embedding_profile_version,
    )


@dataclass(slots=True)
class Comparison:
    """The product beside the reference, for one tenant."""

    site: Site
    tenant_id: str
    clocks: Mapping[str, Clock]
    remembered: dict[tuple[object, ...], list[_Said]] = field(default_factory=dict)

    def ask(
        self,
        caller: Caller,
        asker: Asker,
        wanted: Wanted = EVERYTHING,
        *,
        pins: Mapping[str, int] | None = None,
        legs: tuple[Leg, ...] = (Leg.FULL_TEXT,),
        collections: tuple[str, ...] = (),
    ) -> Answer | None:
        """Ask both; None where the pins are refused. No ``collections`` are all of the project."""
        pins = pins or {}
        shown = [
            clock
            for clock in self.clocks.values()
            if clock.is_shown_in(asker.project) and clock.slug in (collections or self.clocks)
        ]
        pins = {clock.slug: pins[clock.slug] for clock in shown if clock.slug in pins}
        request = SearchRequest(
            wanted.word,
            asker.project,
            collections,
            top_k=100,
            rerank="none",
            filters=_filters(wanted),
            pinned=pins,
            legs=legs,
        )
        refusals = {self._refusal(clock, pins.get(clock.slug)) for clock in shown} - {None}
        if refusals:
            with pytest.raises((RevisionCollected, RevisionUnknown)) as refused:
                self.site.asker.ask(caller, request)
            assert refused.type in refusals, (pins, refused.value)
            return None
        answer = self.site.asker.ask(caller, request)
        self._compare(answer, asker, wanted, pins, shown, legs)
        return answer

    def _refusal(self, clock: Clock, pin: int | None) -> type[Exception] | None:
        if pin is None:
            return None
        revision = clock.read_at(pin)
        if revision is None or pin > clock.head:
            return RevisionUnknown
        return RevisionCollected if revision < clock.floor else None

    def _compare(
        self,
        answer: Answer,
        asker: Asker,
        wanted: Wanted,
        pins: Mapping[str, int],
        shown: list[Clock],
        legs: tuple[Leg, ...],
    ) -> None:
        assert not answer.degraded, answer.legs
        found = Counter(cited(candidate) for candidate in answer.chunks)
        must: set[Cited] = set()
        may: set[Cited] = set()
        for clock in shown:
            certain, possible = clock.answer(
                asker, wanted, pins.get(clock.slug), vectors=legs == (Leg.VECTOR,)
            )
            must |= certain
            may |= possible
        where = (asker, wanted, pins, legs)
        assert max(found.values(), default=1) == 1, (where, found)
        assert must <= found.keys(), (where, "missing", must - found.keys())
        assert found.keys() <= may, (where, "foreign", found.keys() - may)
        if all(not clock.unsettled for clock in shown):
            assert answer.foreign_dropped == 0, (where, "the index holds yesterday's ACLs")

    def ask_again(self, caller: Caller, asker: Asker, slug: str, pin: int) -> None:
        """A pinned answer is what it was when it was first asked, apart from permissions."""
        for legs in ((Leg.FULL_TEXT,), BUILT):
            answer = self.ask(caller, asker, pins={slug: pin}, legs=legs, collections=(slug,))
            if answer is None or self.clocks[slug].unsettled:
                continue  # refused, or an index is behind in ACLs: one leg finds what another may
            now = [
                (cited(candidate), dict(candidate.citation.signals), candidate.citation.score)
                for candidate in answer.chunks
            ]
            key = (slug, self.clocks[slug].read_at(pin), asker, legs)
            then = self.remembered.setdefault(key, now)
            kept = {entry[0] for entry in then} & {entry[0] for entry in now}
            if len(kept) == len(then) == len(now):
                assert now == then, (slug, pin, legs, then, now)
            elif legs != BUILT:
                in_order = [[e[:2] for e in entries if e[0] in kept] for entries in (then, now)]
                assert in_order[0] == in_order[1], (slug, pin, legs)

    def require_index(self, collection: Collection, clock: Clock) -> None:
        """The serving generation holds what the reference says, the item count included."""
        runtime = self.site.runtime
        with runtime.app.tenant(self.tenant_id) as connection:
            serving = generations.serving_generation(connection, collection)
            building = generations.generations_in(
                connection, collection, backend=runtime.index.name, states=["building"]
            )
            active = rebuilds.active(connection, collection)
        left = [generation for generation in building if generation.rebuild_id is not None]
        assert active is not None or not left, "a generation that nobody builds was left"
        assert (serving is not None) == bool(clock.served)
        if serving is None:
            return
        assert serving.embedding_profile == clock.serving_profile
        expected = clock.held(serving.created_rev, serving.applied_rev)
        items = Counter(
            (item.from_rev, item.to_rev, item.acl) for item in runtime.index.items(serving)
        )
        assert items == expected, (collection.slug, items - expected, expected - items)
        assert serving.items == expected.total() == runtime.index.count(serving)


def _filters(wanted: Wanted) -> Filters:
    return Filters(
        source_id=wanted.source,
        path_prefix=wanted.path_prefix,
        kind=wanted.kind,  # type: ignore[arg-type]
        language=wanted.language,
        tags=wanted.tags,
        updated_after=wanted.updated_after,
    )
