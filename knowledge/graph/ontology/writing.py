"""An ontology written out as a document that stands alone."""

from __future__ import annotations

from typing import Any

import yaml

from knowledge.graph.ontology.model import Ontology, Predicate


def format_ontology(ontology: Ontology) -> str:
    """YAML that `parse_ontology` reads back as an equal ontology, with nothing to extend.

    What is stored in this form keeps its meaning when the ontology it once extended changes.
    """
    document: dict[str, Any] = {
        "name": ontology.name,
        "version": ontology.version,
        "closed": ontology.closed,
        "predicates": {each.name: _body(each) for each in ontology.predicates.values()},
    }
    if ontology.compositions:
        document["compositions"] = [
            {"name": rule.name, "first": rule.first, "then": rule.then, "gives": rule.gives}
            for rule in ontology.compositions
        ]
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=100)


def _body(predicate: Predicate) -> dict[str, Any]:
    body: dict[str, Any] = {
        "domain": predicate.domain and str(predicate.domain),
        "subject_types": list(predicate.subject_types),
        "object_types": list(predicate.object_types),
        "functional": predicate.functional,
        "transitive": predicate.transitive,
        "inverse": predicate.inverse,
        "aliases": list(predicate.aliases),
    }
    return {key: value for key, value in body.items() if value}


class _Dumper(yaml.SafeDumper):
    """Writes equal values out: the parser takes no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
