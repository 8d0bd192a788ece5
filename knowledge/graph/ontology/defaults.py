"""The ontology that comes with the program."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from knowledge.graph.ontology.model import Ontology
from knowledge.graph.ontology.parsing import parse_ontology

_FILE = "default.yaml"


@cache
def default_ontology() -> Ontology:
    """The packaged ontology, open, named ``default``: in force where a tenant has none."""
    text = files("knowledge.graph.ontology").joinpath(_FILE).read_text(encoding="utf-8")
    return parse_ontology(text, where=_FILE)
