"""What a new version of an ontology changes, for the operator who puts it in force."""

from __future__ import annotations

from collections.abc import Iterator

from knowledge.graph.ontology.model import Composition, Ontology, Predicate


def differences(old: Ontology, new: Ontology) -> tuple[str, ...]:
    """One line a change, predicates by name, then compositions; empty when nothing changes.

    Name and version of the two are not compared, nor is any order.
    """
    return (
        *_closed_changes(old, new),
        *_predicate_changes(old, new),
        *_composition_changes(old, new),
    )


def _closed_changes(old: Ontology, new: Ontology) -> Iterator[str]:
    if new.closed and not old.closed:
        yield "now closed: unknown predicates are refused"
    if old.closed and not new.closed:
        yield "now open: unknown predicates are kept and reported"


def _predicate_changes(old: Ontology, new: Ontology) -> Iterator[str]:
    for name in sorted({*old.predicates, *new.predicates}):
        before, after = old.predicates.get(name), new.predicates.get(name)
        if after is None:
            stands_for = new.canonical(name)
            note = "" if stands_for == name else f": now an alias of {stands_for}"
            yield f"{name} removed{note}"
        elif before is None:
            yield f"{name} added"
        else:
            yield from (f"{name} {change}" for change in _changes(before, after))


def _changes(before: Predicate, after: Predicate) -> Iterator[str]:
    if before.domain != after.domain:
        yield f"domain: {before.domain or 'any'} → {after.domain or 'any'}"
    if after.functional and not before.functional:
        yield "now functional: a later object ends the one before it"
    if before.functional and not after.functional:
        yield "no longer functional: several objects hold at once"
    if after.transitive != before.transitive:
        yield "now transitive" if after.transitive else "no longer transitive"
    if before.inverse != after.inverse:
        yield f"inverse: {before.inverse or 'none'} → {after.inverse or 'none'}"
    for what, was, now, none in (
        ("subject types", before.subject_types, after.subject_types, "any"),
        ("object types", before.object_types, after.object_types, "any"),
        ("aliases", before.aliases, after.aliases, "none"),
    ):
        if set(was) != set(now):
            yield f"{what}: {_listed(was, none)} → {_listed(now, none)}"


def _composition_changes(old: Ontology, new: Ontology) -> Iterator[str]:
    was = {rule.name: rule for rule in old.compositions}
    now = {rule.name: rule for rule in new.compositions}
    for name in sorted({*was, *now}):
        if name not in now:
            yield f"composition {name} removed: {_rule(was[name])}"
        elif name not in was:
            yield f"composition {name} added: {_rule(now[name])}"
        elif was[name] != now[name]:
            yield f"composition {name}: {_rule(was[name])} → {_rule(now[name])}"


def _listed(values: tuple[str, ...], none: str) -> str:
    return ", ".join(sorted(values)) or none


def _rule(rule: Composition) -> str:
    return f"{rule.first} then {rule.then} gives {rule.gives}"
