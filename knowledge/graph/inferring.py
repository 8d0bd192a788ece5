"""What the ontology's rules make of facts: suggestions, each with the facts it rests on.

A suggestion is trusted no more than the least trusted premise and no more than `InferredFact`,
as confident as the least confident, and holds while all premises hold. It may be read by who
may read all of them. Premises may be suggestions themselves, a bounded number of steps deep.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, Final

from knowledge.graph.ontology.model import Ontology
from knowledge.model.fact import (
    SUGGESTED,
    Fact,
    Moment,
    Provenance,
    Statement,
    fact_id,
    is_memory,
    name_key,
    telling_id,
    timeline_id,
)
from knowledge.model.scope import TrustTier
from knowledge.storage.postgres.database import Transaction
from knowledge.storage.postgres.facts import inferred
from knowledge.storage.postgres.facts.reading import By, believed_facts
from knowledge.storage.postgres.facts.writing import Telling, scope_key

PRINCIPAL: Final = "inference"
"""Who says what was inferred: no client has this name."""

MAX_STEPS: Final = 3
MAX_SUGGESTIONS: Final = 1_000
"""Of one batch; `knowledge graph infer` finds the rest."""

MAX_CONCLUSIONS: Final = 10_000
"""Ways to conclude something that one step looks at: a hub of n facts in and m out has n times m."""

MAX_PARTNERS: Final = 20_000
"""Facts that one step reads as premises."""

INVERSE: Final = "inverse"
"""How rules of one premise are named; the others follow from two."""

Write = Callable[[Sequence[Telling]], None]


@dataclass(frozen=True, slots=True)
class _Conclusion:
    """A triple that a rule gives, with its premises in the order of the rule."""

    rule: str
    subject: str
    subject_type: str | None
    predicate: str
    object: str
    object_type: str | None
    premises: tuple[Fact, ...]

    @property
    def preference(self) -> tuple[int, str, tuple[uuid.UUID, ...]]:
        """Of several ways to the same conclusion the least is told: the same in every run."""
        return len(self.premises), self.rule, tuple(fact.fact_id for fact in self.premises)

    @property
    def triple(self) -> tuple[str, str, str]:
        return name_key(self.subject), self.predicate, name_key(self.object)


def infer(
    connection: Transaction,
    tenant_id: str,
    project_id: str,
    ontology: Ontology,
    *,
    now: datetime,
    readers: str,
    opened: Sequence[Telling],
    changed: Sequence[uuid.UUID],
    ended: Sequence[uuid.UUID],
    write: Write,
    max_conclusions: int = MAX_CONCLUSIONS,
) -> bool:
    """Suggest what follows from the ``opened`` facts, from those whose window or confidence ``changed``,
    and what ``ended`` but follows from others too. Returns whether the bounds left something out.

    ``readers`` is what `ending.restricted_sources` gives.
    """
    firing = {name for name in ontology.predicates if ontology.rules_of(name)}
    base = _Base(
        connection, tenant_id, project_id, now, readers, frozenset(firing), max_conclusions
    )
    said = [t for t in opened if not is_memory(t.statement.namespace)]
    seeds = base.facts({t.fact_id for t in said if t.statement.predicate in firing})
    seeds += base.facts(set(changed))
    seeds += base.around(ended, ontology)
    room = MAX_SUGGESTIONS
    for _step in range(MAX_STEPS):
        tellings = _fresh(base, ontology, seeds)
        base.is_cut = base.is_cut or len(tellings) > room
        write(tellings[:room])
        seeds = base.facts({t.fact_id for t in tellings[:room]})
        room -= min(room, len(tellings))
        if not seeds:
            return base.is_cut
    return base.is_cut or bool(_fresh(base, ontology, seeds))


def _may_be_premise(fact: Fact) -> bool:
    return fact.chunk_id is None and not is_memory(fact.namespace)


@dataclass(slots=True)
class _Base:
    """The believed facts of a project that can be premises: predicates of which a rule fires.

    A fact that a chunk says is none: who may read the chunk is not known of what would rest on it.
    Nor is one of a memory: what agents observed proves nothing further.
    ``is_cut`` when there were more than the bounds let through.
    """

    connection: Transaction
    tenant_id: str
    project_id: str
    now: datetime
    readers: str
    firing: frozenset[str]
    max_conclusions: int
    is_cut: bool = False

    @property
    def place(self) -> str:
        return scope_key(self.tenant_id, self.project_id)

    def find(self, by: By, keys: Collection[tuple[Any, ...]]) -> list[Fact]:
        """By id, so that the same come first whatever the bounds leave out."""
        found = believed_facts(
            self.connection, self.place, self.now, by, keys, MAX_PARTNERS + 1, self.readers
        )
        self.is_cut = self.is_cut or len(found) > MAX_PARTNERS
        fit = [fact for fact in found if fact.predicate in self.firing and _may_be_premise(fact)]
        return sorted(fit, key=lambda fact: fact.fact_id)[:MAX_PARTNERS]

    def facts(self, fact_ids: set[uuid.UUID]) -> list[Fact]:
        return self.find("fact", [(fact_id,) for fact_id in fact_ids])

    def stated(self, triples: Collection[tuple[str, str, str]]) -> list[Fact]:
        """Facts of these triples that somebody said."""
        found = believed_facts(
            self.connection, self.place, self.now, "triple", triples, MAX_PARTNERS, self.readers
        )
        return [fact for fact in found if fact.suggestion is None and _may_be_premise(fact)]

    def around(self, ended: Sequence[uuid.UUID], ontology: Ontology) -> list[Fact]:
        """Facts of which the same as those that ended may follow."""
        firsts, mirrored = set(), set()
        for subject, predicate, object_ in inferred.triples_of(self.connection, ended):
            firsts |= {(subject, first) for first in _first_steps(ontology, predicate)}
            if inverse := ontology.rules_of(predicate).inverse:
                mirrored.add((object_, inverse, subject))
        return [*self.find("subject", sorted(firsts)), *self.find("triple", sorted(mirrored))]


def _first_steps(ontology: Ontology, predicate: str) -> Iterator[str]:
    """The predicates that begin a chain of two premises with this conclusion."""
    if ontology.rules_of(predicate).transitive:
        yield predicate
    yield from (rule.first for rule in ontology.compositions if rule.gives == predicate)


def _conclusions(base: _Base, ontology: Ontology, seeds: Sequence[Fact]) -> Iterator[_Conclusion]:
    """What each seed gives, alone and with the partners that a rule asks for."""
    wanted: dict[bool, set[tuple[str, str]]] = {True: set(), False: set()}
    for seed in seeds:
        for _rule, partner, _gives, is_first in _chains(ontology, seed.predicate):
            wanted[is_first].add((name_key(seed.object if is_first else seed.subject), partner))
    partners = {
        True: _by_end(base.find("subject", wanted[True]), lambda fact: fact.subject),
        False: _by_end(base.find("object", wanted[False]), lambda fact: fact.object),
    }
    for seed in seeds:
        inverse = ontology.rules_of(seed.predicate).inverse
        if inverse is not None:
            yield _Conclusion(
                f"{INVERSE} {seed.predicate}",
                seed.object,
                seed.object_type,
                inverse,
                seed.subject,
                seed.subject_type,
                (seed,),
            )
        for rule, partner, gives, is_first in _chains(ontology, seed.predicate):
            end = name_key(seed.object if is_first else seed.subject)
            for other in partners[is_first].get((end, partner), ()):
                first, then = (seed, other) if is_first else (other, seed)
                yield _chained(rule, gives, first, then)


def _by_end(
    facts: Iterable[Fact], end: Callable[[Fact], str]
) -> Mapping[tuple[str, str], list[Fact]]:
    found: dict[tuple[str, str], list[Fact]] = {}
    for fact in facts:
        found.setdefault((name_key(end(fact)), fact.predicate), []).append(fact)
    return found


def _chains(ontology: Ontology, predicate: str) -> Iterator[tuple[str, str, str, bool]]:
    """Rules of two premises that a fact can fire: name, partner, conclusion, whether it is first."""
    rules = ontology.rules_of(predicate)
    if rules.transitive:
        for is_first in (True, False):
            yield f"transitive {predicate}", predicate, predicate, is_first
    for rule in rules.as_first:
        yield rule.name, rule.then, rule.gives, True
    for rule in rules.as_then:
        yield rule.name, rule.first, rule.gives, False


def _chained(rule: str, gives: str, first: Fact, then: Fact) -> _Conclusion:
    return _Conclusion(
        rule,
        first.subject,
        first.subject_type,
        gives,
        then.object,
        then.object_type,
        (first, then),
    )


def _fresh(base: _Base, ontology: Ontology, seeds: Sequence[Fact]) -> list[Telling]:
    """What follows from the seeds, is sound, and neither known already nor rejected once."""
    found = _conclusions(base, ontology, seeds) if seeds else iter(())
    conclusions = list(islice(found, base.max_conclusions + 1))
    base.is_cut = base.is_cut or len(conclusions) > base.max_conclusions
    told: dict[uuid.UUID, tuple[_Conclusion, Telling]] = {}
    for conclusion in sorted(conclusions, key=lambda each: each.preference):
        telling = _telling(base, ontology, conclusion)
        if telling is not None:
            told.setdefault(telling.fact_id, (conclusion, telling))
    if not told:
        return []
    settled = inferred.believed(base.connection, list(told))
    rejected = inferred.rejected(
        base.connection, base.place, {conclusion.triple for conclusion, _ in told.values()}
    )
    restricted = json.loads(base.readers)
    confirmed = inferred.confirmed_until(base.connection, list(told), base.now)
    triples = {conclusion.triple for fact, (conclusion, _) in told.items() if fact not in settled}
    stated: dict[tuple[str, str, str], list[Fact]] = {}
    for fact in base.stated(triples):
        triple = name_key(fact.subject), fact.predicate, name_key(fact.object)
        stated.setdefault(triple, []).append(fact)
    return [
        _confirmed(telling, confirmed.get(fact))
        for fact, (conclusion, telling) in told.items()
        if fact not in settled
        and (telling.statement.namespace, *conclusion.triple) not in rejected
        and not any(
            _covers(known, telling, restricted) for known in stated.get(conclusion.triple, ())
        )
    ]


def _confirmed(telling: Telling, confirmed_by: str | None) -> Telling:
    """What was confirmed and follows again, for the same time and readers, need not be again."""
    if confirmed_by is None:
        return telling
    return replace(telling, suggestion="confirmed", confirmed_by=confirmed_by)


def _covers(fact: Fact, telling: Telling, restricted: Mapping[str, str]) -> bool:
    """Whether somebody states it already, for the whole time and for the same readers."""
    said, source = telling.statement, fact.provenance.source_id
    begins = fact.valid_from is None or (
        said.valid_from is not None and fact.valid_from.at <= said.valid_from.at
    )
    ends = fact.valid_to is None or (
        said.valid_to is not None and said.valid_to.at <= fact.valid_to.at
    )
    is_seen = fact.acl in (None, said.acl) and (
        source not in restricted or source in telling.lineage_sources
    )
    return begins and ends and is_seen and fact.namespace == said.namespace


def _telling(base: _Base, ontology: Ontology, conclusion: _Conclusion) -> Telling | None:
    premises = conclusion.premises
    first, last = premises[0], premises[-1]
    readers = {fact.acl for fact in premises} - {None}
    subject, _predicate, object_ = conclusion.triple
    if (
        subject == object_
        or first.namespace != last.namespace
        or not first.meets(last)
        or len(readers) > 1  # no one list admits exactly who is on both
        or _types_differ(premises)
    ):
        return None
    known = ontology.find(conclusion.predicate)
    is_functional = known is not None and known.functional
    named = {fact.provenance.source_id for fact in premises} - {None}
    sources = sorted(
        {source for source in named if source}
        | {source for fact in premises for source in fact.lineage_sources}
    )
    restricted = json.loads(base.readers)
    said = Statement(
        domain=(known.domain if known else None) or first.domain,
        subject=conclusion.subject,
        predicate=conclusion.predicate,
        object=conclusion.object,
        provenance=Provenance(principal=PRINCIPAL, client=conclusion.rule),
        namespace=first.namespace,
        subject_type=conclusion.subject_type,
        object_type=conclusion.object_type,
        valid_from=_latest([fact.valid_from for fact in premises]),
        valid_to=_earliest([fact.valid_to for fact in premises]),
        observed_at=base.now,
        confidence=min(fact.confidence for fact in premises),
        tier=max((TrustTier.INFERRED_FACT, *(fact.tier for fact in premises)), key=_rank),
        acl=next(iter(readers), None),
        # What only some may conclude is not what everyone may.
        readers_of=tuple(source for source in sources if source in restricted),
    )
    fact = fact_id(base.tenant_id, base.project_id, said, functional=False)
    return Telling(
        telling_id=telling_id(fact, said),
        fact_id=fact,
        statement=said,
        timeline=timeline_id(base.tenant_id, base.project_id, said) if is_functional else None,
        rule=conclusion.rule,
        lineage=tuple(fact.fact_id for fact in premises),
        lineage_sources=tuple(sources),
        suggestion=SUGGESTED,
    )


def _types_differ(premises: Sequence[Fact]) -> bool:
    """Whether the entity in the middle is of two types, and so two entities of one name."""
    if len(premises) == 1:
        return False
    types = {premises[0].object_type, premises[1].subject_type} - {None}
    return len(types) > 1


def _rank(tier: TrustTier) -> int:
    return tier.rank


def _latest(moments: Iterable[Moment | None]) -> Moment | None:
    return max((m for m in moments if m), key=lambda m: m.at, default=None)


def _earliest(moments: Iterable[Moment | None]) -> Moment | None:
    return min((m for m in moments if m), key=lambda m: m.at, default=None)
