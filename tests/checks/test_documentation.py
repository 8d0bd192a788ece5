"""The page on checks says what is true."""

from __future__ import annotations

import re
from pathlib import Path

from dbt_like_checks.kinds import KINDS
from dbt_like_checks.parsing import parse_models
from dbt_like_checks.singular import parse_singular
from knowledge.indexing.rebuild_requests import request_rebuild
from knowledge.runtime import Runtime
from knowledge.storage.postgres.relations import RELATIONS, open_relations
from knowledge.storage.snapshots import CHUNK_SCHEMA
from orchestration.checking import SUITES
from orchestration.relations import (
    PARQUET_RELATIONS,
    embedding_sources,
    index_sources,
    open_sources,
)
from tests.publication import collection_of, publish_documents

PAGE = (Path(__file__).parents[2] / "docs" / "checks.md").read_text()
NAMES = re.compile(r"\b[a-z]+(?:_[a-z0-9]+)*\b")


def _documented(heading: str) -> dict[str, set[str]]:
    """Relation -> the words of its line in the table below a heading."""
    section = PAGE.split(f"## {heading}")[1].split("\n## ")[0]
    lines = re.findall(r"^\| `(\w+)` \| (.*) \|$", section, flags=re.MULTILINE)
    return {name: set(NAMES.findall(text)) for name, text in lines}


def _block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)
    return str(found)


def test_the_examples_are_valid() -> None:
    assert len(parse_models(_block("yaml"), "checks.yml")) == 2
    assert parse_singular(_block("sql"), "example", "example.sql").id_columns == ("chunk_id",)


def test_every_suite_and_kind_is_listed() -> None:
    for name in (*SUITES, *KINDS):
        assert f"| `{name}" in PAGE


def test_the_relations_on_postgresql_have_the_columns_that_are_listed(
    runtime: Runtime, tenant: str
) -> None:
    collection = collection_of(runtime, tenant, profile="minilm@1")
    publish_documents(runtime, collection, [{"id": "a", "text": "the red gate"}])
    request_rebuild(
        runtime.app, collection, profile="minilm@1", reason="requested", requested_by="test"
    )
    documented = _documented("Relations on PostgreSQL")
    assert documented.keys() == RELATIONS.keys()
    with open_relations(runtime.app, collection) as relations:
        for name in RELATIONS:
            ((row,),) = relations.rows(f"select to_jsonb(r) from {name} r limit 1")
            listed = documented["chunk_versions" if name == "chunks" else name]
            assert row.keys() <= listed, name


def test_the_relations_on_parquet_have_the_columns_that_are_listed(
    runtime: Runtime, tenant: str
) -> None:
    collection = collection_of(runtime, tenant, profile="minilm@1")
    publish_documents(runtime, collection, [{"id": "a", "text": "the red gate"}])
    documented = _documented("Relations on Parquet")
    assert set(CHUNK_SCHEMA.names) <= documented["chunks"]
    sources = [make(runtime, collection, whole=True) for make in (embedding_sources, index_sources)]
    for source, names in zip(sources, PARQUET_RELATIONS.values(), strict=True):
        assert source is not None
        with open_sources(source) as relations:
            for name in names & documented.keys():
                columns = relations.connection.table(name).columns
                assert set(columns) <= documented[name], name
    undocumented = frozenset().union(*PARQUET_RELATIONS.values()) - documented.keys()
    assert undocumented == {"needed_texts"}
