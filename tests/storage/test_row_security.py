"""Every tenant's rows are its own, whatever the application asks; and search stays fast for it."""

from __future__ import annotations

import uuid
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from knowledge.errors import NoTenant, VersionMismatch
from knowledge.runtime import Runtime
from knowledge.stack import postgres
from knowledge.storage.postgres import catalogue
from knowledge.storage.postgres.bootstrap import prepare_database
from knowledge.storage.postgres.database import Database
from tests.publication import collection_of, publish_documents

OURS = (
    "('(tenant_id = current_tenant())',"
    " '(tenant_id = ( SELECT current_tenant() AS current_tenant))')"
)
TENANT_TABLES = f"""
    select c.oid::regclass::text as name, c.relrowsecurity as secured,
           (select count(*) from pg_policy p where p.polrelid = c.oid
            and pg_get_expr(p.polqual, p.polrelid) in {OURS}
            and pg_get_expr(p.polwithcheck, p.polrelid) in {OURS}) as policies,
           -- A restrictive policy only takes rows away.
           (select count(*) from pg_policy p where p.polrelid = c.oid and p.polpermissive)
               as all_policies
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
    where c.relnamespace = 'knowledge'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f')
      and not a.attisdropped order by 1
"""


def _rows(database: Database, query: Any, *values: Any) -> list[dict[str, Any]]:
    with database.transaction() as connection:
        return connection.execute(query, values).fetchall()


def test_every_table_with_a_tenant_has_one_policy_and_it_is_the_tenants(runtime: Runtime) -> None:
    tables = _rows(runtime.owner, TENANT_TABLES)
    assert len(tables) > 15
    for table in tables:
        found = (table["secured"], table["policies"], table["all_policies"])
        assert found == (True, 1, 1), table["name"]


def test_tables_without_a_tenant_are_known_ones(runtime: Runtime) -> None:
    rows = _rows(
        runtime.owner,
        "select c.relname as name from pg_class c where c.relnamespace = 'knowledge'::regnamespace"
        " and c.relkind = 'r' and not exists (select from pg_attribute a"
        " where a.attrelid = c.oid and a.attname = 'tenant_id') order by 1",
    )
    names = [row["name"] for row in rows]
    assert names == ["alembic_version", "embedding_profiles", "scope_contracts"]


def test_the_application_role_owns_nothing_and_bypasses_nothing(runtime: Runtime) -> None:
    [role] = _rows(
        runtime.app,
        "select rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication"
        " from pg_roles where rolname = current_user",
    )
    assert not any(role.values())
    [owned] = _rows(
        runtime.app,
        "select count(*) as n from pg_class where relowner = current_user::regrole"
        " and relnamespace = 'knowledge'::regnamespace",
    )
    assert owned["n"] == 0
    [member] = _rows(
        runtime.app,
        "select count(*) as n from pg_auth_members where member = current_user::regrole",
    )
    assert member["n"] == 0


def test_without_a_tenant_the_application_sees_nothing(runtime: Runtime, tenant: str) -> None:
    publish_documents(runtime, collection_of(runtime, tenant), [{"id": "a", "text": "lease"}])
    for table in _rows(runtime.owner, TENANT_TABLES):
        query = f"select count(*) as n from {table['name']}"
        if table["name"] == "clients":
            query = "select count(client_id) as n from clients"
        assert _rows(runtime.app, query) == [{"n": 0}], table["name"]
    with pytest.raises(NoTenant), runtime.app.tenant(""):
        pass


def test_a_tenant_can_neither_read_nor_change_nor_forge_anothers_rows(
    runtime: Runtime, tenant: str
) -> None:
    publish_documents(runtime, collection_of(runtime, tenant), [{"id": "a", "text": "lease"}])
    other = f"{tenant}-eu"
    mine = collection_of(runtime, other)
    with runtime.app.tenant(other) as connection:
        for table in ("chunk_versions", "sources", "collections", "inbox", "index_revisions"):
            rows = connection.execute(f"select distinct tenant_id from {table}").fetchall()
            assert {row["tenant_id"] for row in rows} <= {other}
        changed = connection.execute("update sources set acl = null where tenant_id = %s", [tenant])
        assert changed.rowcount == 0
    for statement in (
        "insert into sources (tenant_id, collection_id, source_id, project_id)"
        " values (%(theirs)s, %(mine)s, 'x', 'p1')",
        "update collections set tenant_id = %(theirs)s where collection_id = %(mine)s",
    ):
        values = {"theirs": tenant, "mine": mine.collection_id}
        with pytest.raises(psycopg.errors.InsufficientPrivilege), runtime.app.tenant(other) as c:
            c.execute(statement, values)


@pytest.mark.parametrize(
    "statement",
    [
        "select secret_hash from clients",
        "insert into clients (client_id, tenant_id, secret_hash, projects, scopes)"
        " values ('x', 't', '', '{}', '{}')",
        "update clients set scopes = '{admin}'",
        "delete from chunk_versions",
        "delete from outbox",
        "update embedding_profiles set dimension = 1",
        "update alembic_version set version_num = '9999'",
        "drop table chunk_versions",
        "alter table chunk_versions disable row level security",
        "create table knowledge.mine (a int)",
        "create function current_tenant() returns text language sql as 'select 1'",
    ],
)
def test_the_application_may_not(runtime: Runtime, tenant: str, statement: str) -> None:
    with (
        pytest.raises(psycopg.errors.InsufficientPrivilege),
        runtime.app.tenant(tenant) as connection,
    ):
        connection.execute(statement)


def test_functions_of_the_owner_pin_their_search_path_and_are_not_public(runtime: Runtime) -> None:
    functions = _rows(
        runtime.owner,
        "select proname, prosecdef, proconfig,"
        " coalesce(array_to_string(proacl, ' '), '=X/') ~ '(^| )=X' as public"
        " from pg_proc where pronamespace = 'knowledge'::regnamespace",
    )
    assert {f["proname"] for f in functions if f["prosecdef"]} >= {
        "search_full_text", "search_metadata",
    }  # fmt: skip
    for function in functions:
        assert not function["public"], function["proname"]
        if function["prosecdef"]:
            assert "search_path=knowledge, pg_temp" in function["proconfig"], function["proname"]


@pytest.fixture(scope="module")
def large_collection(runtime: Runtime) -> uuid.UUID:
    """20,000 chunks of four tenants, vacuumed as a server does by itself."""
    first = uuid.UUID(int=0)
    for number in range(4):
        tenant = f"plans-{number}"
        collection = collection_of(runtime, tenant)
        first = collection.collection_id if number == 0 else first
        with runtime.owner.transaction() as connection:
            connection.execute(
                "insert into chunk_versions (object_id, tenant_id, collection_id, chunk_id,"
                " from_rev, acl_rev, snapshot_id, source_id, project_id, path, anchor, title, text,"
                " kind, content_hash, text_hash, words, title_words, terms)"
                " select gen_random_uuid(), %(t)s, %(c)s, gen_random_uuid(), 1, 1,"
                " gen_random_uuid(), 's1', 'p1', 'p' || n, '', '', 't', 'document', '', '', '1 x=1 ', '0 ',"
                " array['common', 'w' || n %% 1000] from generate_series(1, 5000) n",
                {"t": tenant, "c": collection.collection_id},
            )
            connection.execute(
                "insert into metadata_items (object_id, tenant_id, collection_id, terms)"
                " select object_id, tenant_id, collection_id, terms from chunk_versions"
                " where collection_id = %s",
                [collection.collection_id],
            )
    with psycopg.connect(runtime.urls.owner_url, autocommit=True) as connection:
        connection.execute("vacuum analyze knowledge.chunk_versions, knowledge.metadata_items")
    return first


@pytest.mark.parametrize(
    ("function", "coverage", "index", "table"),
    [
        ("search_full_text", (), "chunk_versions_terms", "chunk_versions"),
        ("search_metadata", (0.6,), "metadata_items_terms", "metadata_items"),
    ],
)
def test_search_uses_its_gin_index_under_the_application_role(
    runtime: Runtime,
    large_collection: uuid.UUID,
    function: str,
    coverage: tuple[float, ...],
    index: str,
    table: str,
) -> None:
    """The functions are opaque to EXPLAIN, so the scans of this very session are counted."""
    scans = "select pg_stat_get_xact_numscans(%s::regclass) as n"
    values = [large_collection, 1, "p1", ["s1"], [], ["w7"], [1.0], *coverage, 10]
    call = f"select count(*) as n from {function}({','.join(['%s'] * len(values))})"
    with runtime.app.tenant("plans-0") as connection:

        def counted(relation: str) -> int:
            row = connection.execute(scans, [relation]).fetchone()
            assert row is not None
            return int(row["n"])

        before = counted(index), counted(table)
        for _ in range(8):  # after five calls PostgreSQL may choose a generic plan
            assert connection.execute(call, values).fetchone() == {"n": 5}
        assert (counted(index), counted(table)) == (before[0] + 8, before[1])


def test_search_reads_the_tenant_from_the_setting_alone(
    runtime: Runtime, large_collection: uuid.UUID
) -> None:
    values = [large_collection, 1, "p1", ["s1"], [], ["w7"], [1.0], 10]
    call = f"select count(*) as n from search_full_text({','.join(['%s'] * 8)})"
    for tenant in ("plans-1", "nobody"):
        with runtime.app.tenant(tenant) as connection:
            assert connection.execute(call, values).fetchone() == {"n": 0}
    assert _rows(runtime.app, call, *values) == [{"n": 0}]


# --- migrations -------------------------------------------------------------------------

COLUMNS = """
    select table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable
           || ' ' || coalesce(column_default, '') as line
    from information_schema.columns where table_schema = 'knowledge'
    union all select indexdef from pg_indexes where schemaname = 'knowledge'
    union all select conrelid::regclass || ' ' || pg_get_constraintdef(oid) from pg_constraint
    where connamespace = 'knowledge'::regnamespace
    union all select pg_get_functiondef(oid) from pg_proc
    where pronamespace = 'knowledge'::regnamespace
    union all select polrelid::regclass || ' ' || pg_get_expr(polqual, polrelid) from pg_policy
    order by 1
"""


@pytest.fixture
def admin_url(runtime: Runtime) -> str:
    return postgres.admin_url(runtime.home)


def test_preparing_again_changes_nothing(runtime: Runtime, admin_url: str) -> None:
    before = _rows(runtime.owner, COLUMNS)
    assert len(before) > 150
    urls = prepare_database(admin_url, runtime.home.database_key)
    assert urls.app_url == runtime.urls.app_url
    assert _rows(runtime.owner, COLUMNS) == before


@pytest.mark.parametrize(
    ("version", "advice"), [("9999", "use a newer program"), ("0000", "run `knowledge migrate`")]
)
def test_a_schema_of_another_version_is_refused_and_left_as_it_is(
    runtime: Runtime, admin_url: str, version: str, advice: str
) -> None:
    other = make_url(admin_url).set(database=f"versions_{version}")
    url = other.render_as_string(hide_password=False)
    with psycopg.connect(admin_url, autocommit=True) as connection:
        connection.execute(f"create database versions_{version}")
    urls = prepare_database(url, "key")
    engine = create_engine(make_url(urls.owner_url).set(drivername="postgresql+psycopg"))
    try:
        with engine.begin() as opened:
            opened.execute(
                text("update knowledge.alembic_version set version_num = :v"), {"v": version}
            )
        with pytest.raises(VersionMismatch, match=advice):
            prepare_database(url, "key")
        with engine.begin() as opened:
            found = opened.execute(text("select version_num from knowledge.alembic_version"))
            assert found.scalar() == version
    finally:
        engine.dispose()


def test_a_revoked_client_is_not_known_to_the_token_endpoint(runtime: Runtime, tenant: str) -> None:
    client_id, _ = catalogue.create_client(
        runtime.owner, tenant, projects=["p1"], groups=[], scopes=[]
    )
    known = "select count(*) as n from client_for_token(%s)"
    assert _rows(runtime.app, known, client_id) == [{"n": 1}]
    catalogue.revoke_client(runtime.owner, client_id)
    assert _rows(runtime.app, known, client_id) == [{"n": 0}]
