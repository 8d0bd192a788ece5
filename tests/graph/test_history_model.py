"""Random histories of facts against a reference that keeps everything and scans it."""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from knowledge.model.fact import Fact
from knowledge.model.scope import Caller, TrustTier
from tests.graph.ontologies import parse
from tests.graph.reference import FUNCTIONAL, TIERS, Facts, Key, Said, instants
from tests.graph.telling import Graph, at, fact
from tests.properties.conftest import EXAMPLES_VARIABLE

WORDS = parse("name: acme\nversion: 1\npredicates:\n  OWNED_BY: {functional: true}\n  USES: {}\n")
EXAMPLES = 30
EVER = (at(1), at(9999))
_tenants = itertools.count(1)

YEARS = st.one_of(st.none(), st.integers(2000, 2004).map(at))
SAID = st.builds(
    Said,
    subject=st.sampled_from(["billing", "billing", "cart"]),
    predicate=st.sampled_from(["OWNED_BY", "OWNED_BY", "USES"]),
    object=st.sampled_from(["core", "edge", "data"]),
    source=st.sampled_from(["s1", "s2", None]),
    version=st.sampled_from(["v1", "v2"]),
    tier=st.sampled_from(TIERS),
    since=YEARS,
    until=YEARS,
    observed=YEARS,
    confidence=st.sampled_from([1.0, 1.0, 0.5]),
    acl=st.sampled_from([None, None, None, ("group:x",)]),
)


def _valid(said: Said) -> Said:
    """The nearest that can be said: windows in order, and agents are no sources."""
    if said.since and said.until and said.until < said.since:
        said = replace(said, since=said.until, until=said.since)
    if said.source is None and said.trust > TIERS.index("AgentObservation"):
        said = replace(said, tier="AgentObservation")
    return said


def _drawn(data: st.DataObject, size: int, before: Sequence[Said] = ()) -> list[Said]:
    """New facts, and every other time one that was told before, told anew."""
    told: list[Said] = []
    for _ in range(size):
        said = _valid(data.draw(SAID))
        if known := data.draw(st.sampled_from([None, *before, *told])):
            said = replace(
                known, version=said.version, observed=said.observed, confidence=said.confidence
            )
        told.append(said)
    return told


SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=6)
RETRACTED = st.one_of(st.none(), st.integers(0, 20))


def _dated(said: Said) -> Said:
    return said if said.observed else replace(said, observed=at(2005))


@pytest.fixture
def effort() -> hypothesis.settings:
    """Little and always the same, unless the environment asks for more."""
    wanted = os.environ.get(EXAMPLES_VARIABLE)
    generate, shrink = hypothesis.Phase.generate, hypothesis.Phase.shrink
    return hypothesis.settings(
        max_examples=int(wanted) if wanted else EXAMPLES,
        derandomize=wanted is None,
        database=None,
        deadline=None,
        print_blob=False,
        report_multiple_bugs=False,
        phases=(generate, shrink) if wanted else (generate,),
        suppress_health_check=list(hypothesis.HealthCheck),
    )


@dataclass
class Site:
    """A tenant of its own, and the reference's facts of it."""

    graph: Graph
    member: Caller
    reference: Facts = field(default_factory=Facts)
    ids: dict[Key, uuid.UUID] = field(default_factory=dict)
    told: list[Said] = field(default_factory=list)

    def tell(self, batch: Sequence[Said]) -> None:
        written = self.graph.tell(*map(_sent, batch), ontology=WORDS)
        for said, fact_id in zip(batch, written.fact_ids, strict=True):
            assert self.ids.setdefault(said.fact, fact_id) == fact_id
        assert len(set(self.ids.values())) == len(self.ids)
        self.told += batch
        self.reference.tell(batch, self.recorded())

    def recorded(self) -> datetime:
        """When the last batch was: what is not dated was observed then."""
        (row,) = self.graph.rows("select max(recorded_at) as latest from graph_facts")
        latest: datetime = row["latest"]
        return latest

    def retract(self, number: int) -> None:
        key = list(self.ids)[number % len(self.ids)]
        self.graph.retract(self.ids[key], ontology=WORDS)
        self.reference.retract(key)

    def answer(self, **wanted: Any) -> dict[uuid.UUID, Fact]:
        found = self.graph.facts(self.member, **wanted)
        by_id = {each.fact_id: each for each in found}
        assert len(by_id) == len(found)  # one believed telling a fact
        return by_id

    def require_reference(self, reference: Facts, moments: Sequence[datetime]) -> None:
        """What is answered for each moment is what the reference says, and whole in itself."""
        windows = self.answer(between=EVER)
        believed = {self.ids[fact]: held for fact, held in reference.believed.items()}
        for fact_id, each in windows.items():
            held = believed[fact_id]
            assert (each.observed_at, each.confidence) == (held.observed, held.said.confidence)
        for moment in moments:
            found = {each.fact_id for each in windows.values() if each.holds_at(moment)}
            assert found == reference.holding(moment, self.ids), moment
            _require_one_object([windows[each] for each in found])
            for tier in TIERS[1:]:
                alone = reference.at_least(tier).holding(moment, self.ids)
                trusted = {each for each in found if windows[each].tier.at_least(TrustTier(tier))}
                assert trusted == alone, (moment, tier)

    def require_everything_kept(self) -> None:
        tellings = {said.telling for said in self.told}
        kept = {
            each.telling_id
            for name in {said.subject for said in self.told}
            for each in self.graph.history(name, self.member).facts
        }
        assert len(kept) == len(tellings)


def _sent(said: Said) -> dict[str, Any]:
    agent = {"sourceVersion": None, "client": "agent", "sessionId": said.version}
    return fact(
        said.subject,
        said.predicate,
        said.object,
        **{"sourceId": said.source, "sourceVersion": said.version, "trustTier": said.tier}
        | (agent if said.source is None else {}),
        validFrom=said.since and said.since.isoformat(),
        validTo=said.until and said.until.isoformat(),
        observedAt=said.observed and said.observed.isoformat(),
        confidence=said.confidence,
        acl=None if said.acl is None else list(said.acl),
    )


def _require_one_object(found: Sequence[Fact]) -> None:
    held: dict[tuple[object, ...], str] = {}
    for each in found:
        if each.predicate in FUNCTIONAL:
            line = each.subject, each.acl, each.tier
            assert held.setdefault(line, each.object) == each.object


@pytest.fixture
def new_site(graph: Graph) -> Callable[[], Site]:
    def made() -> Site:
        own = replace(graph, tenant_id=f"h{next(_tenants)}-{os.getpid()}", _caller=None)
        return Site(own, own.client(groups=("x",)))

    return made


def test_every_answer_is_the_references_and_stays_what_it_was(
    new_site: Callable[[], Site], effort: hypothesis.settings
) -> None:
    @effort
    @hypothesis.given(SIZES, st.data())
    def holds(sizes: list[int], data: st.DataObject) -> None:
        site = new_site()
        states: list[tuple[datetime, Facts, dict[uuid.UUID, Fact]]] = []
        for size in sizes:
            site.tell(_drawn(data, size, site.told))
            if (retracted := data.draw(RETRACTED)) is not None:
                site.retract(retracted)
            known = site.graph.now()
            moments = instants(site.told, site.recorded())
            site.require_reference(site.reference, moments)
            states.append((known, site.reference.copy(), site.answer(between=EVER)))
        site.require_everything_kept()
        site.graph.require_true_counts()
        for known, reference, answered in states:
            assert _stripped(site.answer(between=EVER, as_known_at=known)) == _stripped(answered)
            moment = data.draw(st.sampled_from(instants(site.told, known)))
            found = site.answer(as_of=moment, as_known_at=known)
            assert set(found) == reference.holding(moment, site.ids), moment

    holds()


def _stripped(facts: dict[uuid.UUID, Fact]) -> dict[uuid.UUID, Fact]:
    """Without what tells of a later end of belief, which was not known then."""
    return {
        fact_id: replace(each, closed_at=None, closing=None, closed_by=None, contradicts=())
        for fact_id, each in facts.items()
    }


def test_the_order_of_arrival_and_the_size_of_batches_make_no_difference(
    new_site: Callable[[], Site], effort: hypothesis.settings
) -> None:
    @effort
    @hypothesis.given(st.integers(2, 8), st.data())
    def holds(size: int, data: st.DataObject) -> None:
        told = [_dated(said) for said in _drawn(data, size)]
        reference = Facts()
        reference.tell(told, at(2005))
        for _again in range(2):
            site = new_site()
            order = data.draw(st.permutations(told))
            cuts = data.draw(st.lists(st.integers(1, 4), min_size=8, max_size=8))
            left = iter(order)
            for size in cuts:
                if batch := list(itertools.islice(left, size)):
                    site.tell(batch)
            site.require_reference(reference, instants(told))
            site.require_everything_kept()

    holds()
