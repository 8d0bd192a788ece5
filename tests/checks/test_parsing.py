"""What a check file may say, and how it is told where it is wrong."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dbt_like_checks import Engine, InvalidChecks, Severity, Threshold, Thresholds
from dbt_like_checks.parsing import parse_models
from dbt_like_checks.singular import parse_singular

MODELS = """version: 2
models:
  - name: chunks
    description: One row a chunk.
    id_columns: [chunk_id]
    tests:
      - row_count: {min: 1, description: Not empty.}
    columns:
      - name: kind
        description: What it is.
        tests:
          - not_null
          - accepted_values:
              name: known_kind
              values: [document, code]
              severity: error
              error_if: ">= 10"
              warn_if: ">2"
      - name: updated_at
        tests:
          - freshness: {max_age: {count: 2, period: day}, severity: warn}
"""


def test_a_file_becomes_checks_in_its_order_with_file_and_line() -> None:
    checks = parse_models(MODELS, "models.yml")
    assert [(check.name, check.line) for check in checks] == [
        ("row_count_chunks", 7),
        ("not_null_chunks_kind", 12),
        ("known_kind", 13),
        ("freshness_chunks_updated_at", 21),
    ]
    assert {(check.file, check.model) for check in checks} == {("models.yml", "chunks")}
    assert [check.column for check in checks] == [None, "kind", "kind", "updated_at"]
    assert checks[0].description == "Not empty."
    assert checks[2].thresholds == Thresholds(Threshold(">=", 10), Threshold(">", 2))
    assert checks[2].parameters == ("document", "code")
    assert checks[3].severity is Severity.WARN
    assert checks[3].parameters == (timedelta(days=2),)


def test_ids_are_promised_only_by_checks_whose_rows_have_them() -> None:
    checks = parse_models(MODELS, "models.yml")
    assert [check.id_columns for check in checks] == [(), ("chunk_id",), ("chunk_id",), ()]


def test_a_file_says_once_where_its_checks_run_and_means_parquet_when_it_does_not() -> None:
    on_postgres = parse_models(f"engine: postgres\n{MODELS}", "models.yml")
    assert {check.engine for check in on_postgres} == {Engine.POSTGRES}
    assert {check.engine for check in parse_models(MODELS, "models.yml")} == {Engine.PARQUET}
    sql = "-- engine: postgres\nSELECT 1"
    assert parse_singular(sql, "one", "one.sql").engine is Engine.POSTGRES
    assert parse_singular("SELECT 1", "one", "one.sql").engine is Engine.PARQUET


# what is replaced in MODELS, by what, the line named, the message
MISTAKES = [
    ("description: One", "descripton: One", 4, "unknown key 'descripton' of a model; valid: colu"),
    (
        "- name: kind",
        "- nam: kind",
        9,
        "unknown key 'nam' of a column; valid: description, name, t",
    ),
    (
        "version: 2",
        "versions: 2",
        1,
        "unknown key 'versions' of the file; valid: engine, models, v",
    ),
    ("version: 2", "version: 3", 1, "unknown version; valid: 2"),
    ("version: 2", "engine: mysql", 1, "unknown engine 'mysql'; valid: parquet, postgres"),
    ("version: 2", "engine: 2", 1, "engine must be a string that is not empty; found int '2'"),
    ("version: 2", "models: []", 2, "key 'models' of the file is given twice"),
    (
        "- not_null",
        "- notnull",
        12,
        "unknown test 'notnull'; valid on a column: accepted_values, e",
    ),
    ("- not_null", "- row_count: {min: 1}", 12, "row_count is not a test of a column; valid: acc"),
    ("- row_count: {min: 1,", "- unique: {", 7, "unique is not a test of a model; valid: expressi"),
    (
        "- not_null",
        "- not_null: {sevrity: warn}",
        12,
        "unknown key 'sevrity' of not_null; valid: de",
    ),
    ("- not_null", "- [not_null]", 12, "a test must be a string that is not empty; found seq"),
    ("- not_null", "- expression", 12, "expression lacks expression"),
    ("- not_null", "- relationships: {to: x}", 12, "relationships lacks field"),
    ("- not_null", "- {not_null: , unique: }", 12, "a test must be one kind"),
    ("- not_null", "- accepted_values: {values: []}", 12, "values must list at least one value"),
    ("[document, code]", "[document, yes]", 15, "the entries of values must be of one type; quote"),
    ("[document, code]", "[2024-01-01]", 15, "an entry of values must be a string, number or bool"),
    ("[document, code]", "document", 15, "values must be a list"),
    ("severity: error", "severity: fatal", 16, "unknown severity 'fatal'; valid: error, warn"),
    ("severity: error", "severity: warn", 17, "error_if has no effect with severity: warn"),
    ('">= 10"', '"=> 10"', 17, "error_if: threshold '=> 10' is not a comparison and a count"),
    ('">= 10"', "10", 17, "error_if must be a string that is not empty; found int '10'"),
    ('">= 10"', '"<0"', 17, "error_if: threshold '<0' can never be met"),
    ("min: 1,", "min: -1,", 7, "min must be an integer of at least 0; found int '-1'"),
    ("min: 1,", "min: one,", 7, "min must be an integer of at least 0; found str 'one'"),
    ("min: 1,", "min: true,", 7, "min must be an integer of at least 0; found bool 'true'"),
    ("min: 1,", "min: 3, max: 2,", 7, "row_count can never hold: min 3 is above max 2"),
    ("period: day", "period: week", 21, "unknown period 'week'; valid: minute, hour, day"),
    ("count: 2,", "count: 0,", 21, "max_age must be more than 0"),
    ("count: 2,", "", 21, "max_age lacks count"),
    ("[chunk_id]", "[a, a]", 5, "id_columns must list at least one name, each once"),
    ("name: updated_at", "name: kind", 19, "column 'kind' is declared twice, first in line 9"),
    ("name: known_kind", "name: known kind", 14, "the name of a check may hold letters, digits"),
    ("id_columns: [", "id_columns: [[", 6, "not valid YAML"),
    ("name: chunks", "nme: chunks", 3, "unknown key 'nme' of a model"),
]


@pytest.mark.parametrize(("right", "wrong", "line", "message"), MISTAKES)
def test_a_mistake_is_named_with_file_and_line(
    right: str, wrong: str, line: int, message: str
) -> None:
    assert MODELS.count(right) == 1
    with pytest.raises(InvalidChecks) as raised:
        parse_models(MODELS.replace(right, wrong), "models.yml")
    assert str(raised.value).startswith(f"models.yml:{line}: {message}")


def test_a_model_declared_twice_is_an_error() -> None:
    with pytest.raises(InvalidChecks, match=r"m.yml:3: model 'a' is declared twice.*line 2"):
        parse_models("models:\n  - name: a\n  - name: a\n", "m.yml")


@pytest.mark.parametrize("text", ["", "# nothing\n", "[]", "models", "models: {}", "models: \x00"])
def test_a_file_that_lists_no_models_is_an_error(text: str) -> None:
    with pytest.raises(InvalidChecks, match=r"^m\.yml:1: "):
        parse_models(text, "m.yml")


def test_a_singular_check_takes_its_configuration_from_the_top_comment() -> None:
    text = (
        "-- description: No orphan.\n-- severity: warn\n-- warn_if: '>3'\n-- model: chunks\n"
        "-- id_columns:\n--   - chunk_id\nSELECT chunk_id -- of all\nFROM chunks;\n"
    )
    check = parse_singular(text, "no_orphan", "checks/no_orphan.sql")
    assert (check.name, check.model, check.severity) == ("no_orphan", "chunks", Severity.WARN)
    assert check.thresholds.warn_if == Threshold(">", 3)
    assert check.id_columns == ("chunk_id",)
    assert check.sql == "SELECT chunk_id -- of all\nFROM chunks"


def test_a_singular_check_needs_no_configuration() -> None:
    check = parse_singular("SELECT 1", "one", "one.sql")
    assert (check.model, check.severity, check.id_columns) == (None, Severity.ERROR, ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-- severity: warn\n-- modle: x\nSELECT 1", "a b.sql:2: unknown key 'modle' of the comm"),
        ("-- Rows of nothing.\nSELECT 1", "a b.sql:1: the comment at the top .* must be a mapping"),
        ("-- severity: warn\n;\n", "a b.sql:2: the file holds no SELECT"),
        ("", "a b.sql:1: the file holds no SELECT"),
        ("-- severity: warn\n-- engine: pg\nSELECT 1", "a b.sql:2: unknown engine 'pg'; valid: pa"),
    ],
)
def test_a_mistake_in_a_singular_check_is_named_with_file_and_line(text: str, message: str) -> None:
    with pytest.raises(InvalidChecks, match=message):
        parse_singular(text, "a", "a b.sql")


def test_a_singular_check_with_an_unusable_file_name_is_an_error() -> None:
    with pytest.raises(InvalidChecks, match="named after its file"):
        parse_singular("SELECT 1", "a b", "a b.sql")
