"""What a SELECT can reach in PostgreSQL: one collection, of one tenant, and nothing to change."""

from __future__ import annotations

import pytest

from knowledge.errors import InvalidQuery, NoTenant
from knowledge.model.collection import Collection
from knowledge.runtime import Runtime
from knowledge.storage.postgres import relations
from knowledge.storage.postgres.relations import RELATIONS, open_relations, open_selects
from tests.publication import collection_of, publish_documents

DOCUMENTS = [{"id": "a", "text": "the red gate"}, {"id": "b", "text": "opening hours"}]


@pytest.fixture
def collection(runtime: Runtime, tenant: str) -> Collection:
    made = collection_of(runtime, tenant)
    publish_documents(runtime, made, DOCUMENTS)
    return runtime.collection(tenant, made.slug)


def test_every_relation_can_be_read_and_shows_this_collection_alone(
    runtime: Runtime, collection: Collection
) -> None:
    other = collection_of(runtime, collection.tenant_id, "other")
    publish_documents(runtime, other, [{"id": "c", "text": "lost luggage"}])
    with open_relations(runtime.app, collection) as opened:
        counts = {name: opened.rows(f"select count(*) from {name}")[0][0] for name in RELATIONS}
    expected = {"collection": 1, "chunks": 2, "chunk_versions": 2, "sources": 1, "snapshots": 1}
    assert expected.items() <= counts.items()
    assert counts["metadata_items"] == 2
    assert counts["index_revisions"] == counts["generations"] == 2


def test_chunks_are_those_visible_at_the_serving_revision(
    runtime: Runtime, collection: Collection
) -> None:
    publish_documents(runtime, collection, [{"id": "a", "text": "the blue gate"}])
    with open_relations(runtime.app, collection) as opened:
        assert opened.rows("select serving_rev from collection") == [(2,)]
        assert opened.rows("select text from chunks") == [("the blue gate",)]
        assert opened.rows("select count(*) from chunk_versions") == [(3,)]


@pytest.mark.parametrize(
    "select",
    [
        "select text from knowledge.chunk_versions",
        'select text from "knowledge".chunk_versions',
        """select text from U&"know\\006cedge".chunk_versions""",
        "select set_config('a.b', 'x', true)",
        "select \"set_config\"('a.b', 'x', true)",
        "select query_to_xml('select 1', true, true, '')",
        "select ts_stat('select 1')",
        "select pg_advisory_lock(1)",
    ],
)
def test_what_reaches_beyond_the_relations_is_refused(
    runtime: Runtime, collection: Collection, select: str
) -> None:
    with (
        open_relations(runtime.app, collection) as opened,
        pytest.raises(InvalidQuery, match="a check may not name"),
    ):
        opened.rows(select)


def test_relations_without_a_tenant_are_refused(runtime: Runtime) -> None:
    with pytest.raises(NoTenant), open_selects(runtime.app, "", {}):
        pass


@pytest.mark.parametrize(
    ("select", "reason"),
    [
        ("select count(*) from clients", "UndefinedTable"),
        ("select secret_hash from knowledge.clients", "may not name knowledge"),
        ("select lo_create(0)", "read-only transaction"),
        ("select 1; commit; delete from chunks", "multiple commands"),
        ("select nextval('knowledge.inbox_sequence_seq')", "may not name knowledge"),
        ("select text::int from chunks", "the message may quote data and is not shown"),
    ],
)
def test_what_is_refused_says_why_and_the_next_select_still_runs(
    runtime: Runtime, collection: Collection, select: str, reason: str
) -> None:
    with open_relations(runtime.app, collection) as opened:
        with pytest.raises(InvalidQuery, match=reason) as raised:
            opened.rows(select)
        assert "gate" not in raised.value.message
        assert opened.rows("select count(*) from chunks") == [(2,)]


def test_a_select_that_takes_too_long_is_stopped(
    runtime: Runtime, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relations, "TIMEOUT_S", 0.05)
    with open_relations(runtime.app, collection) as opened:
        with pytest.raises(InvalidQuery, match=r"not done after 0.05 s"):
            opened.rows("select count(*) from generate_series(1, 1000000000)")
        assert opened.rows("select count(*) from chunks") == [(2,)]
