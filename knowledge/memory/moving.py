"""A memory as lines of JSON: what is believed in it, with who told it, out of one and into another."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from knowledge.errors import InvalidFact
from knowledge.graph.reading import Teller, read_fact
from knowledge.graph.receiving import Sender
from knowledge.memory.tellings import statement_of
from knowledge.memory.writing import Upserted, redacted_names, write_statements
from knowledge.model.fact import Domain, Statement
from knowledge.retrieval.wire import time_to_wire
from knowledge.storage.postgres.database import Database
from knowledge.storage.postgres.facts import memory_care

FIELDS: Final = frozenset(
    (
        "factId",
        "subject",
        "subjectType",
        "predicate",
        "object",
        "objectType",
        "domain",
        "validFrom",
        "validTo",
        "observedAt",
        "confidence",
        "trustTier",
        "verified",
        "client",
        "model",
        "sessionId",
        "principal",
        "ofSession",
    )
)
"""Of one line, in wire names; all but subject, predicate, object, client and sessionId may be absent.
``factId`` is the fact's in the memory that it was exported from."""


def export_memory(app: Database, sender: Sender, namespace: str) -> Iterator[dict[str, Any]]:
    """Everything that is believed, facts of one session too, in the order it was recorded."""
    scope = sender.scope
    with app.tenant(scope.tenant_id) as connection:
        rows = memory_care.tellings_of(connection, scope.tenant_id, scope.project_id, namespace)
    for row in rows:
        yield {"factId": str(row["fact_id"]), **_line(statement_of(row, namespace))}


def read_line(given: object, namespace: str, sender: Sender) -> Statement:
    """One exported line as a statement of its own teller, without the id that it had.

    Raises `InvalidFact`.
    """
    line, _ = redacted_names(given, FIELDS)
    line.pop("factId", None)
    principal = line.pop("principal", None) or sender.scope.principal
    is_of_session = line.pop("ofSession", False)
    if not isinstance(principal, str) or not isinstance(is_of_session, bool):
        raise InvalidFact("principal is a text, and ofSession true or false")
    teller = Teller(principal, sender.ontology, Domain.AGENT_EXPERIENCE, writes_memory=True)
    statement = read_fact({**line, "namespace": namespace}, teller)
    session = statement.provenance.session_id if is_of_session else None
    return replace(statement, session_scope=session)


def import_memory(
    app: Database, sender: Sender, namespace: str, statements: Sequence[Statement], first: int = 0
) -> Upserted:
    """Write lines as part of a memory, as far as there is room; the same lines again change nothing.

    ``first`` is the place of the first one, for what is refused.
    """
    result, scope = Upserted(namespace), sender.scope
    with app.tenant(scope.tenant_id) as connection:
        # What was told without saying when carries the time now, and would be another telling.
        held = {
            _written(statement_of(row, namespace)): row["fact_id"]
            for row in memory_care.tellings_of(
                connection, scope.tenant_id, scope.project_id, namespace
            )
        }
        new = []
        for place, said in enumerate(statements, start=first):
            if (known := held.get(_written(said))) is not None:
                result.facts.append((place, known, "unchanged"))
            else:
                new.append((place, said))
        write_statements(connection, sender, new, result)
    return result


def _written(said: Statement) -> str:
    return json.dumps(_line(said))


def _line(said: Statement) -> dict[str, Any]:
    told = said.provenance
    values: dict[str, Any] = {
        "subject": said.subject,
        "subjectType": said.subject_type,
        "predicate": said.predicate,
        "object": said.object,
        "objectType": said.object_type,
        "domain": said.domain.value,
        "validFrom": said.valid_from and said.valid_from.text,
        "validTo": said.valid_to and said.valid_to.text,
        "observedAt": _time(said.observed_at),
        "confidence": said.confidence,
        "trustTier": said.tier.value,
        "verified": said.verified or None,
        "client": told.client,
        "model": told.model,
        "sessionId": told.session_id,
        "principal": told.principal,
        "ofSession": True if said.session_scope is not None else None,
    }
    return {name: value for name, value in values.items() if value is not None}


def _time(at: datetime | None) -> str | None:
    return None if at is None else time_to_wire(at)
