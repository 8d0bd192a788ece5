"""An ontology: what the predicates of graph facts mean and what may be inferred from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from knowledge.model.fact import Domain


@dataclass(frozen=True, slots=True)
class Predicate:
    """What one predicate means.

    ``domain`` None is any domain; no ``subject_types`` or ``object_types`` are any type.
    Functional: a subject has at most one object at a time, a later one ends the one before it.
    Transitive: A to B and B to C make A to C. ``inverse`` is the same statement read from the
    object (a symmetric predicate is its own inverse). ``aliases`` are other spellings of
    ``name``, with subject and object in the same places.
    """

    name: str
    domain: Domain | None = None
    subject_types: tuple[str, ...] = ()
    object_types: tuple[str, ...] = ()
    functional: bool = False
    transitive: bool = False
    inverse: str | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Composition:
    """The rule: A ``first`` B and B ``then`` C make A ``gives`` C. All three are predicates."""

    name: str
    first: str
    then: str
    gives: str


@dataclass(frozen=True, slots=True)
class Rules:
    """Everything that a fact with one predicate can fire; false when that is nothing.

    ``inverse`` is the predicate of the fact read backwards. ``as_first`` are the compositions
    in which the fact is the first of the two premises, ``as_then`` those in which it is the
    second, both in the order of the ontology.
    """

    inverse: str | None = None
    transitive: bool = False
    as_first: tuple[Composition, ...] = ()
    as_then: tuple[Composition, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.inverse or self.transitive or self.as_first or self.as_then)


_NO_RULES = Rules()


@dataclass(frozen=True, slots=True)
class Ontology:
    """One version of an ontology, complete: nothing of what it extends has to be looked up.

    ``predicates`` by their names, without aliases. ``closed``: a predicate that is not listed
    is refused; otherwise it is kept as it is and reported.
    """

    name: str
    version: int
    closed: bool
    predicates: Mapping[str, Predicate] = field(hash=False)
    compositions: tuple[Composition, ...] = ()
    _names: Mapping[str, str] = field(init=False, repr=False, compare=False)
    _rules: Mapping[str, Rules] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        predicates = MappingProxyType(dict(self.predicates))
        names = {alias: each.name for each in predicates.values() for alias in each.aliases}
        object.__setattr__(self, "predicates", predicates)
        object.__setattr__(self, "_names", names)
        object.__setattr__(self, "_rules", _rules(predicates.values(), self.compositions))

    @property
    def identity(self) -> str:
        """``name@version``."""
        return f"{self.name}@{self.version}"

    def canonical(self, name: str) -> str:
        """The name that an alias stands for; any other name stays as it is."""
        return self._names.get(name, name)

    def find(self, name: str) -> Predicate | None:
        """The predicate of this name or alias, None when there is none."""
        return self.predicates.get(self.canonical(name))

    def rules_of(self, name: str) -> Rules:
        """What facts with this predicate (name or alias) can fire; an unknown one fires nothing."""
        return self._rules.get(self.canonical(name), _NO_RULES)


def _rules(
    predicates: Iterable[Predicate], compositions: tuple[Composition, ...]
) -> dict[str, Rules]:
    as_first: dict[str, list[Composition]] = {}
    as_then: dict[str, list[Composition]] = {}
    for composition in compositions:
        as_first.setdefault(composition.first, []).append(composition)
        as_then.setdefault(composition.then, []).append(composition)
    return {
        each.name: Rules(
            inverse=each.inverse,
            transitive=each.transitive,
            as_first=tuple(as_first.get(each.name, ())),
            as_then=tuple(as_then.get(each.name, ())),
        )
        for each in predicates
    }
