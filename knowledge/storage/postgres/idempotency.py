"""Requests that may be sent again: the answer is kept with what the request did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb

from knowledge.errors import Conflict
from knowledge.storage.postgres.database import AsyncDatabase, Transaction


@dataclass(frozen=True, slots=True)
class RepeatableRequest:
    """A request with the key its sender gave it. ``content_hash`` is the SHA-256 of what it asks.

    A key belongs to its principal and operation: two clients may use the same one.
    """

    tenant_id: str
    principal: str
    operation: str
    key: str
    content_hash: bytes


def answer_once(
    connection: Transaction, request: RepeatableRequest, act: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """What ``act`` returns, or returned when this request was first sent; kept in this transaction.

    Whoever sends the same key meanwhile waits. Raises `Conflict` for a key that came with another
    request, and what ``act`` raises: then nothing is kept, and the key is free.
    """
    place = (request.tenant_id, request.principal, request.operation, request.key)
    connection.execute(
        "select pg_advisory_xact_lock(hashtextextended(%s, 0))",
        ["\x1f".join(("idempotency key", *place))],
    )
    kept = connection.execute(
        "select request_hash, answer from idempotency_keys"
        " where tenant_id = %s and principal = %s and operation = %s and key = %s",
        place,
    ).fetchone()
    if kept is not None:
        if bytes(kept["request_hash"]) != request.content_hash:
            raise Conflict("this Idempotency-Key came with another request: use a new one")
        return dict(kept["answer"])
    answer = act()
    connection.execute(
        "insert into idempotency_keys"
        " (tenant_id, principal, operation, key, request_hash, answer)"
        " values (%s, %s, %s, %s, %s, %s)",
        [*place, request.content_hash, Jsonb(answer)],
    )
    return answer


async def delete_expired_keys(database: AsyncDatabase, retention_h: int) -> int:
    """Forget the answers (of every tenant) older than the retention. Returns how many."""
    [row] = await database.global_rows("select delete_expired_keys(%s) as deleted", [retention_h])
    return int(row["deleted"])
