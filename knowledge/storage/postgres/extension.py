"""The extension pgvector: had in the database, and found there by the roles that use it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import psycopg
from psycopg import sql

from knowledge.errors import DatabaseUnavailable
from knowledge.storage.postgres.migrations import SCHEMA

OLDEST_VECTOR: Final = (0, 7)
"""The first with sparse vectors."""

_CREATE: Final = "create extension if not exists vector"


def ensure_vector(connection: psycopg.Connection, roles: Iterable[str]) -> None:
    """Have pgvector, and let ``roles`` name its types and ours without a schema.

    An administrator may have put it into any schema. ``connection`` is the administrator's,
    in the product's database. Raises `DatabaseUnavailable` with what to do.
    """
    schema = _ensure_extension(connection)
    for role in roles:
        _ensure_usable(connection, schema, role)


def _ensure_extension(connection: psycopg.Connection) -> str:
    """The schema that pgvector is in."""
    installed = _installed(connection)
    if installed is None:
        _create(connection)
        installed = _installed(connection)
        assert installed is not None
    version, schema = installed
    if tuple(map(int, version.split(".")[:2])) < OLDEST_VECTOR:
        raise DatabaseUnavailable(
            f"the database {connection.info.dbname} has pgvector {version}, 0.7 is needed: upgrade"
            " the package, then run `alter extension vector update` in it"
        )
    return schema


def _installed(connection: psycopg.Connection) -> tuple[str, str] | None:
    """The extension's version and schema."""
    return connection.execute(
        "select extversion, nspname from pg_extension join pg_namespace n on n.oid = extnamespace"
        " where extname = 'vector'"
    ).fetchone()


def _create(connection: psycopg.Connection) -> None:
    try:
        connection.execute(_CREATE)
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile) as error:
        release = connection.info.server_version // 10_000
        raise DatabaseUnavailable(
            f"the PostgreSQL {release} server lacks the extension pgvector: install it there,"
            f" on Debian with `apt-get install postgresql-{release}-pgvector`"
        ) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise DatabaseUnavailable(
            "the database user of KNOWLEDGE_DATABASE_URL may not create extensions: have an"
            f" administrator run `create extension vector` in {connection.info.dbname}"
        ) from error


def _ensure_usable(connection: psycopg.Connection, schema: str, role: str) -> None:
    """A search path of the role in this database: no connection has to set it."""
    database = connection.info.dbname
    found = connection.execute(
        "select has_schema_privilege(%(role)s, %(schema)s, 'usage'),"
        " exists (select from pg_db_role_setting where setrole = %(role)s::regrole"
        "  and setdatabase = (select oid from pg_database where datname = %(database)s)"
        "  and format('search_path=%%I, %%I', %(ours)s::text, %(schema)s::text) = any(setconfig))",
        {"role": role, "schema": schema, "database": database, "ours": SCHEMA},
    ).fetchone()
    assert found is not None
    may_use, has_path = found
    names = dict(
        zip(
            ("role", "schema", "database", "ours"),
            map(sql.Identifier, (role, schema, database, SCHEMA)),
            strict=True,
        )
    )
    if not may_use:
        connection.execute(sql.SQL("grant usage on schema {schema} to {role}").format(**names))
    if not has_path:
        connection.execute(
            sql.SQL(
                "alter role {role} in database {database} set search_path = {ours}, {schema}"
            ).format(**names)
        )
