"""The outbox: events leave with the transaction that made them true."""

from __future__ import annotations

from psycopg.types.json import Jsonb

from knowledge.model.event import OutboundEvent
from knowledge.storage.postgres.database import Transaction


def emit(connection: Transaction, event: OutboundEvent) -> None:
    """Put an event into the outbox, in the transaction that made it true."""
    connection.execute(
        "insert into outbox (tenant_id, event_id, topic, event_type, subject, payload, occurred_at)"
        " values (%s, %s, %s, %s, %s, %s, %s)",
        [
            event.tenant_id,
            event.event_id,
            event.topic,
            event.event_type,
            event.subject,
            Jsonb(event.payload),
            event.occurred_at,
        ],
    )
