"""pgvector in the database: made where it is missing, used where an administrator put it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import psycopg
import pytest

from knowledge.errors import DatabaseUnavailable
from knowledge.runtime import Runtime
from knowledge.stack import postgres
from knowledge.storage.postgres import extension
from knowledge.storage.postgres.bootstrap import prepare_database
from knowledge.storage.postgres.database import Database


@pytest.fixture
def new_database(runtime: Runtime) -> Iterator[Callable[..., str]]:
    """Makes a database in which these statements have run; gives its administrator's URL."""
    admin_url = postgres.admin_url(runtime.home)

    def make(*statements: str) -> str:
        name = f"extension_{uuid.uuid4().hex[:8]}"
        with psycopg.connect(admin_url, autocommit=True) as connection:
            connection.execute(f"create database {name}")
        with psycopg.connect(admin_url, dbname=name, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)
        return admin_url.replace("/postgres?", f"/{name}?")

    yield make


def test_an_extension_in_a_schema_of_the_administrators_is_used_there(
    new_database: Callable[..., str],
) -> None:
    url = new_database('create schema "Add-ons"', 'create extension vector schema "Add-ons"')
    for _ in range(2):
        urls = prepare_database(url, "key")
    database = Database(urls.app_url)
    try:
        with database.tenant("t") as connection:
            connection.execute(
                "insert into hybrid_items (tenant_id, generation, object_id, project_id, source_id,"
                " path, kind, tags, from_rev, to_rev, embedding, words) values ('t',"
                " gen_random_uuid(), gen_random_uuid(), 'p', 's', '', '', '{}', 1, 2,"
                " '[1,2]', '{1:1}/9')"
            )
            [row] = connection.execute(
                "select embedding <=> '[1,2]' as d from hybrid_items"
            ).fetchall()
    finally:
        database.close()
    assert row["d"] == pytest.approx(0)


def test_a_server_without_the_extension_is_told_of_with_the_package(
    new_database: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extension, "_CREATE", "create extension a_server_has_not")
    with pytest.raises(DatabaseUnavailable, match="apt-get install postgresql-18-pgvector"):
        prepare_database(new_database(), "key")


def test_an_extension_without_sparse_vectors_is_told_of_with_what_to_do(
    new_database: Callable[..., str],
) -> None:
    url = new_database(
        "create extension vector",
        "update pg_extension set extversion = '0.6.2' where extname = 'vector'",
    )
    with pytest.raises(DatabaseUnavailable, match=r"pgvector 0\.6\.2, 0\.7 is needed"):
        prepare_database(url, "key")
