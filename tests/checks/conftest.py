"""Both engines under one contract, a dict of factories; and a collection to be checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import pyarrow as pa
import pytest
from psycopg import sql

from dbt_like_checks import CheckOutcome, Relations, Status, open_parquet, run_checks
from dbt_like_checks.parsing import parse_models
from knowledge.model.collection import Collection
from knowledge.runtime import Runtime
from knowledge.storage.postgres.relations import open_selects
from orchestration.checking import Looked
from orchestration.relations import PostgresRelations
from tests.publication import collection_of, publish_documents

Tables = Mapping[str, pa.Table]
OpenTables = Callable[[Tables], AbstractContextManager[Relations]]
RunYaml = Callable[..., list[CheckOutcome]]
_TYPES: Final = {
    "string": "text",
    "null": "text",
    "int64": "bigint",
    "timestamp[us]": "timestamptz",
    "timestamp[us, tz=UTC]": "timestamptz",
}


def _duckdb(_request: pytest.FixtureRequest) -> OpenTables:
    return lambda tables: open_parquet({}, tables=tables)


def _postgres(request: pytest.FixtureRequest) -> OpenTables:
    runtime: Runtime = request.getfixturevalue("runtime")
    tenant: str = request.getfixturevalue("tenant")

    @contextmanager
    def opened(tables: Tables) -> Iterator[Relations]:
        selects = {name: _select(table) for name, table in tables.items()}
        with open_selects(runtime.app, tenant, selects) as relations:
            yield PostgresRelations(relations)

    return opened


ENGINES: Final[dict[str, Callable[[pytest.FixtureRequest], OpenTables]]] = {
    "duckdb": _duckdb,
    "postgres": _postgres,
}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def open_tables(request: pytest.FixtureRequest, engine: str) -> OpenTables:
    """Opens tables as the relations of an engine."""
    return ENGINES[engine](request)


@pytest.fixture
def run_yaml(open_tables: OpenTables) -> RunYaml:
    """Runs the checks of a YAML text on relations given as tables or lists of rows."""

    def run(text: str, **relations: pa.Table | list[dict[str, Any]]) -> list[CheckOutcome]:
        tables = {
            name: rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows)
            for name, rows in relations.items()
        }
        with open_tables(tables) as opened:
            return run_checks(parse_models(text, "checks.yml"), opened)

    return run


DOCUMENTS: Final = [{"id": str(n), "text": f"page {n} of the handbook"} for n in range(6)]


@pytest.fixture
def collection(runtime: Runtime, tenant: str) -> Collection:
    """A collection with vectors at revision 2: one document was changed, so one row is dead."""
    made = collection_of(runtime, tenant, profile="minilm@1")
    publish_documents(runtime, made, DOCUMENTS)
    changed = {"id": "0", "text": "page 0, changed"}
    publish_documents(runtime, made, [changed], mode="delta")
    return runtime.collection(tenant, made.slug)


def bad(looked: Sequence[Looked]) -> dict[str, Status]:
    """The status of every check that did not pass."""
    return {
        seen.outcome.check.name: seen.outcome.status
        for seen in looked
        if seen.outcome.status is not Status.PASS
    }


def _select(table: pa.Table) -> str:
    """A SELECT that returns the table's rows."""
    columns = [
        (sql.Identifier(field.name).as_string(), _TYPES[str(field.type)]) for field in table.schema
    ]
    nothing = ", ".join(f"null::{type_} as {name}" for name, type_ in columns)
    selects = [f"select {nothing} where false"]
    for row in table.to_pylist():
        cells = [sql.Literal(value).as_string() for value in row.values()]
        selects.append(
            "select "
            + ", ".join(f"{cell}::{type_}" for cell, (_, type_) in zip(cells, columns, strict=True))
        )
    return " union all ".join(selects)
