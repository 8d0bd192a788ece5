"""Prepare a PostgreSQL server: databases, roles, schema. The only place that uses the admin URL."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote

import psycopg
from psycopg import conninfo, sql

from knowledge.errors import DatabaseUnavailable, InvalidConfiguration
from knowledge.storage.postgres.extension import ensure_vector
from knowledge.storage.postgres.migrations import migrate


@dataclass(frozen=True, slots=True)
class DatabaseUrls:
    """One URL a role: the owner migrates and schedules, the app serves, Dagster keeps its runs.

    ``found_schema`` is the schema's version before this call, None for a database just made.
    """

    owner_url: str
    app_url: str
    dagster_url: str
    found_schema: str | None = None


def prepare_database(admin_url: str, key: str, *, upgrade: bool = False) -> DatabaseUrls:
    """Create what is missing; safe to call by several processes at once.

    An older schema is brought up to date only with ``upgrade``, else refused.

    ``admin_url`` must be allowed to create roles and databases; a database named ``postgres``
    in it means a database ``knowledge`` beside it. Passwords derive from ``key``, so that every
    process of an installation knows them. Raises `DatabaseUnavailable`, `VersionMismatch`,
    `InvalidConfiguration`.
    """
    _, name, roles, databases = _names(admin_url)
    try:
        with psycopg.connect(admin_url, autocommit=True) as connection:
            connection.execute("select pg_advisory_lock(7211969)")
            for role in roles.values():
                _ensure_role(connection, role, _password(key, role))
            _ensure_database(connection, name, roles["owner"])
            _ensure_database(connection, databases["dagster"], roles["dagster"])
            with psycopg.connect(admin_url, dbname=name, autocommit=True) as inside:
                ensure_vector(inside, (roles["owner"], roles["app"]))
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(f"PostgreSQL cannot be reached: {error}") from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise DatabaseUnavailable(
            f"the database user of KNOWLEDGE_DATABASE_URL may not create roles or databases: {error}"
        ) from error
    urls = database_urls(admin_url, key)
    found = migrate(urls.owner_url, app_role=roles["app"], upgrade=upgrade)
    return replace(urls, found_schema=found)


def database_urls(admin_url: str, key: str) -> DatabaseUrls:
    """The URLs of a server that `prepare_database` has prepared; connects to nothing."""
    parts, _, roles, databases = _names(admin_url)
    return DatabaseUrls(
        *(
            _url(parts, databases[role], roles[role], _password(key, roles[role]))
            for role in ("owner", "app", "dagster")
        )
    )


def _names(
    admin_url: str,
) -> tuple[Mapping[str, object], str, Mapping[str, str], Mapping[str, str]]:
    """The URL's parts, the name of the database, and by role the names of role and database."""
    try:
        parts = conninfo.conninfo_to_dict(admin_url)
    except psycopg.ProgrammingError as error:
        raise InvalidConfiguration("KNOWLEDGE_DATABASE_URL is not a PostgreSQL URL") from error
    name = str(parts.get("dbname") or "postgres")
    name = "knowledge" if name == "postgres" else name
    roles = {role: f"{name}_{role}" for role in ("owner", "app", "dagster")}
    return parts, name, roles, {"owner": name, "app": name, "dagster": f"{name}_dagster"}


def _password(key: str, role: str) -> str:
    return hmac.new(key.encode(), role.encode(), hashlib.sha256).hexdigest()


def _ensure_role(connection: psycopg.Connection, role: str, password: str) -> None:
    exists = connection.execute("select 1 from pg_roles where rolname = %s", [role]).fetchone()
    verb = sql.SQL("alter" if exists else "create")
    connection.execute(
        sql.SQL("{} role {} login nosuperuser nobypassrls password {}").format(
            verb, sql.Identifier(role), sql.Literal(password)
        )
    )


def _ensure_database(connection: psycopg.Connection, name: str, owner: str) -> None:
    exists = connection.execute("select 1 from pg_database where datname = %s", [name]).fetchone()
    if not exists:
        # Membership lets a role that is no superuser hand the database over.
        if not connection.execute(
            "select rolsuper from pg_roles where rolname = current_user"
        ).fetchone()[0]:  # type: ignore[index]
            connection.execute(sql.SQL("grant {} to current_user").format(sql.Identifier(owner)))
        connection.execute(
            sql.SQL("create database {} owner {}").format(
                sql.Identifier(name), sql.Identifier(owner)
            )
        )
    else:
        connection.execute(
            sql.SQL("grant create, connect on database {} to {}").format(
                sql.Identifier(name), sql.Identifier(owner)
            )
        )


def _url(parts: Mapping[str, object], database: str, role: str, password: str) -> str:
    """A URL (not a key=value string): SQLAlchemy and Dagster take nothing else."""
    host = str(parts.get("host") or "")
    extra = {k: v for k, v in parts.items() if k in ("sslmode", "sslrootcert")}
    if host.startswith("/"):
        netloc, extra = "", {"host": host, **extra}
    else:
        netloc = f"{host or '127.0.0.1'}:{parts.get('port') or 5432}"
    if host.startswith("/") and parts.get("port"):
        extra["port"] = parts["port"]
    query = "&".join(f"{k}={quote(str(v), safe='/')}" for k, v in extra.items())
    return f"postgresql://{role}:{password}@{netloc}/{database}" + (f"?{query}" if query else "")
