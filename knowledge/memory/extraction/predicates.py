"""How a verb, or a noun that says what something is to something, is written as a predicate."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from knowledge.graph.ontology.model import Ontology

_ROLES: Final = {  # X is the … of Y
    "owner": "OWNS",
    "maintainer": "MAINTAINS",
    "member": "MEMBER_OF",
    "part": "PART_OF",
    "lead": "LEADS",
    "leader": "LEADS",
    "head": "LEADS",
    "manager": "MANAGES",
    "dependency": "DEPENDENCY_OF",
    "customer": "CUSTOMER_OF",
    "expert": "EXPERT_IN",
    "successor": "REPLACES",
    "replacement": "REPLACES",
    "subclass": "INHERITS_FROM",
}
_HELD: Final = {  # the … of X is Y
    "owner": "OWNED_BY",
    "maintainer": "MAINTAINED_BY",
    "lead": "LED_BY",
    "leader": "LED_BY",
    "manager": "REPORTS_TO",
    "author": "WRITTEN_BY",
    "cause": "CAUSED_BY",
    "successor": "REPLACED_BY",
    "replacement": "REPLACED_BY",
    "stage": "HAS_LIFECYCLE_STAGE",
}
_IRREGULAR: Final = {"have": "HAS", "be": "IS", "do": "DOES", "go": "GOES"}
_NOT_A_LETTER: Final = re.compile(r"[^A-Z0-9]+")


def active(lemma: str, particles: Iterable[str], past: str, ontology: Ontology) -> tuple[str, bool]:
    """``depend`` and ``on``: DEPENDS_ON, and whether the ontology knows it.

    ``past`` is the verb as it stands in the past: the ontology names some so (DECIDED).
    """
    rest = tuple(particles)
    forms = (_third_person(lemma), lemma, past)
    return choose([_written((form, *rest)) for form in forms], ontology)


def passive(participle: str, particles: Iterable[str], ontology: Ontology) -> tuple[str, bool]:
    """``owned`` and ``by``: OWNED_BY, and whether the ontology knows it."""
    return choose([_written((participle, *particles))], ontology)


def role(noun: str, preposition: str, ontology: Ontology) -> tuple[str, bool]:
    """Of "X is the NOUN of Y", from X to Y."""
    if noun in _ROLES:
        return choose([_ROLES[noun]], ontology)
    return choose([_written((noun, preposition))], ontology)


def held(noun: str, phrase: str, ontology: Ontology) -> tuple[str, bool]:
    """Of "the PHRASE of X is Y", from X to Y; ``noun`` is the last word of the phrase."""
    if noun in _HELD:
        return choose([_HELD[noun]], ontology)
    return choose([_written(("HAS", phrase)), _written(("USES", phrase))], ontology)


def choose(candidates: list[str], ontology: Ontology) -> tuple[str, bool]:
    """The first that the ontology knows, under its canonical name; else the first."""
    for candidate in candidates:
        if ontology.find(candidate) is not None:
            return ontology.canonical(candidate), True
    return candidates[0], False


def _written(words: Iterable[str]) -> str:
    return _NOT_A_LETTER.sub("_", "_".join(words).upper()).strip("_")


def _third_person(lemma: str) -> str:
    if lemma in _IRREGULAR:
        return _IRREGULAR[lemma]
    if lemma.endswith(("s", "x", "z", "ch", "sh", "o")):
        return f"{lemma}es"
    if lemma.endswith("y") and lemma[-2:-1] not in "aeiou":
        return f"{lemma[:-1]}ies"
    return f"{lemma}s"
