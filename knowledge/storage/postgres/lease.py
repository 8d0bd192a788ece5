"""One writer a collection: a lease row with an owner, an expiry and a fencing token."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from psycopg import Connection

from knowledge.errors import DatabaseUnavailable, LeaseHeld, LeaseLost
from knowledge.model.collection import Collection
from knowledge.storage.postgres.database import Database, Row


@dataclass(frozen=True, slots=True)
class Lease:
    """A held lease. ``fencing_token`` grows with every change of owner."""

    collection: Collection
    owner: str
    fencing_token: int


@contextmanager
def held(
    app: Database, collection: Collection, *, owner: str, ttl_s: float, wait_s: float
) -> Iterator[Lease]:
    """Hold the collection's lease, renewed in the background.

    The same ``owner`` may take it again (a run's next step); it then keeps its token. Leaving
    the block keeps the row until it expires or `release` is called, so that no other writer
    slips in between two steps of a run. Raises `LeaseHeld` after ``wait_s`` seconds.
    """
    lease = _acquire(app, collection, owner=owner, ttl_s=ttl_s, wait_s=wait_s)
    stop = threading.Event()
    beat = threading.Thread(target=_renew, args=(app, lease, ttl_s, stop), daemon=True)
    beat.start()
    try:
        yield lease
    except BaseException:
        stop.set()
        beat.join()
        release(app, lease)
        raise
    finally:
        stop.set()
        beat.join()


def release(app: Database, lease: Lease) -> None:
    """Let the next writer in; the token stays, so that it keeps growing."""
    with app.tenant(lease.collection.tenant_id) as connection:
        connection.execute(
            "update leases set expires_at = '-infinity', owner = ''"
            " where collection_id = %s and owner = %s and fencing_token = %s",
            [lease.collection.collection_id, lease.owner, lease.fencing_token],
        )


def release_owner(owner_db: Database, owner: str) -> None:
    """Release whatever ``owner`` (a run that ends) still holds. ``owner_db`` is the owner role's."""
    with owner_db.transaction() as connection:
        connection.execute(
            "update leases set expires_at = '-infinity', owner = '' where owner = %s", [owner]
        )


def require(connection: Connection[Row], lease: Lease) -> None:
    """Raise `LeaseLost` unless the lease is still ours; locks it until the transaction ends."""
    row = connection.execute(
        "select 1 from leases where collection_id = %s and owner = %s and fencing_token = %s"
        " and expires_at > now() for update",
        [lease.collection.collection_id, lease.owner, lease.fencing_token],
    ).fetchone()
    if row is None:
        raise LeaseLost(owner=lease.owner)


def _acquire(
    app: Database, collection: Collection, *, owner: str, ttl_s: float, wait_s: float
) -> Lease:
    deadline = time.monotonic() + wait_s
    while True:
        with app.tenant(collection.tenant_id) as connection:
            row = connection.execute(
                "insert into leases as l (collection_id, tenant_id, owner, fencing_token, expires_at)"
                " values (%(c)s, %(t)s, %(o)s, 1, now() + %(ttl)s * interval '1 second')"
                " on conflict (collection_id) do update set owner = excluded.owner,"
                " expires_at = excluded.expires_at,"
                " fencing_token = l.fencing_token + (l.owner <> excluded.owner)::int"
                " where l.owner = excluded.owner or l.expires_at <= now()"
                " returning fencing_token",
                {
                    "c": collection.collection_id,
                    "t": collection.tenant_id,
                    "o": owner,
                    "ttl": ttl_s,
                },
            ).fetchone()
        if row is not None:
            return Lease(collection, owner, int(row["fencing_token"]))
        if time.monotonic() >= deadline:
            raise LeaseHeld(
                f"another run is indexing {collection.partition}: wait for it and try again",
                partition=collection.partition,
            )
        time.sleep(0.2)


def _renew(app: Database, lease: Lease, ttl_s: float, stop: threading.Event) -> None:
    """Push the expiry forward until stopped; a lost database is left to the fencing check."""
    while not stop.wait(ttl_s / 3):
        try:
            with app.tenant(lease.collection.tenant_id) as connection:
                connection.execute(
                    "update leases set expires_at = now() + %s * interval '1 second'"
                    " where collection_id = %s and owner = %s and fencing_token = %s",
                    [ttl_s, lease.collection.collection_id, lease.owner, lease.fencing_token],
                )
        except DatabaseUnavailable:
            continue
