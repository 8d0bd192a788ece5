"""Connections to PostgreSQL: one pool a role, the tenant set per transaction.

Every statement of the application role runs in a transaction that first sets
``knowledge.tenant``; row-level security shows nothing when it is empty. The search path
(our schema, and pgvector's) is a setting of the roles, made when the database is prepared.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final, LiteralString

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

from knowledge.errors import Busy, DatabaseUnavailable, InvalidInput, NoTenant

Params = Sequence[Any] | Mapping[str, Any]
Row = dict[str, Any]
Transaction = Connection[Row]
"""A connection inside `Database.tenant`: what is done with it happens together, or not at all."""

SET_TENANT: Final = "select set_config('knowledge.tenant', %s, true)"
_OPTIONS: Final = {
    "options": "-c timezone=UTC -c jit=off",
    "row_factory": dict_row,
    "connect_timeout": 5,
}


class Database:
    """Synchronous access, for Dagster, the command line and workers.

    Open one a process and close it; thread-safe. ``url`` decides the role.
    """

    def __init__(self, url: str, *, max_size: int = 4) -> None:
        self._pool: ConnectionPool[Connection[Row]] = ConnectionPool(
            url,
            kwargs=dict(_OPTIONS),
            min_size=0,
            max_size=max_size,
            open=True,
            timeout=10,
            # A server that was restarted meanwhile costs a round trip, not a failed step.
            check=ConnectionPool.check_connection,
        )

    def close(self) -> None:
        self._pool.close()

    @contextmanager
    def transaction(self) -> Iterator[Connection[Row]]:
        """A transaction without a tenant: only the owner role sees rows in it."""
        with translated(), self._pool.connection() as connection:
            yield connection

    @contextmanager
    def tenant(self, tenant_id: str) -> Iterator[Connection[Row]]:
        """A transaction in which only ``tenant_id``'s rows exist (for the application role).

        Raises `NoTenant` for an empty tenant, `DatabaseUnavailable`.
        """
        if not tenant_id:
            raise NoTenant()
        with self.transaction() as connection:
            connection.execute(SET_TENANT, [tenant_id])
            yield connection

    @contextmanager
    def session_lock(self, name: str) -> Iterator[bool]:
        """Try to be the only one on this server who holds ``name``; yields whether we are.

        Held by a connection of its own, so a process that is killed lets it go at once. A lost
        connection loses it too, unnoticed: what must not be done twice needs a fencing token.
        """
        with self.transaction() as connection:
            key = [f"knowledge {name}"]
            row = connection.execute(
                "select pg_try_advisory_lock(hashtextextended(%s, 0)) as held", key
            ).fetchone()
            connection.commit()
            is_held = bool(row and row["held"])
            try:
                yield is_held
            finally:
                if is_held and not connection.closed:
                    with suppress(psycopg.Error):
                        connection.execute(
                            "select pg_advisory_unlock(hashtextextended(%s, 0))", key
                        )


class AsyncDatabase:
    """Asynchronous access for the query service, as the application role."""

    def __init__(self, url: str, *, max_size: int = 8) -> None:
        self._pool: AsyncConnectionPool[AsyncConnection[Row]] = AsyncConnectionPool(
            url,
            kwargs={**_OPTIONS, "autocommit": True},
            min_size=1,
            max_size=max_size,
            open=False,
            timeout=1,  # half a request's deadline: the caller is told what is missing
            reconnect_timeout=5,  # then begin anew: the back-off would grow with the outage
        )

    async def open(self) -> None:
        """Start the pool; does not wait for the server, so that a service can start degraded."""
        await self._pool.open(wait=False)

    async def close(self) -> None:
        await self._pool.close()

    async def rows(
        self, tenant_id: str, *statements: tuple[LiteralString, Params]
    ) -> list[list[Row]]:
        """Run queries in one transaction of ``tenant_id`` and one round trip.

        Returns the rows of each statement, in order. The tenant setting is local to the
        transaction that a pipeline without explicit BEGIN forms.
        """
        if not tenant_id:
            raise NoTenant()
        async with self._connection() as connection:
            # Leaving the pipeline sends it off; fetching inside would cost a second round trip.
            async with _pipeline(connection):
                await connection.execute(SET_TENANT, [tenant_id])
                cursors = [await connection.execute(query, params) for query, params in statements]
            return [await cursor.fetchall() for cursor in cursors]

    async def execute(self, tenant_id: str, *statements: tuple[LiteralString, Params]) -> None:
        """Run statements that return nothing, in one transaction of ``tenant_id``."""
        if not tenant_id:
            raise NoTenant()
        async with self._connection() as connection, _pipeline(connection):
            await connection.execute(SET_TENANT, [tenant_id])
            for query, params in statements:
                await connection.execute(query, params)

    async def global_rows(self, query: LiteralString, params: Params = ()) -> list[Row]:
        """Run one statement without a tenant: for functions that need none."""
        async with self._connection() as connection:
            cursor = await connection.execute(query, params)
            return await cursor.fetchall()

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[AsyncConnection[Row]]:
        with translated():
            async with self._pool.connection() as connection:
                yield connection


@asynccontextmanager
async def _pipeline(connection: AsyncConnection[Row]) -> AsyncIterator[None]:
    """A pipeline whose connection is given up when it fails or is cancelled.

    The driver notes a statement as prepared when it is sent. Behind a failure the server skips
    it, and every later use on that connection would fail with "does not exist".
    """
    try:
        async with connection.pipeline():
            yield
    except BaseException:
        await connection.close()
        raise


@contextmanager
def translated() -> Iterator[None]:
    """Driver errors that mean "no server" become `DatabaseUnavailable`, refused values
    (a NUL character, a number out of range) `InvalidInput`."""
    try:
        yield
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
        raise Busy("another run is committing to this collection: try again") from error
    except (psycopg.OperationalError, PoolTimeout) as error:
        raise DatabaseUnavailable(f"PostgreSQL cannot be reached: {error}") from error
    except (psycopg.DataError, UnicodeEncodeError) as error:
        raise InvalidInput("PostgreSQL cannot store a value that was given") from error
