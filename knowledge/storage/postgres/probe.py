"""Questions a health check asks a PostgreSQL server; each opens and closes one connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import psycopg

from knowledge.errors import DatabaseUnavailable


def server_version(url: str, *, timeout_s: float = 2.0) -> str:
    """The server's version, e.g. ``18.4``. Raises `DatabaseUnavailable`."""
    with _connection(url, timeout_s) as connection:
        row = connection.execute("show server_version").fetchone()
    return str(row[0]).split()[0] if row else ""


def oldest_daemon_heartbeat(
    dagster_url: str, daemons: tuple[str, ...], *, timeout_s: float = 2.0
) -> datetime | None:
    """When the quietest of ``daemons`` last reported; None until each has reported once.

    Raises `DatabaseUnavailable`.
    """
    query = """
        select min("timestamp") from daemon_heartbeats
        where daemon_type = any(%s) having count(*) = %s
    """
    with _connection(dagster_url, timeout_s) as connection:
        if connection.execute("select to_regclass('daemon_heartbeats')").fetchone() == (None,):
            return None
        row = connection.execute(query, [list(daemons), len(daemons)]).fetchone()
    moment: datetime | None = row[0] if row else None
    return moment.replace(tzinfo=UTC) if moment else None


@contextmanager
def _connection(url: str, timeout_s: float) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    milliseconds = int(timeout_s * 1000)
    try:
        with psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=max(2, int(timeout_s)),  # libpq takes whole seconds, 2 at least
            options=f"-c statement_timeout={milliseconds}",
        ) as connection:
            yield connection
    except psycopg.Error as error:
        reason = str(error).strip().splitlines()[-1] if str(error).strip() else "no reason given"
        raise DatabaseUnavailable(f"PostgreSQL cannot be reached: {reason}") from error
