"""Small ontology documents whose lines a test can count."""

from __future__ import annotations

from knowledge.graph.ontology.defaults import default_ontology
from knowledge.graph.ontology.model import Ontology
from knowledge.graph.ontology.parsing import parse_ontology

HEAD = "name: acme\nversion: 1\n"
EXTENDING = HEAD + "extends: default\n"


def parse(text: str) -> Ontology:
    return parse_ontology(text, where="acme.yaml", base=default_ontology())


def predicates(*lines: str) -> str:
    """A document whose predicates start on line 4."""
    return HEAD + "predicates:\n" + "".join(f"  {line}\n" for line in lines)


def compositions(*rules: str, given: tuple[str, ...] = ("A: {}", "B: {}", "C: {}")) -> str:
    """A document whose compositions start on line 5 after the ``given`` predicates."""
    return predicates(*given) + "compositions:\n" + "".join(f"  - {rule}\n" for rule in rules)
