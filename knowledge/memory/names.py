"""The names of one memory, kept warm: found by their words and by what they mean.

Every name carries who may read a fact that has it. What a caller may not read is left out before
the best are taken, so it can neither be found nor push anything out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowledge.storage.postgres.database import Row
from knowledge.storage.postgres.facts.filters import FactScope
from knowledge.text.analysis import analyse
from knowledge.text.postings import Postings

SPARSE_FROM: Final = 1_000
BEFORE_ALL: Final = datetime.min.replace(tzinfo=UTC)

Mask = NDArray[np.bool_]


class Readers(NamedTuple):
    """What decides who may read a fact; facts that a chunk says lend memories no names."""

    acl: tuple[str, ...] | None
    source_id: str | None
    lineage_sources: tuple[str, ...]
    session: str | None

    def admit(self, scope: FactScope) -> bool:
        denied = set(scope.denied)
        return (
            (self.acl is None or not set(self.acl).isdisjoint(scope.acl))
            and self.source_id not in denied
            and denied.isdisjoint(self.lineage_sources)
            and (self.session is None or self.session in scope.sessions)
        )


@dataclass(slots=True)
class Entity:
    """A name as facts spell and type it; most often first."""

    key: str
    spellings: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    aliases: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return _commonest(self.spellings) or self.key

    @property
    def type(self) -> str | None:
        return _commonest(self.types)

    @property
    def terms(self) -> list[str]:
        """The words it is found by: of its spellings, types and aliases."""
        named = sorted(+self.spellings) + sorted(+self.types) + list(self.aliases)
        return [term for text in named for term in analyse(text)]


def _commonest(counts: Counter[str]) -> str | None:
    held = [(-times, text) for text, times in counts.items() if times > 0]
    return min(held)[1] if held else None


@dataclass(frozen=True, slots=True)
class NameHit:
    """A name that was found, by its number in the index; ``score`` is BM25 or a cosine."""

    number: int
    score: float


class NameIndex:
    """Names of one tenant, project and namespace as of ``known_at``. For one thread at a time."""

    def __init__(self, tenant_id: str, project_id: str, namespace: str) -> None:
        self.tenant_id = tenant_id
        self.project_id = project_id
        self.namespace = namespace
        self.known_at = BEFORE_ALL
        self.merges: str | None = None
        self.erased_at: datetime | None = None
        self.embedded_at: datetime | None = None
        self.fingerprint: str | None = None
        self.vectors_at = BEFORE_ALL
        self._numbers: dict[str, int] = {}
        self._entities: list[Entity] = []
        self._postings = Postings()
        self._readers: defaultdict[str | None, dict[Readers, Counter[int]]] = defaultdict(dict)
        self._vectors = np.zeros((0, 0), np.float32)
        self._has_vector = np.zeros(0, np.bool_)

    def __len__(self) -> int:
        return len(self._entities)

    @property
    def is_sparse(self) -> bool:
        """Whether most of what it holds are names that no fact has any more."""
        return len(self) > SPARSE_FROM and len(self) > 2 * self._postings.held

    def entity(self, number: int) -> Entity:
        return self._entities[number]

    def number_of(self, key: str) -> int | None:
        return self._numbers.get(key)

    def apply(self, facts: Iterable[Row], merges: Sequence[Row], known_at: datetime) -> None:
        """Take up facts that opened or closed until ``known_at``, and the merges in force."""
        touched = set()
        for row in facts:
            step = 1 if row["is_open"] else -1
            readers = _readers_of(row)
            for end in ("subject", "object"):
                number = self._number(row[f"{end}_key"])
                entity = self._entities[number]
                entity.spellings[row[end]] += step
                if row[f"{end}_type"]:
                    entity.types[row[f"{end}_type"]] += step
                if readers is not None:
                    held = self._readers[readers.session].setdefault(readers, Counter())
                    held[number] += step
                touched.add(number)
        touched |= self._take_merges(merges)
        for number in touched:
            entity = self._entities[number]
            self._postings.replace(number, entity.terms if +entity.spellings else ())
        self.known_at = known_at

    def take_vectors(
        self, fingerprint: str, vectors: Iterable[tuple[str, NDArray[np.float32]]]
    ) -> None:
        """Vectors of length 1 by name key; those of another model are dropped first."""
        if fingerprint != self.fingerprint:
            self.fingerprint = fingerprint
            self._vectors = np.zeros((0, 0), np.float32)
            self._has_vector = np.zeros(0, np.bool_)
        for key, vector in vectors:
            number = self._number(key)
            self._make_room(number, len(vector))
            self._vectors[number] = vector
            self._has_vector[number] = True

    def visible(self, scope: FactScope, *, of_session: bool = False) -> Mask:
        """Which numbers a caller may read a fact of; with ``of_session`` of the sessions only."""
        mask = np.zeros(len(self), np.bool_)
        sessions: list[str | None] = [*scope.sessions] if of_session else [None, *scope.sessions]
        for session in sessions:
            for readers, held in self._readers.get(session, {}).items():
                if readers.admit(scope):
                    numbers = np.fromiter(held.keys(), np.intp, len(held))
                    counts = np.fromiter(held.values(), np.intp, len(held))
                    mask[numbers[counts > 0]] = True
        return mask

    def by_words(self, terms: Sequence[str], mask: Mask, limit: int) -> list[NameHit]:
        """The best names that hold any of the terms; ties by number of letters, then by key."""
        scores = self._postings.scores(terms)
        return self._best(scores, mask & (scores > 0), limit)

    def by_meaning(
        self, vector: NDArray[np.float32], floor: float, mask: Mask, limit: int
    ) -> list[NameHit]:
        """The nearest names, of a cosine of ``floor`` at least."""
        rows = min(len(self), len(self._vectors))
        if not rows or len(vector) != self._vectors.shape[1]:
            return []
        cosines = np.full(len(self), -1.0)
        cosines[:rows] = self._vectors[:rows] @ vector
        admitted = mask & (cosines >= floor)
        admitted[:rows] &= self._has_vector[:rows]
        return self._best(cosines, admitted, limit)

    def coverage(self, terms: Sequence[str], number: int) -> float:
        return self._postings.coverage(terms, number)

    def _best(self, scores: NDArray[np.float64], admitted: Mask, limit: int) -> list[NameHit]:
        numbers = np.flatnonzero(admitted)
        if len(numbers) > 4 * limit:
            # Everything as good as the last of the best stays, so that ties are decided below.
            least = np.partition(scores[numbers], -limit)[-limit]
            numbers = numbers[scores[numbers] >= least]
        ordered = sorted(
            numbers.tolist(),
            key=lambda n: (-scores[n], len(self._entities[n].key), self._entities[n].key),
        )
        return [NameHit(n, float(scores[n])) for n in ordered[:limit]]

    def _number(self, key: str) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._postings.add(())
            self._numbers[key] = number
            self._entities.append(Entity(key))
        return number

    def _make_room(self, number: int, dimension: int) -> None:
        rows = len(self._vectors)
        if number < rows:
            return
        grown = max(256, 2 * rows, number + 1)
        vectors = np.zeros((grown, dimension), np.float32)
        has_vector = np.zeros(grown, np.bool_)
        if rows:
            vectors[:rows], has_vector[:rows] = self._vectors, self._has_vector
        self._vectors, self._has_vector = vectors, has_vector

    def _take_merges(self, merges: Sequence[Row]) -> set[int]:
        """Names that stand for another are found by the other's words too; returns which changed."""
        aliases: defaultdict[str, set[str]] = defaultdict(set)
        for row in merges:
            aliases[row["into_key"]].add(row["name"])
            aliases[row["name_key"]].add(row["into_name"])
        changed = set()
        for number, entity in enumerate(self._entities):
            names = tuple(sorted(aliases.get(entity.key, ())))
            if names != entity.aliases:
                entity.aliases = names
                changed.add(number)
        return changed


def _readers_of(row: Row) -> Readers | None:
    if row["of_chunk"]:
        return None
    acl = None if row["acl"] is None else tuple(row["acl"])
    return Readers(acl, row["source_id"], tuple(row["lineage_sources"] or ()), row["session_scope"])
