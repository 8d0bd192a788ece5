"""Facts of a memory looked after: shared with every session, verified by a person, forgotten.

Nothing here raises a tier: a fact that is promoted or verified is as trusted as it was told.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from knowledge.crash_points import reached
from knowledge.errors import Forbidden, InvalidInput, NotFound
from knowledge.graph.asserting import telling_of
from knowledge.graph.receiving import Sender
from knowledge.graph.session import FactSession
from knowledge.memory.tellings import statement_of
from knowledge.model.fact import Closing, name_key
from knowledge.retrieval.wire import scope_to_wire, time_to_wire
from knowledge.storage.postgres.database import Database, Row, Transaction
from knowledge.storage.postgres.facts import memories, memory_care

Asked = Literal["facts", "entity", "session", "everything"]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which facts of a memory are meant: these, those with a name, those of a session, or all.

    Of a session: to promote, those that it alone may recall; to forget, those told in it. Exactly
    one is given.
    """

    fact_ids: tuple[uuid.UUID, ...] = ()
    entity: str | None = None
    session: str | None = None
    everything: bool = False

    def __post_init__(self) -> None:
        given = (self.fact_ids, self.entity, self.session, self.everything)
        if sum(map(bool, given)) != 1:
            raise InvalidInput(
                "say what is meant: factIds, entity, sessionId or everything, one of them"
            )

    @property
    def asked(self) -> Asked:
        if self.fact_ids:
            return "facts"
        if self.entity is not None:
            return "entity"
        return "session" if self.session is not None else "everything"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was forgotten: how much in which store, never what it said."""

    receipt_id: uuid.UUID
    counts: dict[str, int]
    forgotten_at: datetime

    def to_wire(self) -> dict[str, Any]:
        return {
            "receiptId": str(self.receipt_id),
            "counts": self.counts,
            "forgottenAt": time_to_wire(self.forgotten_at),
        }


def promote(app: Database, sender: Sender, namespace: str, chosen: Chosen) -> dict[str, Any]:
    """Share facts of one session with every session: they are told anew as shared, by who told
    them, and the ones of the session end.

    Raises `NotFound` for a fact that is no believed one of this memory and of one session,
    `Forbidden` for another's.
    """
    scope = sender.scope
    with app.tenant(scope.tenant_id) as connection:
        session = _begin(connection, sender)
        rows = [
            row for row in _believed(connection, sender, namespace, chosen) if row["session_scope"]
        ]
        if missing := set(chosen.fact_ids) - {row["fact_id"] for row in rows}:
            raise NotFound(f"there is no fact {min(missing)} of one session in this memory")
        _require_own(sender, rows)
        said = [replace(statement_of(row, namespace), session_scope=None) for row in rows]
        tellings = [
            telling_of(scope.tenant_id, scope.project_id, each, sender.ontology) for each in said
        ]
        session.tell(tellings)
        for row, telling in zip(rows, tellings, strict=True):
            session.end([row["fact_id"]], Closing.PROMOTED, str(telling.fact_id))
        session.finish()
        memories.note_written(connection, scope.tenant_id, scope.project_id, namespace, session.now)
    return {
        "namespace": namespace,
        "promoted": [
            {"factId": str(row["fact_id"]), "as": str(telling.fact_id)}
            for row, telling in zip(rows, tellings, strict=True)
        ],
        "scope": scope_to_wire(scope),
    }


def verify(
    app: Database, sender: Sender, namespace: str, fact_ids: Sequence[uuid.UUID]
) -> dict[str, Any]:
    """A person says that these facts are right; they stay as told, marked as verified by whom.

    Raises `Forbidden` from one who is no administrator, `NotFound`.
    """
    if not sender.is_admin:
        raise Forbidden("only an administrator verifies facts")
    scope = sender.scope
    with app.tenant(scope.tenant_id) as connection:
        session = _begin(connection, sender)
        rows = _believed(connection, sender, namespace, Chosen(tuple(fact_ids)))
        if missing := set(fact_ids) - {row["fact_id"] for row in rows}:
            raise NotFound(f"there is no fact {min(missing)} in this memory")
        verified = memory_care.verify(
            connection,
            [row["telling_id"] for row in rows],
            at=session.now,
            by=scope.principal,
        )
        session.finish()
    return {
        "namespace": namespace,
        "verified": verified,
        "unchanged": len(rows) - verified,
        "verifiedBy": scope.principal,
        "scope": scope_to_wire(scope),
    }


def forget(app: Database, sender: Sender, namespace: str, chosen: Chosen) -> Receipt:
    """Take facts, with all that was ever told of them, out of every store, all at once or not at all.

    Raises `NotFound` where nothing is meant, and `Forbidden` for another's facts from one who is
    no administrator.
    """
    scope, receipt_id = sender.scope, uuid.uuid4()
    with app.tenant(scope.tenant_id) as connection:
        session = _begin(connection, sender)
        rows, kept = _to_forget(connection, sender, namespace, chosen)
        if not rows and not chosen.everything:
            raise NotFound(_nothing(namespace, kept))
        _require_own(sender, rows)
        ids = list(dict.fromkeys(row["fact_id"] for row in rows))
        ids += memory_care.promoted_into(
            connection, scope.tenant_id, scope.project_id, namespace, ids
        )
        session.end(ids, Closing.RETRACTED, scope.principal)
        session.finish()
        counts = memory_care.erase(connection, scope.project_id, namespace, ids)
        counts["toldElsewhere"] = kept
        at = memory_care.note_erased(
            connection,
            scope.tenant_id,
            scope.project_id,
            namespace,
            receipt_id=receipt_id,
            asked=chosen.asked,
            counts=counts,
            by=scope.principal,
        )
        reached("memory.erased")
    reached("memory.forgotten")
    return Receipt(receipt_id, counts, at)


def _to_forget(
    connection: Transaction, sender: Sender, namespace: str, chosen: Chosen
) -> tuple[list[Row], int]:
    """Tellings of the facts that are meant. Of a session: of those that were told in it and in no
    other, with how many are left because they were."""
    if chosen.session is None:
        return _all(connection, sender, namespace, chosen), 0
    scope = sender.scope
    only, kept = memory_care.told_in_session(
        connection, scope.tenant_id, scope.project_id, namespace, chosen.session
    )
    found = _all(connection, sender, namespace, Chosen(tuple(only))) if only else []
    return found, kept


def _nothing(namespace: str, kept: int) -> str:
    if kept:
        return f"every one of the {kept} facts of that session was told in another as well"
    return f"nothing in the memory {namespace} is meant by this"


def _begin(connection: Transaction, sender: Sender) -> FactSession:
    scope = sender.scope
    return FactSession.begin(
        connection, scope.tenant_id, scope.project_id, sender.ontology, sender.writer
    )


def _believed(connection: Transaction, sender: Sender, namespace: str, chosen: Chosen) -> list[Row]:
    return [row for row in _all(connection, sender, namespace, chosen) if row["closed_at"] is None]


def _all(connection: Transaction, sender: Sender, namespace: str, chosen: Chosen) -> list[Row]:
    """Every telling that is meant and that the sender may see, ended ones too."""
    scope = sender.scope
    rows = memory_care.tellings_of(
        connection,
        scope.tenant_id,
        scope.project_id,
        namespace,
        fact_ids=chosen.fact_ids or None,
        session=chosen.session,
        key=None if chosen.entity is None else name_key(chosen.entity),
        believed=False,
    )
    return [row for row in rows if _is_seen(sender, row)]


def _is_seen(sender: Sender, row: Row) -> bool:
    writer = sender.writer
    return writer.acl is None or (
        (row["acl"] is None or not set(row["acl"]).isdisjoint(writer.acl))
        and row["source_id"] not in writer.denied
    )


def _require_own(sender: Sender, rows: Sequence[Row]) -> None:
    if sender.is_admin or sender.writer.acl is None:
        return
    for row in rows:
        if row["principal"] != sender.scope.principal:
            raise Forbidden(
                f"fact {row['fact_id']} was told by another: only an administrator may do this"
            )
