"""An ontology as it is written: one YAML document, on its own or on top of another ontology."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from knowledge.errors import InvalidFact
from knowledge.graph.ontology.model import Composition, Ontology, Predicate
from knowledge.graph.ontology.soundness import flaws
from knowledge.graph.ontology.yaml_nodes import Node, compose
from knowledge.model.fact import Domain, require_domain, require_predicate, require_type
from knowledge.model.identity import SLUG

MAX_PREDICATES: Final = 2_000
MAX_COMPOSITIONS: Final = 2_000
_RULE_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_PREDICATE_KEYS: Final = (
    "domain",
    "subject_types",
    "object_types",
    "functional",
    "transitive",
    "inverse",
    "aliases",
)
_COMPOSITION_KEYS: Final = ("name", "first", "then", "gives")

T = TypeVar("T")


def parse_ontology(text: str, *, where: str, base: Ontology | None = None) -> Ontology:
    """The ontology that ``text`` describes, complete and sound.

    ``where`` is the file named in errors. ``base`` is the ontology a document may extend by
    its name; a predicate or composition of the document replaces the one of the same name.
    Raises `InvalidOntology`, one line ``FILE:LINE: what is wrong and what to do``.
    """
    root = compose(text, where)
    document = _read_document(root, base)
    predicates = _limited(document.predicates, MAX_PREDICATES, "predicates", root)
    rules = _limited(document.compositions, MAX_COMPOSITIONS, "compositions", root)
    for flaw in flaws(predicates, rules.values()):
        place = next((place for place in flaw.places if place in document.places), None)
        node = root if place is None else document.places[place]
        message = flaw.message
        if place is not None and place[0] in document.removed:
            message = f"{place[0]} cannot be removed: {message}"
        raise node.error(message)
    return Ontology(
        name=document.name,
        version=document.version,
        closed=document.closed,
        predicates=predicates,
        compositions=tuple(rules.values()),
    )


@dataclass(slots=True)
class _Document:
    """A document as far as it was read, on top of what it extends.

    ``places`` has the node of each (predicate or composition, key) of the document itself;
    the key "" is its name.
    """

    name: str
    version: int
    closed: bool = False
    predicates: dict[str, Predicate] = field(default_factory=dict)
    compositions: dict[str, Composition] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    places: dict[tuple[str, str], Node] = field(default_factory=dict)


def _read_document(root: Node, base: Ontology | None) -> _Document:
    keys = root.mapping(
        "the ontology",
        required=("name", "version"),
        optional=("extends", "closed", "remove", "predicates", "compositions"),
    )
    document = _Document(
        name=_read_name(keys["name"], base), version=keys["version"].positive("version")
    )
    if "extends" in keys:
        extended = _read_extended(keys["extends"], base)
        document.closed = extended.closed
        document.predicates = dict(extended.predicates)
        document.compositions = {rule.name: rule for rule in extended.compositions}
    if "closed" in keys:
        document.closed = keys["closed"].boolean("closed")
    if "remove" in keys:
        if "extends" not in keys:
            raise keys["remove"].error("remove takes from what the ontology extends: it has none")
        _read_removals(keys["remove"], document)
    if "predicates" in keys:
        _read_predicates(keys["predicates"], document)
    if "compositions" in keys:
        _read_compositions(keys["compositions"], document)
    if not document.predicates:
        raise root.error("the ontology has no predicate: give at least one under `predicates`")
    return document


def _read_name(node: Node, base: Ontology | None) -> str:
    name = node.string("name")
    if not SLUG.fullmatch(name):
        message = f"name {name[:80]!r} is not valid: use 1 to 62 of a-z, 0-9 and '-'"
        raise node.error(f"{message}, starting with a letter or digit")
    if base is not None and name == base.name:
        raise node.error(
            f"the name {name} belongs to the ontology that can be extended: choose another"
        )
    return name


def _read_extended(node: Node, base: Ontology | None) -> Ontology:
    name = node.string("extends")
    if base is None:
        raise node.error("there is no ontology to extend here: leave `extends` out")
    if name != base.name:
        raise node.error(f"there is no ontology {name[:80]!r} to extend; valid: {base.name}")
    return base


def _read_removals(node: Node, document: _Document) -> None:
    for entry in node.sequence("remove"):
        name = entry.string("an entry of remove")
        if name in document.removed:
            raise entry.error(f"{name} is removed twice: remove one of the two entries")
        if document.predicates.pop(name, None) is None and (
            document.compositions.pop(name, None) is None
        ):
            message = f"there is no predicate or composition {name[:80]!r} to remove"
            raise entry.error(f"{message}: correct the name or drop the entry")
        document.removed.add(name)
        document.places[name, ""] = entry


def _read_predicates(node: Node, document: _Document) -> None:
    for key, body in node.entries("predicates"):
        name = _checked(key, "a predicate", require_predicate)
        _require_kept(key, name, document)
        what = f"predicate {name}"
        keys = body.mapping(what, required=(), optional=_PREDICATE_KEYS)
        document.places[name, ""] = key
        document.places.update({(name, each): value for each, value in keys.items()})
        document.predicates[name] = Predicate(
            name=name,
            domain=_read_domain(keys.get("domain")),
            subject_types=_read_types(keys.get("subject_types"), "subject_types"),
            object_types=_read_types(keys.get("object_types"), "object_types"),
            functional="functional" in keys and keys["functional"].boolean("functional"),
            transitive="transitive" in keys and keys["transitive"].boolean("transitive"),
            inverse=_checked(keys["inverse"], "inverse", require_predicate)
            if "inverse" in keys
            else None,
            aliases=_read_each(keys.get("aliases"), "aliases", require_predicate),
        )


def _read_compositions(node: Node, document: _Document) -> None:
    seen: set[str] = set()
    for entry in node.sequence("compositions"):
        keys = entry.mapping("a composition", required=_COMPOSITION_KEYS, optional=())
        name = keys["name"].string("name")
        if not _RULE_NAME.fullmatch(name):
            message = f"composition name {name[:80]!r} is not lower_snake_case"
            raise keys["name"].error(f"{message} of at most 64 characters")
        if name in seen:
            raise keys["name"].error(f"composition {name} is given twice: rename one of the two")
        seen.add(name)
        _require_kept(keys["name"], name, document)
        document.places[name, ""] = keys["name"]
        document.places.update({(name, each): value for each, value in keys.items()})
        first, then, gives = (
            _checked(keys[each], each, require_predicate) for each in _COMPOSITION_KEYS[1:]
        )
        document.compositions[name] = Composition(name, first, then, gives)


def _require_kept(node: Node, name: str, document: _Document) -> None:
    if name in document.removed:
        message = f"{name} is both removed and given: drop it from `remove` to replace it"
        raise node.error(message)


def _read_domain(node: Node | None) -> Domain | None:
    return None if node is None else _checked(node, "domain", require_domain)


def _read_types(node: Node | None, what: str) -> tuple[str, ...]:
    return _read_each(node, what, lambda value: require_type(value, f"an entry of {what}"))


def _read_each(node: Node | None, what: str, check: Callable[[str], str]) -> tuple[str, ...]:
    values: list[str] = []
    for entry in () if node is None else node.sequence(what):
        value = _checked(entry, f"an entry of {what}", check)
        if value in values:
            raise entry.error(f"{value} is listed twice in {what}: remove one of the two")
        values.append(value)
    return tuple(values)


def _checked(node: Node, what: str, check: Callable[[str], T]) -> T:
    """What ``check`` makes of the string: facts and ontologies follow the same rules."""
    value = node.string(what)
    try:
        return check(value)
    except InvalidFact as error:
        raise node.error(error.message) from error


def _limited(values: dict[str, T], limit: int, what: str, root: Node) -> dict[str, T]:
    if len(values) > limit:
        message = f"the ontology has {len(values):,} {what}; at most {limit:,} are allowed"
        raise root.error(message)
    return values
