"""Facts told, corrected and retracted: planned as one batch, written in one transaction."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from knowledge.crash_points import reached
from knowledge.errors import Forbidden, InvalidFact, NotFound
from knowledge.graph.ontology.model import Ontology
from knowledge.graph.ontology.violations import violations
from knowledge.graph.session import FactSession, Writer, Written
from knowledge.model.fact import (
    MAX_FACTS,
    Statement,
    fact_id,
    telling_id,
    timeline_id,
)
from knowledge.storage.postgres.database import Database, Transaction
from knowledge.storage.postgres.facts.writing import Telling


@dataclass(frozen=True, slots=True)
class Retraction:
    """A fact that is to be believed no longer."""

    fact_id: uuid.UUID


@dataclass(frozen=True, slots=True)
class Batch:
    """What is written together or not at all."""

    statements: Sequence[Statement] = ()
    retractions: Sequence[Retraction] = ()


def assert_facts(
    app: Database,
    tenant_id: str,
    project_id: str,
    batch: Batch,
    *,
    writer: Writer,
    ontology: Ontology,
) -> Written:
    """Write a batch. The same batch again changes nothing.

    Raises `InvalidFact` for more than `MAX_FACTS`, `NotFound` for a fact or source that the
    writer does not see, `Forbidden` where a lower tier would close a higher one.
    """
    with app.tenant(tenant_id) as connection:
        written = write_batch(
            connection, tenant_id, project_id, batch, writer=writer, ontology=ontology
        )
    reached("facts.committed")
    return written


def write_batch(
    connection: Transaction,
    tenant_id: str,
    project_id: str,
    batch: Batch,
    *,
    writer: Writer,
    ontology: Ontology,
) -> Written:
    """`assert_facts` as part of a transaction that its caller ends."""
    require_batch_size(len(batch.statements) + len(batch.retractions))
    tellings = [telling_of(tenant_id, project_id, said, ontology) for said in batch.statements]
    _require_speakable(writer, batch.statements)
    session = FactSession.begin(connection, tenant_id, project_id, ontology, writer)
    session.tell(tellings)
    reached("facts.told")
    session.written.violations = _against(ontology, batch.statements)
    for retraction in batch.retractions:
        session.retract(retraction.fact_id)
    session.finish()
    reached("facts.written")
    return session.written


def require_batch_size(facts: int) -> None:
    if facts > MAX_FACTS:
        raise InvalidFact(
            f"{facts:,} facts in one request: at most {MAX_FACTS:,} are allowed, send them in several"
        )


def telling_of(tenant_id: str, project_id: str, said: Statement, ontology: Ontology) -> Telling:
    """The statement with the ids that it has in this project."""
    known = ontology.find(said.predicate)
    is_functional = known is not None and known.functional
    fact = fact_id(tenant_id, project_id, said, functional=is_functional)
    return Telling(
        telling_id=telling_id(fact, said),
        fact_id=fact,
        statement=said,
        timeline=timeline_id(tenant_id, project_id, said)
        if is_functional and not said.is_empty
        else None,
    )


def _require_speakable(writer: Writer, statements: Iterable[Statement]) -> None:
    """Nobody tells what it could not read: it would change, and learn of, what it does not see."""
    for said in statements:
        if said.provenance.source_id in writer.denied:
            raise NotFound(f"there is no source {said.provenance.source_id}")
        if writer.acl is not None and said.acl is not None and set(said.acl).isdisjoint(writer.acl):
            raise Forbidden("an acl must admit who tells the fact: add user: or a group of yours")


def _against(ontology: Ontology, statements: Iterable[Statement]) -> Counter[str]:
    kinds = Counter(
        (said.predicate, said.domain, said.subject_type, said.object_type) for said in statements
    )
    found: Counter[str] = Counter()
    for (predicate, domain, subject_type, object_type), times in kinds.items():
        for line in violations(
            ontology,
            predicate=predicate,
            domain=domain,
            subject_type=subject_type,
            object_type=object_type,
        ):
            found[line] += times
    return found
