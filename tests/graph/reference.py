"""Facts by brute force: everything that was said is kept, every question is a scan.

Written from the rules alone. It shares nothing with the product but the ids that break ties.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

BEGINNING = datetime.min.replace(tzinfo=UTC)
FUNCTIONAL = frozenset({"OWNED_BY"})
TIERS = ("UnverifiedMemory", "AgentObservation", "InferredFact", "SourceFact")
"""From the least trusted to the most."""

Key = tuple[object, ...]
Rank = tuple[datetime, int, float, datetime, uuid.UUID]


@dataclass(frozen=True, slots=True)
class Said:
    """One telling as it is sent; ``source`` None is the teller itself."""

    subject: str
    predicate: str
    object: str
    source: str | None = "s1"
    version: str = "v1"
    tier: str = "SourceFact"
    since: datetime | None = None
    until: datetime | None = None
    observed: datetime | None = None
    confidence: float = 1.0
    acl: tuple[str, ...] | None = None

    @property
    def is_functional(self) -> bool:
        return self.predicate in FUNCTIONAL

    @property
    def trust(self) -> int:
        return TIERS.index(self.tier)

    @property
    def fact(self) -> Key:
        """What is the same fact: where its observation dates it, each observation is another."""
        key: Key = (
            *(self.subject, self.predicate, self.object, self.source, self.tier),
            *(self.since, self.until, self.acl),
        )
        if self.is_functional and self.since is None:
            key += (self.version, self.observed)
        return key

    @property
    def telling(self) -> Key:
        return *self.fact, self.version, self.observed, self.confidence

    @property
    def line(self) -> Key:
        """Facts of one line follow one another."""
        return self.subject, self.predicate, self.acl

    @property
    def never_holds(self) -> bool:
        return self.since is not None and self.since == self.until


@dataclass(frozen=True, slots=True)
class Believed:
    """The telling of a fact that is believed, with the time it was observed."""

    said: Said
    observed: datetime

    @property
    def start(self) -> datetime:
        """Where it begins to count: what had ended when it was observed counts from ever."""
        if self.said.since is not None:
            return self.said.since
        if self.said.until is not None and self.said.until <= self.observed:
            return BEGINNING
        return self.observed


@dataclass(slots=True)
class Facts:
    """What is believed after everything that was said so far."""

    tellings: dict[Key, dict[Key, Believed]] = field(default_factory=dict)
    believed: dict[Key, Believed] = field(default_factory=dict)

    def tell(self, batch: Sequence[Said], now: datetime) -> None:
        """A telling that is known changes nothing; of a fact the latest observation is believed."""
        opened: dict[Key, Believed] = {}
        for said in batch:
            known = self.tellings.setdefault(said.fact, {})
            if said.telling not in known:
                known[said.telling] = Believed(said, said.observed or now)
                latest = max(known.values(), key=_lateness)
                if latest.said.telling == said.telling:
                    opened[said.fact] = latest
        self.believed |= opened

    def retract(self, fact: Key) -> None:
        self.believed.pop(fact, None)

    def copy(self) -> Facts:
        return Facts(
            {fact: dict(known) for fact, known in self.tellings.items()}, {**self.believed}
        )

    def at_least(self, tier: str) -> Facts:
        """As if nobody had said anything that is trusted less."""
        kept = {
            fact: held
            for fact, held in self.believed.items()
            if held.said.trust >= TIERS.index(tier)
        }
        return replace(self, believed=kept)

    def holding(self, moment: datetime, ids: Mapping[Key, uuid.UUID]) -> set[uuid.UUID]:
        """The facts that hold at an instant."""
        return {ids[fact] for fact, held in self.believed.items() if self._holds(held, moment, ids)}

    def _holds(self, held: Believed, moment: datetime, ids: Mapping[Key, uuid.UUID]) -> bool:
        said = held.said
        if said.never_holds or moment < (said.since or BEGINNING):
            return False
        if said.until is not None and moment >= said.until:
            return False
        rivals = list(self._rivals(held)) if said.is_functional else []
        own = _rank(held, ids)
        if any(_rank(other, ids) > own and other.start <= moment for other in rivals):
            return False
        # One without a begin goes back to where its predecessor had its time, or for ever.
        is_dated = said.since is not None or moment >= held.start
        return is_dated or not any(other.start <= held.start for other in rivals)

    def _rivals(self, held: Believed) -> Iterator[Believed]:
        for other in self.believed.values():
            if (
                other is not held
                and other.said.line == held.said.line
                and other.said.trust >= held.said.trust
                and not other.said.never_holds
            ):
                yield other


def _lateness(held: Believed) -> tuple[datetime, float, str]:
    return held.observed, held.said.confidence, held.said.version if held.said.source else ""


def _rank(held: Believed, ids: Mapping[Key, uuid.UUID]) -> Rank:
    said = held.said
    return held.start, said.trust, said.confidence, held.observed, ids[said.fact]


def instants(told: Iterable[Said], *more: datetime) -> list[datetime]:
    """Every time that is named, and one just before and after each."""
    named = {moment for said in told for moment in (said.since, said.until, said.observed)}
    found = {BEGINNING}
    for moment in {*more, *(named - {None})}:
        assert moment is not None
        found |= {moment - JUST, moment, moment + JUST}
    return sorted(found)


JUST = datetime.resolution
