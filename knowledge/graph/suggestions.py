"""Inferred facts that wait for somebody: confirmed or rejected; and inference over a whole project."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Final

from knowledge.errors import Conflict, NotFound
from knowledge.graph.inferring import PRINCIPAL
from knowledge.graph.ontologies import ontology_in_force
from knowledge.graph.session import FactSession, Writer
from knowledge.model.fact import SUGGESTED, Closing
from knowledge.storage.postgres.database import Database, Row
from knowledge.storage.postgres.facts import ending, inferred
from knowledge.storage.postgres.facts.writing import scope_key

BATCH: Final = 100
MAX_CONCLUSIONS: Final = 200_000
"""So many as a batch of premises and the largest hubs have together."""


@dataclass(frozen=True, slots=True)
class InferredAnew:
    """``looked_at`` premises, and how many suggestions are new."""

    looked_at: int
    suggested: int


def confirm(
    app: Database, tenant_id: str, project_id: str, suggestion: uuid.UUID, writer: Writer
) -> None:
    """Serve the suggestion like any fact from now on; it stays labelled as inferred. Again: nothing.

    Raises `NotFound` for one the writer does not see, `Conflict` for one that was rejected or withdrawn.
    """
    with app.tenant(tenant_id) as connection:
        session = FactSession.begin(
            connection, tenant_id, project_id, ontology_in_force(connection), writer
        )
        found = _find(session, suggestion)
        if found["closed_at"] is not None:
            raise Conflict(f"suggestion {suggestion} is {found['closing']}: it cannot be confirmed")
        if found["suggestion"] == SUGGESTED:
            session.confirm(suggestion)
            session.finish()


def reject(
    app: Database, tenant_id: str, project_id: str, suggestion: uuid.UUID, writer: Writer
) -> None:
    """Never suggest this again, nor the same read from the object, and withdraw what rests on it.
    Again: nothing. Raises as `confirm` does."""
    with app.tenant(tenant_id) as connection:
        ontology = ontology_in_force(connection)
        session = FactSession.begin(connection, tenant_id, project_id, ontology, writer)
        found = _find(session, suggestion)
        if found["closing"] == Closing.REJECTED:
            return
        if found["closed_at"] is not None or found["suggestion"] != SUGGESTED:
            state = found["closing"] or found["suggestion"]
            raise Conflict(f"suggestion {suggestion} is {state}: it cannot be rejected")
        mirrored = inferred.mirrored(
            connection, suggestion, ontology.rules_of(found["predicate"]).inverse
        )
        session.end([suggestion, *mirrored], Closing.REJECTED, writer.principal)
        session.finish()


def infer_anew(app: Database, tenant_id: str, project_id: str) -> InferredAnew:
    """Apply the rules in force to every fact of the project, in batches: after a new ontology, or
    where a batch could have inferred more than its bound."""
    looked_at, suggested = 0, 0
    after: uuid.UUID | None = None
    while True:
        with app.tenant(tenant_id) as connection:
            ontology = ontology_in_force(connection)
            session = FactSession.begin(
                connection, tenant_id, project_id, ontology, Writer(PRINCIPAL)
            )
            firing = [name for name in ontology.predicates if ontology.rules_of(name)]
            page = inferred.premises_after(
                connection, scope_key(tenant_id, project_id), firing, after, BATCH
            )
            session.reconsider(page)
            session.finish(max_conclusions=MAX_CONCLUSIONS)
        looked_at += len(page)
        suggested += session.written.suggested
        if session.written.is_inference_cut and session.written.suggested:
            continue  # the same premises give more
        if len(page) < BATCH:
            return InferredAnew(looked_at, suggested)
        after = page[-1]


def _find(session: FactSession, suggestion: uuid.UUID) -> Row:
    """The inferred fact, if the writer sees it."""
    writer = session.writer
    found = ending.find_for_writing(
        session.connection, session.project_id, suggestion, acl=writer.acl, denied=writer.denied
    )
    if found is None or found["rule"] is None:
        raise NotFound(f"there is no suggestion {suggestion}")
    return found
