"""What must hold between the predicates and rules of one ontology."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from knowledge.graph.ontology.model import Composition, Predicate


@dataclass(frozen=True, slots=True)
class Flaw:
    """One thing that is wrong.

    ``places`` are the (predicate or composition, key) pairs it can be put right at, best first.
    """

    message: str
    places: tuple[tuple[str, str], ...]


def flaws(
    predicates: Mapping[str, Predicate], compositions: Iterable[Composition]
) -> Iterator[Flaw]:
    """Every flaw: aliases first, then predicates, then compositions, each in document order."""
    yield from _alias_flaws(predicates)
    for predicate in predicates.values():
        yield from _inverse_flaws(predicate, predicates)
        yield from _transitivity_flaws(predicate)
    yield from _composition_flaws(predicates, compositions)


def _alias_flaws(predicates: Mapping[str, Predicate]) -> Iterator[Flaw]:
    owners: dict[str, str] = {}
    for predicate in predicates.values():
        for alias in predicate.aliases:
            place = (predicate.name, "aliases")
            if alias in predicates:
                message = f"alias {alias} of {predicate.name} is the name of a predicate"
                yield Flaw(f"{message}: remove one of the two", (place, (alias, "")))
            elif (owner := owners.setdefault(alias, predicate.name)) != predicate.name:
                message = f"alias {alias} of {predicate.name} is also an alias of {owner}"
                yield Flaw(f"{message}: remove one of the two", (place, (owner, "aliases")))


def _inverse_flaws(predicate: Predicate, predicates: Mapping[str, Predicate]) -> Iterator[Flaw]:
    name, inverse = predicate.name, predicate.inverse
    if inverse is None:
        return
    places = ((name, "inverse"), (inverse, ""))
    other = predicates.get(inverse)
    if other is None:
        hint = _unknown(inverse, predicates)
        yield Flaw(f"inverse of {name}: {hint}", places)
    elif other.inverse != name:
        message = f"{name} has the inverse {inverse}, but {inverse} has "
        message += f"the inverse {other.inverse}" if other.inverse else "none"
        yield Flaw(f"{message}: give {inverse} `inverse: {name}`", ((inverse, "inverse"), *places))
    elif predicate.domain != other.domain:
        yield Flaw(f"{name} and its inverse {inverse} must be of one domain", places)
    elif not _are_mirrored(predicate, other):
        message = f"the subject_types of {name} must be the object_types of its inverse"
        yield Flaw(f"{message} {inverse}, and the reverse", places)
    elif predicate.transitive != other.transitive:
        message = f"{name} and its inverse {inverse} must both be transitive, or neither"
        yield Flaw(message, places)


def _are_mirrored(predicate: Predicate, inverse: Predicate) -> bool:
    return set(predicate.subject_types) == set(inverse.object_types) and set(
        predicate.object_types
    ) == set(inverse.subject_types)


def _transitivity_flaws(predicate: Predicate) -> Iterator[Flaw]:
    if not predicate.transitive:
        return
    place = ((predicate.name, "transitive"),)
    if predicate.functional:
        message = f"{predicate.name} cannot be both functional and transitive"
        yield Flaw(f"{message}: a chain would give its subject two objects; drop one", place)
    elif not _meet(predicate.object_types, predicate.subject_types):
        message = f"{predicate.name} is transitive, but none of its object_types can be a subject"
        yield Flaw(f"{message}: drop `transitive`, or allow a type on both sides", place)


def _composition_flaws(
    predicates: Mapping[str, Predicate], compositions: Iterable[Composition]
) -> Iterator[Flaw]:
    seen: dict[tuple[str, str, str], str] = {}
    for rule in compositions:
        steps = (rule.first, rule.then, rule.gives)
        unknown = [
            (key, step)
            for key, step in zip(("first", "then", "gives"), steps, strict=True)
            if step not in predicates
        ]
        for key, step in unknown:
            message = f"composition {rule.name}, {key}: {_unknown(step, predicates)}"
            yield Flaw(message, ((rule.name, key), (step, "")))
        if unknown:
            continue
        yield from _step_flaws(rule, *(predicates[step] for step in steps))
        if (earlier := seen.setdefault(steps, rule.name)) != rule.name:
            message = (
                f"composition {rule.name} is the same rule as {earlier}: remove one of the two"
            )
            yield Flaw(message, ((rule.name, ""), (earlier, "")))


def _step_flaws(
    rule: Composition, first: Predicate, then: Predicate, gives: Predicate
) -> Iterator[Flaw]:
    what = f"composition {rule.name} can never fire:"
    if rule.first == rule.then == rule.gives:
        message = f"composition {rule.name} only says that {rule.gives} is transitive"
        yield Flaw(f"{message}: give {rule.gives} `transitive: true` instead", ((rule.name, ""),))
    pairs = (
        ("then", f"no object type of {first.name} is a subject type of {then.name}",
         first.object_types, then.subject_types, then),
        ("gives", f"no subject type of {first.name} is a subject type of {gives.name}",
         first.subject_types, gives.subject_types, gives),
        ("gives", f"no object type of {then.name} is an object type of {gives.name}",
         then.object_types, gives.object_types, gives),
    )  # fmt: skip
    for key, message, left, right, predicate in pairs:
        if not _meet(left, right):
            places = ((rule.name, key), (first.name, ""), (predicate.name, ""), (then.name, ""))
            yield Flaw(f"{what} {message}; let them share a type, or remove the rule", places)


def _meet(left: tuple[str, ...], right: tuple[str, ...]) -> bool:
    """Whether one entity can be of a type in both; none listed is any type."""
    return not left or not right or not set(left).isdisjoint(right)


def _unknown(name: str, predicates: Mapping[str, Predicate]) -> str:
    for predicate in predicates.values():
        if name in predicate.aliases:
            return f"{name} is an alias, name the predicate {predicate.name}"
    return f"there is no predicate {name}; add it to `predicates`, or correct the name"
