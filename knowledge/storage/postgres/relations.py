"""One collection as named relations that a SELECT may read, and nothing else: for checks."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg import Connection, RawCursor, sql
from psycopg.rows import tuple_row

from knowledge.errors import InvalidQuery, NoTenant
from knowledge.model.collection import Collection
from knowledge.storage.postgres.database import SET_TENANT, Database, Row

TIMEOUT_S: Final = 60
"""How long one SELECT may take."""

_VERSION: Final = (
    "object_id, chunk_id, from_rev, to_rev, acl_rev, snapshot_id, source_id, project_id, path,"
    " anchor, title, text, kind, language, tags, metadata, line_start, line_end, acl, updated_at,"
    " content_hash, text_hash"
)
RELATIONS: Final[dict[str, str]] = {
    "collection": (
        "select collection_id, slug, project_id, embedding_profile, head_rev, {serving}"
        " as serving_rev, open_chunks, collected_rev, created_at from {table} where collection_id = {collection}"
    ),
    "chunks": (
        f"select {_VERSION} from {{table}} where collection_id = {{collection}}"
        " and from_rev <= {serving} and {serving} < to_rev"
    ),
    "chunk_versions": f"select {_VERSION} from {{table}} where collection_id = {{collection}}",
    "sources": (
        "select source_id, project_id, acl, trust_tier, origin, deleted_at, created_at"
        " from {table} where collection_id = {collection}"
    ),
    "source_versions": (
        "select source_id, revision, source_version, snapshot_id from {table}"
        " where collection_id = {collection}"
    ),
    "snapshots": (
        "select snapshot_id, mode, chunk_count, committed_rev, created_at from {table}"
        " where collection_id = {collection}"
    ),
    "inbox": (
        "select sequence, event_type, state, attempts, next_attempt_at, error, revision,"
        " received_at, settled_at from {table} where collection_id = {collection}"
    ),
    "index_revisions": (
        "select index_revision_id, kind, revision, embedding_profile_version, vector_profile,"
        " state, item_count, generation_id, error, built_at, retired_at, collected_at from {table}"
        " where collection_id = {collection}"
    ),
    "generations": (
        "select generation_id, backend, class_name, embedding_profile, created_rev, applied_rev,"
        " state, items, acl_rev, rebuild_id, created_at from {table}"
        " where collection_id = {collection}"
    ),
    "rebuilds": (
        "select rebuild_id, reason, embedding_profile, state, requested_at, finished_at, attempts,"
        " revision, error from {table} where collection_id = {collection}"
    ),
    "metadata_items": "select object_id, terms from {table} where collection_id = {collection}",
    "term_statistics": (
        "select from_rev, documents, average_length, average_title_length from {table}"
        " where collection_id = {collection}"
    ),
    "vectors": (
        "select profile, text_hash, part from {table} where profile in (select embedding_profile"
        " from knowledge.generations where collection_id = {collection}"
        " and state in ('building', 'serving'))"
    ),
}
"""Relation -> its SELECT. ``chunks`` are those visible at the serving revision, ``vectors`` the
texts of the whole tenant that have a vector of a profile the collection's indexes use."""

_FORBIDDEN: Final = re.compile(
    r"(?i)\bknowledge\"?\s*\.|\bset_config\b|\b\w+_to_xml\w*|\bts_(stat|rewrite)\b|\bpg_\w*lock\w*|\bU&"
)
"""What would reach beyond the relations: the schema itself, the setting that the tenant is read
from, functions that run SQL from a string, locks, and spellings that could hide one of these."""

_TABLES: Final = {"collection": "collections", "chunks": "chunk_versions"}
_MESSAGE_IS_SAFE: Final = ("25", "42")
"""Classes of SQLSTATE whose messages speak of the SQL: not allowed here, not valid. The others
quote the value that could not be processed."""


class SelectRelations:
    """Named SELECTs as relations, in one read-only transaction of the application role."""

    def __init__(self, connection: Connection[Row], selects: Mapping[str, str]) -> None:
        self._connection = connection
        self._definitions = ",\n".join(
            f"{sql.Identifier(name).as_string(connection)} as not materialized ({select})"
            for name, select in selects.items()
        )

    def rows(self, select: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of one SELECT over the relations, ``parameters`` bound to ``$1``, ``$2``, ….

        ``select`` may not start with a WITH of its own. Raises `InvalidQuery` for SQL that cannot
        run, is not one SELECT, or takes longer than `TIMEOUT_S`; its message quotes no data.
        """
        if found := _FORBIDDEN.search(select):
            raise InvalidQuery(f"a check may not name {found[0]}: only the documented relations")
        statement = f"with {self._definitions}\n{select}"
        try:
            # Rolled back: no SELECT leaves a setting, or a failure, to the next one.
            with (
                self._connection.transaction(force_rollback=True),
                RawCursor(self._connection, row_factory=tuple_row) as cursor,
            ):
                # Binary asks for the protocol that takes a single statement.
                cursor.execute(statement, parameters, binary=True)
                return cursor.fetchall()
        except psycopg.Error as error:
            if self._connection.broken:
                raise
            raise InvalidQuery(_reason(error)) from error


@contextmanager
def open_relations(app: Database, collection: Collection) -> Iterator[SelectRelations]:
    """Open `RELATIONS` of one collection, all at one point in time.

    Raises `NoTenant`, `DatabaseUnavailable`.
    """
    with read_only(app, collection.tenant_id) as connection:
        yield SelectRelations(connection, _selects(connection, collection.collection_id))


@contextmanager
def open_selects(
    app: Database, tenant_id: str, selects: Mapping[str, str]
) -> Iterator[SelectRelations]:
    """Open relations of the caller's own: name -> trusted SELECT, tables named with their schema."""
    with read_only(app, tenant_id) as connection:
        yield SelectRelations(connection, selects)


@contextmanager
def read_only(app: Database, tenant_id: str) -> Iterator[Connection[Row]]:
    """A transaction that sees one point in time, in which tables are named with their schema.

    Raises `NoTenant`, `DatabaseUnavailable`.
    """
    if not tenant_id:
        raise NoTenant()
    with app.transaction() as connection:
        connection.execute("set transaction isolation level repeatable read, read only")
        connection.execute(SET_TENANT, [tenant_id])
        # Only what a relation defines can be named without its schema. Tables that were just
        # filled have no statistics yet, and a nested loop over them would not end.
        connection.execute(
            "select set_config('search_path', 'pg_catalog', true),"
            " set_config('enable_nestloop', 'off', true),"
            " set_config('statement_timeout', %s, true)",
            [f"{TIMEOUT_S * 1000:.0f}"],
        )
        yield connection


def _selects(connection: Connection[Row], collection_id: uuid.UUID) -> dict[str, str]:
    row = connection.execute(
        "select coalesce(min(revision), 0) as revision from knowledge.index_revisions"
        " where collection_id = %s and state in ('Ready', 'Rebuilding', 'Degraded')",
        [collection_id],
    ).fetchone()
    assert row is not None
    return {
        name: select.format(
            table=f"knowledge.{_TABLES.get(name, name)}",
            collection=f"'{collection_id}'::uuid",
            serving=int(row["revision"]),
        )
        for name, select in RELATIONS.items()
    }


def _reason(error: psycopg.Error) -> str:
    if isinstance(error, psycopg.errors.QueryCanceled):
        return f"QueryCanceled: not done after {TIMEOUT_S} s"
    if (error.sqlstate or "")[:2] in _MESSAGE_IS_SAFE:
        return f"{type(error).__name__}: {error.diag.message_primary}"
    return f"{type(error).__name__} (the message may quote data and is not shown)"
