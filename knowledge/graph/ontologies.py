"""The ontology in force for a tenant: its own newest version, else the packaged default."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Final

from knowledge.graph.ontology.defaults import default_ontology
from knowledge.graph.ontology.differences import differences
from knowledge.graph.ontology.model import Ontology
from knowledge.graph.ontology.parsing import parse_ontology
from knowledge.graph.ontology.violations import violations
from knowledge.graph.ontology.writing import format_ontology
from knowledge.model.fact import Domain
from knowledge.storage.postgres.database import AsyncDatabase, Database, Transaction
from knowledge.storage.postgres.facts import ontologies as stored

MAX_KEPT: Final = 256


class Ontologies:
    """Parsed ontologies by tenant and version; a version never changes, so they are kept."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int], Ontology] = OrderedDict()

    async def of(self, database: AsyncDatabase, tenant_id: str, version: int | None) -> Ontology:
        """The tenant's ontology of this version; None is the default."""
        if version is None:
            return default_ontology()
        key = tenant_id, version
        if key not in self._kept:
            document = await stored.document(database, tenant_id, version)
            self._kept[key] = _parse(document)
            while len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]


def ontology_in_force(connection: Transaction) -> Ontology:
    """That of the transaction's tenant."""
    newest = stored.newest(connection)
    return default_ontology() if newest is None else _parse(newest["document"])


def tenant_ontology(app: Database, tenant_id: str) -> Ontology:
    with app.tenant(tenant_id) as connection:
        return ontology_in_force(connection)


@dataclass(frozen=True, slots=True)
class Revalidated:
    """What a new version changes, and what it says against facts that are believed: counts by line."""

    ontology: Ontology
    changes: tuple[str, ...]
    against: Counter[str]


def read_ontology(text: str, *, where: str) -> Ontology:
    """A tenant's document, which may extend the default. Raises `InvalidOntology`."""
    return parse_ontology(text, where=where, base=default_ontology())


def revalidate(app: Database, tenant_id: str, ontology: Ontology) -> Revalidated:
    """What ``ontology`` would change; nothing is written."""
    changes = differences(tenant_ontology(app, tenant_id), ontology)
    against: Counter[str] = Counter()
    for kind in stored.kinds_of_facts(app, tenant_id):
        for line in violations(
            ontology,
            predicate=kind["predicate"],
            domain=Domain(kind["domain"]),
            subject_type=kind["subject_type"],
            object_type=kind["object_type"],
        ):
            against[line] += kind["facts"]
    return Revalidated(ontology, changes, against)


def put_in_force(app: Database, tenant_id: str, ontology: Ontology, *, by: str) -> Revalidated:
    """Put a new version in force, for what is asserted from now on; facts stay as they are.

    Raises `Conflict` unless its version is greater than that in force.
    """
    found = revalidate(app, tenant_id, ontology)
    # Complete, so that it keeps its meaning when the default changes.
    stored.put_in_force(
        app, tenant_id, version=ontology.version, document=format_ontology(ontology), by=by
    )
    return found


def _parse(document: str) -> Ontology:
    return parse_ontology(document, where="the stored ontology")
