"""Every kind of generic test passes on good rows and fails on bad ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from dbt_like_checks import InvalidChecks, Status
from dbt_like_checks.compiling import BUILDERS
from dbt_like_checks.kinds import KINDS
from tests.checks.conftest import RunYaml

Rows = list[dict[str, Any]]


def _column_test(test: str) -> str:
    return (
        "models: [{name: t, id_columns: [id], columns: "
        f"[{{name: value, tests: [{test}]}}]}}, {{name: parents}}]"
    )


def _model_test(test: str) -> str:
    return f"models: [{{name: t, id_columns: [id], tests: [{test}]}}]"


def _rows(*values: Any) -> Rows:
    return [{"id": f"r{number}", "value": value} for number, value in enumerate(values)]


def _hours_ago(hours: float) -> datetime:
    return datetime.now(UTC) - timedelta(hours=hours)


ACCEPTED = _column_test("accepted_values: {values: [a, b]}")
PARENT = _column_test("relationships: {to: parents, field: id}")
FRESH = _column_test("freshness: {max_age: {count: 2, period: hour}}")
NEVER = pa.table({"id": ["r0"], "value": pa.array([None], pa.timestamp("us", tz="UTC"))})

# kind, checks, rows that pass, rows that fail, ids of the failing rows
CASES: list[tuple[str, str, Rows, Rows | pa.Table, list[str]]] = [
    ("not_null", _column_test("not_null"), _rows("a", ""), _rows("a", None, None), ["r1", "r2"]),
    ("unique", _column_test("unique"), _rows("a", "b", None, None), _rows(*"abaab"), ["r2", "r4"]),
    ("accepted_values", ACCEPTED, _rows("a", "b", None), _rows("a", "A", "it's"), ["r1", "r2"]),
    ("relationships", PARENT, _rows("p1", None), _rows("p1", "p3"), ["r1"]),
    ("expression", _column_test("expression: {expression: value > 1}"), _rows(2), _rows(2, 1), ["r1"]),
    ("expression", _model_test("expression: {expression: value > 1}"), _rows(2), _rows(None, 2), ["r0"]),
    ("row_count", _model_test("row_count: {min: 2}"), _rows(1, 2), _rows(1), []),
    ("row_count", _model_test("row_count: {max: 1}"), _rows(1), _rows(1, 2), []),
    ("row_count", _model_test("row_count: {min: 2, max: 2}"), _rows(1, 2), _rows(1, 2, 3), []),
    ("freshness", FRESH, _rows(_hours_ago(9), _hours_ago(1)), _rows(_hours_ago(3)), []),
    ("freshness", FRESH, _rows(_hours_ago(1), None), NEVER, []),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "checks", "passing", "failing", "ids"), CASES)
def test_a_kind_passes_on_good_rows_and_fails_on_bad_ones(
    run_yaml: RunYaml,
    kind: str,
    checks: str,
    passing: Rows,
    failing: Rows | pa.Table,
    ids: list[str],
) -> None:
    parents = [{"id": "p1"}, {"id": "p2"}]
    (good,) = run_yaml(checks, t=passing, parents=parents)
    assert (good.status, good.failures, good.reason) == (Status.PASS, 0, None)
    (bad,) = run_yaml(checks, t=failing, parents=parents)
    assert (bad.status, bad.reason) == (Status.FAIL, None)
    assert bad.failures == (len(ids) or 1)
    assert [row["id"] for row in bad.sample] == ids


def test_an_empty_table_fails_only_tests_that_need_a_row(run_yaml: RunYaml) -> None:
    empty = pa.table({"id": pa.array([], pa.string()), "value": pa.array([], pa.timestamp("us"))})
    parents = empty.select(["value"]).rename_columns(["id"])
    for kind, checks, *_ in CASES:
        if kind not in ("accepted_values", "expression", "row_count"):
            (outcome,) = run_yaml(checks, t=empty, parents=parents)
            assert outcome.status is (Status.FAIL if kind == "freshness" else Status.PASS)
    (outcome,) = run_yaml(_model_test("row_count: {min: 1}"), t=empty)
    assert (outcome.status, outcome.failures) == (Status.FAIL, 1)


def test_every_kind_has_a_builder_and_a_case() -> None:
    assert set(KINDS) == set(BUILDERS) == {case[0] for case in CASES}


def test_a_row_count_that_every_table_satisfies_is_refused(run_yaml: RunYaml) -> None:
    for bounds in ("{}", "{min: 0}"):
        with pytest.raises(InvalidChecks, match=r"checks.yml:1: row_count can never fail"):
            run_yaml(_model_test(f"row_count: {bounds}"))


def test_names_and_values_with_quotes_are_data_and_not_sql(run_yaml: RunYaml) -> None:
    checks = """
models:
  - name: 'odd "table"; --'
    id_columns: ['the "id"']
    columns:
      - name: "va'l\\"ue"
        tests:
          - unique
          - accepted_values: {values: ["x'); DROP TABLE t; --", "a"]}
"""
    rows = [{'the "id"': value, "va'l\"ue": value} for value in ("a", "x'); DROP TABLE t; --", "b")]
    outcomes = run_yaml(checks, **{'odd "table"; --': rows})
    assert [outcome.status for outcome in outcomes] == [Status.PASS, Status.FAIL]
    assert outcomes[1].sample == ({'the "id"': "b"},)


def test_an_expression_may_end_with_a_comment(run_yaml: RunYaml) -> None:
    checks = _column_test('expression: {expression: "value > 1 -- above one"}')
    assert run_yaml(checks, t=_rows(1))[0].failures == 1
