"""Facts that a client sends: read under its permissions, and written once however often sent."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from knowledge.errors import Forbidden, InvalidFact
from knowledge.graph.asserting import Batch, Retraction, require_batch_size, write_batch
from knowledge.graph.ontology.model import Ontology
from knowledge.graph.querying import FactPlan
from knowledge.graph.reading import Teller, read_fact
from knowledge.graph.session import Writer
from knowledge.graph.wire import written_to_wire
from knowledge.model.fact import Statement
from knowledge.model.scope import ADMIN, Caller, Scope
from knowledge.storage.postgres.database import Database, Transaction
from knowledge.storage.postgres.facts.chunks import collection_ids, first_unreadable
from knowledge.storage.postgres.idempotency import RepeatableRequest, answer_once

OPERATION: Final = "assertFacts"


@dataclass(frozen=True, slots=True)
class Sender:
    """The client that sends, as it may act now. ``denied`` are the sources it may not read; the
    operator of the installation reads and writes everything."""

    scope: Scope
    ontology: Ontology
    denied: frozenset[str]
    is_admin: bool
    is_operator: bool = False

    @classmethod
    def of(cls, caller: Caller, plan: FactPlan) -> Sender:
        """The caller as its plan lets it act."""
        return cls(
            scope=plan.scope,
            ontology=plan.ontology,
            denied=frozenset(plan.facts.denied),
            is_admin=ADMIN in caller.scopes and ADMIN in plan.scopes,
        )

    @property
    def writer(self) -> Writer:
        acl = None if self.is_operator else self.scope.acl_entries
        return Writer(self.scope.principal, acl, self.denied, self.is_admin)


@dataclass(frozen=True, slots=True)
class Delivery:
    """Facts as they were sent, one JSON object each, and facts to retract.

    ``key`` names the delivery for its sender, who may send it again and gets the same answer.
    """

    facts: Sequence[object]
    retractions: Sequence[Retraction] = ()
    key: str | None = None

    def content_hash(self, project_id: str) -> bytes:
        """SHA-256 of what is sent, whatever the order of an object's fields."""
        retracted = [str(retraction.fact_id) for retraction in self.retractions]
        written = json.dumps([project_id, self.facts, retracted], sort_keys=True)
        return hashlib.sha256(written.encode()).digest()


def receive_facts(app: Database, sender: Sender, delivery: Delivery) -> dict[str, Any]:
    """Write a delivery, all or nothing; returns the wire form of what was written.

    Raises what `knowledge.graph.asserting.assert_facts` raises, `InvalidFact` with the place of
    the first fact that is not valid, `Forbidden` for ``verified`` from one who is no
    administrator, and `Conflict` for a key that came with other facts.
    """
    require_batch_size(len(delivery.facts) + len(delivery.retractions))
    scope = sender.scope
    with app.tenant(scope.tenant_id) as connection:

        def write() -> dict[str, Any]:
            batch = Batch(_statements(connection, sender, delivery.facts), delivery.retractions)
            written = write_batch(
                connection,
                scope.tenant_id,
                scope.project_id,
                batch,
                writer=sender.writer,
                ontology=sender.ontology,
            )
            return written_to_wire(written)

        if delivery.key is None:
            return write()
        request = RepeatableRequest(
            tenant_id=scope.tenant_id,
            principal=scope.principal,
            operation=OPERATION,
            key=delivery.key,
            content_hash=delivery.content_hash(scope.project_id),
        )
        return answer_once(connection, request, write)


def _statements(
    connection: Transaction, sender: Sender, facts: Sequence[object]
) -> list[Statement]:
    """The facts as statements that the sender may make."""
    collections: dict[str, uuid.UUID] = {}

    def find_collection(name: str) -> uuid.UUID | None:
        if not collections:
            collections.update(collection_ids(connection, sender.scope.project_id))
        return collections.get(name)

    teller = Teller(sender.scope.principal, sender.ontology, collections=find_collection)
    statements = []
    for place, given in enumerate(facts):
        try:
            statement = read_fact(given, teller)
        except InvalidFact as error:
            raise InvalidFact(f"facts[{place}]: {error.message}") from error
        if statement.verified and not sender.is_admin:
            raise Forbidden(f"facts[{place}]: verified: true needs the scope {ADMIN}")
        statements.append(statement)
    _require_readable_chunks(connection, sender, statements)
    return statements


def _require_readable_chunks(
    connection: Transaction, sender: Sender, statements: Sequence[Statement]
) -> None:
    named = [
        (place, said.collection_id, said.chunk_id)
        for place, said in enumerate(statements)
        if said.collection_id is not None and said.chunk_id is not None
    ]
    scope = sender.scope
    hidden = first_unreadable(
        connection,
        scope.project_id,
        scope.acl_entries,
        [(collection, chunk) for _, collection, chunk in named],
    )
    if hidden is not None:
        place, _, chunk = named[hidden]
        raise InvalidFact(f"facts[{place}]: there is no chunk {chunk}")
