"""From failing rows to an outcome."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pytest

from dbt_like_checks import (
    Check,
    CheckOutcome,
    Severity,
    Status,
    Threshold,
    Thresholds,
    open_parquet,
    run_check,
    run_checks,
)
from dbt_like_checks.singular import parse_singular
from tests.checks.conftest import OpenTables

RunChecks = Callable[..., list[CheckOutcome]]

ROWS = pa.table(
    {
        "id": [f"r{number:02}" for number in range(12)],
        "secret": [f"secret {number}" for number in range(12)],
    }
)
FIRST_THREE = "SELECT * FROM t WHERE id < 'r03'"


def _check(sql: str, header: str = "", name: str = "check") -> Check:
    return parse_singular(f"{header}{sql}", name, f"{name}.sql")


@pytest.fixture
def run(open_tables: OpenTables) -> RunChecks:
    def run(*checks: Check) -> list[CheckOutcome]:
        with open_tables({"t": ROWS}) as relations:
            return run_checks(checks, relations)

    return run


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("", Status.FAIL),
        ("-- severity: warn\n", Status.WARN),
        ("-- error_if: '>3'\n", Status.WARN),
        ("-- error_if: '>=3'\n", Status.FAIL),
        ("-- error_if: '>3'\n-- warn_if: '>3'\n", Status.PASS),
        ("-- error_if: '!=3'\n-- warn_if: '=3'\n", Status.WARN),
        ("-- severity: warn\n-- warn_if: '<3'\n", Status.PASS),
        ("-- severity: warn\n-- warn_if: '<=3'\n", Status.WARN),
    ],
)
def test_the_number_of_failing_rows_meets_the_thresholds(
    run: RunChecks, header: str, status: Status
) -> None:
    (outcome,) = run(_check(FIRST_THREE, header))
    assert (outcome.status, outcome.failures) == (status, 3)
    assert outcome.is_blocking == (status is Status.FAIL)
    assert outcome.seconds > 0


def test_a_sample_shows_ten_ids_in_order_and_no_other_column(run: RunChecks) -> None:
    header = "-- id_columns: [id]\n"
    (outcome,) = run(_check("SELECT * FROM t ORDER BY id DESC", header))
    assert outcome.failures == 12
    assert outcome.sample == tuple({"id": f"r{number:02}"} for number in range(10))


def test_without_id_columns_a_sample_is_empty(run: RunChecks) -> None:
    assert run(_check(FIRST_THREE))[0].sample == ()


def test_an_id_in_a_sample_is_cut_at_200_characters(run: RunChecks) -> None:
    (outcome,) = run(_check("SELECT repeat('x', 5000) AS id", "-- id_columns: [id]\n"))
    assert outcome.sample == ({"id": "x" * 200},)


# what is refused, and what each engine says of it
REFUSED: list[tuple[str, dict[str, str]]] = [
    ("SELECT * FROM missing", {"duckdb": "Catalog Error", "postgres": "UndefinedTable"}),
    ("SELECT missing FROM t", {"duckdb": "Binder Error", "postgres": "UndefinedColumn"}),
    ("SELEC 1", {"duckdb": "Parser Error", "postgres": "SyntaxError"}),
    ("SELECT 1; SELECT 2", {"duckdb": "Parser Error", "postgres": "SyntaxError"}),
    ("SELECT 1; DELETE FROM t", {"duckdb": "Parser Error", "postgres": "SyntaxError"}),
    (
        "SELECT 1) AS failing; DROP TABLE t; SELECT id FROM (SELECT 1 AS id",
        {"duckdb": "one SELECT", "postgres": "cannot insert multiple commands"},
    ),
    ("DELETE FROM t", {"duckdb": "Parser Error", "postgres": "SyntaxError"}),
    (
        "WITH gone AS (DELETE FROM t RETURNING id) SELECT id FROM gone",
        {"duckdb": "Error", "postgres": "UndefinedTable"},
    ),
]


@pytest.mark.parametrize(("sql", "reasons"), REFUSED)
def test_sql_that_fails_is_an_error_that_blocks_whatever_its_severity(
    run: RunChecks, engine: str, sql: str, reasons: dict[str, str]
) -> None:
    broken = _check(sql, "-- severity: warn\n", "broken")
    outcome, after = run(broken, _check(FIRST_THREE))
    assert (outcome.status, outcome.is_blocking, outcome.sample) == (Status.ERROR, True, ())
    assert outcome.reason is not None and reasons[engine] in outcome.reason
    assert after.failures == 3


def test_the_reason_of_an_error_quotes_no_data(run: RunChecks, engine: str) -> None:
    (outcome,) = run(_check("SELECT * FROM t WHERE CAST(secret AS INTEGER) = 1"))
    assert outcome.status is Status.ERROR
    names = {"duckdb": "ConversionException", "postgres": "InvalidTextRepresentation"}
    assert outcome.reason is not None and names[engine] in outcome.reason
    assert "secret" not in outcome.reason


def test_an_id_column_that_the_select_does_not_return_is_an_error(run: RunChecks) -> None:
    (outcome,) = run(_check("SELECT id FROM t", "-- id_columns: [chunk_id]\n"))
    assert outcome.status is Status.ERROR


def test_checks_built_in_a_loop_each_run_their_own_sql(open_tables: OpenTables) -> None:
    checks = [
        _check(f"SELECT * FROM t LIMIT {count}", name=f"first_{count}") for count in (1, 2, 3)
    ]
    runs = [partial(run_check, check) for check in checks]
    with open_tables({"t": ROWS}) as relations:
        later = [run(relations) for run in runs]
        at_once = run_checks(iter(checks), relations)
    for outcomes in (later, at_once):
        assert [outcome.failures for outcome in outcomes] == [1, 2, 3]
        assert [outcome.check for outcome in outcomes] == checks


def test_parameters_are_bound_in_their_order(run: RunChecks) -> None:
    check = Check(
        name="bound",
        model="t",
        column=None,
        severity=Severity.ERROR,
        thresholds=Thresholds(error_if=Threshold(">", 0)),
        sql="SELECT id FROM t WHERE id = $2 OR id = $1 OR id = 'r0' || $3",
        parameters=("r01", "' OR true --", 5),
        id_columns=("id",),
        description="",
        file="bound.py",
        line=1,
    )
    (outcome,) = run(check)
    assert outcome.sample == ({"id": "r01"}, {"id": "r05"})


def test_a_select_on_parquet_that_does_not_end_is_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dbt_like_checks.relations.TIMEOUT_S", 0.2)
    endless = "SELECT count(*) FROM range(10000000000) a, range(1000) b"
    with open_parquet({}, tables={"t": ROWS}) as relations:
        outcome = run_check(_check(endless), relations)
        assert outcome.reason == "not done after 0 s"
        assert run_check(_check("SELECT * FROM t WHERE false"), relations).failures == 0


def test_duckdb_reads_no_file_that_is_not_a_relation() -> None:
    with open_parquet({}, tables={"t": ROWS}) as relations:
        outcome = run_check(_check("SELECT * FROM read_text('/etc/hostname')"), relations)
    assert outcome.reason is not None and "Permission Error" in outcome.reason
