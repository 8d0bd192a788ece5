"""Recall: gate → two legs → fuse → entities → the facts around them.

The legs look for entity names, by words and by meaning, among those that the caller may read.
Fusion is on ranks (reciprocal rank fusion, Cormack et al. 2009, k = 60): BM25 and cosines have no
common scale.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from knowledge.errors import ModelUnavailable
from knowledge.graph.querying import FactReader
from knowledge.graph.questions import Expansion, Sieve
from knowledge.graph.walking import Node, Walk
from knowledge.memory.choosing import choose
from knowledge.memory.embedding import NameEmbedder
from knowledge.memory.gate import NO_WORDS, why_skipped, words_of
from knowledge.memory.names import NameHit, NameIndex
from knowledge.memory.plan import MemoryPlan, MemoryScope, plan_memory
from knowledge.memory.questions import (
    MAX_ENTRIES,
    NameQuestion,
    RecallQuestion,
    SubgraphQuestion,
)
from knowledge.memory.warm import WarmNames
from knowledge.model.fact import Fact, name_key
from knowledge.model.scope import READ, Caller
from knowledge.storage.postgres.facts.filters import FactFilter
from knowledge.text.analysis import analyse

logger = logging.getLogger(__name__)

RRF_K: Final = 60
LEG_DEPTH: Final = 24
"""Names that each leg hands to the fusion."""

MAX_TERMS: Final = 256
"""Words of a query that are looked up."""

FAN_OUT: Final = 40
MAX_WALKED: Final = 400
"""Facts looked at around the entities, of which the best are answered."""

Mode = Literal["hybrid", "names"]
Via = Literal["vector", "name", "both"]


@dataclass(frozen=True, slots=True)
class FoundEntity:
    """An entity that a text may speak of, and which legs found it."""

    name: str
    type: str | None
    via: Via


@dataclass(frozen=True, slots=True)
class Basis:
    """What an answer rests on. ``mode_reason`` says why only names were searched, ``dropped`` counts
    what a store gave that is of another tenant, project or memory: more than none is a fault."""

    plan: MemoryPlan
    as_of: datetime
    mode: Mode
    mode_reason: str | None = None
    profile: str | None = None
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Recalled:
    """``skipped`` says why nothing was looked for. ``left_out`` counts facts that were found beyond
    the limit, and ``is_cut`` says that there may be more still."""

    basis: Basis
    skipped: str | None = None
    entities: tuple[FoundEntity, ...] = ()
    facts: tuple[Fact, ...] = ()
    left_out: int = 0
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class FoundNames:
    """Entities, best first, each with how many of its facts hold."""

    basis: Basis
    skipped: str | None = None
    entities: tuple[tuple[FoundEntity, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The facts around named entities, and the entities that they reach."""

    basis: Basis
    nodes: tuple[Node, ...]
    facts: tuple[Fact, ...]
    left_out: int = 0
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class _Found:
    """Numbers of names in an index, best first, with the legs that found them."""

    index: NameIndex
    via: Mapping[int, Via]
    basis: Basis

    def entities(self) -> tuple[FoundEntity, ...]:
        named = ((self.index.entity(number), via) for number, via in self.via.items())
        return tuple(FoundEntity(each.name, each.type, via) for each, via in named)


class Recaller:
    """Answers questions to memories. Opened once a process."""

    def __init__(self, reader: FactReader, names: WarmNames, embedder: NameEmbedder) -> None:
        self._reader = reader
        self._names = names
        self._embedder = embedder

    async def recall(self, caller: Caller, question: RecallQuestion) -> Recalled:
        """Raises what `plan_memory` raises and `DatabaseUnavailable`; a model that fails or is slow
        leaves the names."""
        if (skipped := why_skipped(question.query)) is not None:
            plan = await plan_memory(self._reader, caller, question.memory)
            if not await self._is_name(plan, question.query):
                return Recalled(_basis(plan, question.as_of), skipped)
        found = await self._find(
            caller, question.query, question.memory, question.as_of, MAX_ENTRIES
        )
        entries = [found.index.entity(number).name for number in found.via]
        if not entries:
            return Recalled(found.basis)
        walked = await self._walk(found.basis, entries, question.bounds.hops)
        facts = choose(walked, analyse(question.query), question.bounds.facts)
        facts, dropped = _of_memory(found.basis.plan, facts)
        facts = await self._with_contradictions(found.basis, facts)
        return Recalled(
            replace(found.basis, dropped=dropped + found.basis.dropped),
            entities=found.entities(),
            facts=tuple(facts),
            left_out=max(len(walked.edges) - len(facts) - dropped, 0),
            is_cut=walked.is_thin,
        )

    async def search(self, caller: Caller, question: NameQuestion) -> FoundNames:
        """Raises as `recall`."""
        if not words_of(question.query):
            plan = await plan_memory(self._reader, caller, question.memory)
            if not await self._is_name(plan, question.query):
                return FoundNames(_basis(plan, question.as_of), NO_WORDS)
        found = await self._find(
            caller, question.query, question.memory, question.as_of, question.limit
        )
        names = found.entities()
        if not names:
            return FoundNames(found.basis)
        walk = await self._walk(found.basis, [each.name for each in names], 1)
        facts, dropped = _of_memory(found.basis.plan, [e.fact for e in walk.edges.values()])
        counts = {each.name: _count(facts, each.name) for each in names}
        return FoundNames(
            replace(found.basis, dropped=dropped + found.basis.dropped),
            entities=tuple((each, counts[each.name]) for each in names),
        )

    async def subgraph(self, caller: Caller, question: SubgraphQuestion) -> Surroundings:
        """Raises as `recall`."""
        plan = await plan_memory(self._reader, caller, question.memory)
        basis = _basis(plan, question.as_of)
        walked = await self._walk(basis, question.entities, question.bounds.hops)
        facts = choose(walked, (), question.bounds.facts)
        facts, dropped = _of_memory(plan, facts)
        facts = await self._with_contradictions(basis, facts)
        met = {name for fact in facts for name in (fact.subject, fact.object)}
        nodes = [
            node
            for node in walked.named_nodes().values()
            if node.distance == 0 or not node.names.isdisjoint(met)
        ]
        return Surroundings(
            replace(basis, dropped=dropped),
            nodes=tuple(sorted(nodes, key=lambda node: (node.distance, node.name))),
            facts=tuple(facts),
            left_out=max(len(walked.edges) - len(facts) - dropped, 0),
            is_cut=walked.is_thin,
        )

    async def names(
        self, caller: Caller, memory: MemoryScope, needed: str = READ
    ) -> tuple[MemoryPlan, list[FoundEntity]]:
        """Every name that the caller may read a fact of, by key: for clients that keep them.

        Raises what `plan_memory` raises, for the scope ``needed``.
        """
        plan = await plan_memory(self._reader, caller, memory, needed)
        index = await self._names.current(plan, None)
        mask = index.visible(plan.facts.facts, of_session=plan.of_session)
        found = sorted(np.flatnonzero(mask).tolist(), key=lambda n: index.entity(n).key)
        return plan, [
            FoundEntity(index.entity(n).name, index.entity(n).type, "name") for n in found
        ]

    async def _is_name(self, plan: MemoryPlan, query: str) -> bool:
        """Whether the text is a name as it stands, however little it says."""
        index = await self._names.current(plan, None)
        number = index.number_of(name_key(query))
        mask = index.visible(plan.facts.facts, of_session=plan.of_session)
        return number is not None and bool(mask[number])

    async def _find(
        self,
        caller: Caller,
        query: str,
        memory: MemoryScope,
        as_of: datetime | None,
        limit: int,
    ) -> _Found:
        """Run both legs: the model reads the query while the scope is resolved."""
        embedding = asyncio.create_task(self._embedder.embed_query(query))
        try:
            plan = await plan_memory(self._reader, caller, memory)
            profile = self._embedder.profile
            vector, reason = await _vector(embedding)
            index = await self._names.current(plan, profile.fingerprint if profile else None)
        finally:
            embedding.cancel()
            embedding.add_done_callback(_retrieve)
        basis = _basis(plan, as_of)
        if vector is not None and profile is not None:
            basis = replace(basis, mode="hybrid", profile=profile.key)
        else:
            basis = replace(basis, mode_reason=reason)
        mask = index.visible(plan.facts.facts, of_session=plan.of_session)
        by_words = index.by_words(analyse(query)[:MAX_TERMS], mask, LEG_DEPTH)
        exact = index.number_of(name_key(query))
        if exact is not None and mask[exact]:
            by_words = [NameHit(exact, math.inf), *(hit for hit in by_words if hit.number != exact)]
        by_meaning: Sequence[NameHit] = ()
        if vector is not None and profile is not None:
            by_meaning = index.by_meaning(vector, profile.names_floor, mask, LEG_DEPTH)
        return _Found(index, fuse(index, by_words, by_meaning, limit), basis)

    async def _walk(self, basis: Basis, entities: Sequence[str], hops: int) -> Walk:
        bounds = Expansion(
            basis.plan.scope.project_id,
            tuple(entities),
            hops=hops,
            sieve=Sieve(namespace=basis.plan.namespace, as_of=basis.as_of),
            fan_out=FAN_OUT,
        )
        walk = await Walk.begin(
            self._reader.database,
            basis.plan.facts,
            entities,
            bounds,
            max_nodes=MAX_WALKED,
            max_edges=MAX_WALKED,
            of_session=basis.plan.of_session,
        )
        for _hop in range(hops):
            if not await walk.hop():
                break
        return walk

    async def _with_contradictions(self, basis: Basis, facts: Sequence[Fact]) -> list[Fact]:
        plan = basis.plan.facts
        wanted = FactFilter(
            as_of=basis.as_of, namespace=basis.plan.namespace, of_session=basis.plan.of_session
        )
        marked, _ = await self._reader.with_contradictions(plan.facts, wanted, facts)
        return marked


def fuse(
    index: NameIndex, by_words: Sequence[NameHit], by_meaning: Sequence[NameHit], limit: int
) -> dict[int, Via]:
    """The names of both legs by their ranks, best first; ties by key."""
    score: dict[int, float] = {}
    for hits in (by_words, by_meaning):
        for rank, hit in enumerate(hits, start=1):
            score[hit.number] = score.get(hit.number, 0.0) + 1 / (RRF_K + rank)
    worded = {hit.number for hit in by_words}
    meant = {hit.number for hit in by_meaning}
    best = sorted(score, key=lambda n: (-score[n], index.entity(n).key))[:limit]
    return {n: "both" if n in worded & meant else "name" if n in worded else "vector" for n in best}


def _basis(plan: MemoryPlan, as_of: datetime | None) -> Basis:
    return Basis(plan, as_of or plan.facts.now, "names")


async def _vector(
    embedding: asyncio.Task[NDArray[np.float32]],
) -> tuple[NDArray[np.float32] | None, str | None]:
    try:
        return await embedding, None
    except ModelUnavailable as error:
        return None, error.message


def _of_memory(plan: MemoryPlan, facts: Iterable[Fact]) -> tuple[list[Fact], int]:
    """The last check: what is of another tenant, project or memory is dropped and counted."""
    given = list(facts)
    kept = [f for f in given if (f.tenant_id, f.project_id, f.namespace) == plan.place]
    if len(kept) < len(given):
        logger.error(
            "facts of another memory were dropped", extra={"facts": len(given) - len(kept)}
        )
    return kept, len(given) - len(kept)


def _count(facts: Sequence[Fact], name: str) -> int:
    key = name_key(name)
    return sum(key in (name_key(fact.subject), name_key(fact.object)) for fact in facts)


def _retrieve(task: asyncio.Task[NDArray[np.float32]]) -> None:
    if not task.cancelled():
        task.exception()
