"""Relations over Parquet files and tables, and what SQL cannot reach through them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt_like_checks import UnreadableRelation, open_parquet


def _write(path: Path, *values: int) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    pq.write_table(pa.table({"value": list(values)}), path)
    return path


def test_the_files_of_a_relation_are_read_together(tmp_path: Path) -> None:
    paths = [_write(tmp_path / "a.parquet", 1, 2), _write(tmp_path / "b.parquet", 3)]
    with open_parquet({"t": paths}) as relations:
        assert relations.connection.sql("SELECT sum(value) FROM t").fetchall() == [(6,)]


def test_a_path_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path / "a.parquet", 1)
    monkeypatch.chdir(tmp_path)
    with open_parquet({"t": ["a.parquet"]}) as relations:
        assert relations.connection.sql("SELECT * FROM t").fetchall() == [(1,)]


def test_a_path_is_no_pattern_and_its_folders_are_no_columns(tmp_path: Path) -> None:
    path = _write(tmp_path / "day=1" / "p[ab]*.parquet", 1)
    _write(tmp_path / "day=1" / "p[ab]2.parquet", 2)
    _write(tmp_path / "day=1" / "pa.parquet", 3)
    with open_parquet({"t": [path]}) as relations:
        assert relations.connection.sql("SELECT * FROM t").fetchall() == [(1,)]


def test_sql_reads_no_other_file_and_no_python_variable(tmp_path: Path) -> None:
    path, other = _write(tmp_path / "a.parquet", 1), _write(tmp_path / "b.parquet", 2)
    in_python = pa.table({"value": [3]})
    with open_parquet({"t": [path]}) as relations:
        assert in_python.num_rows == 1
        with pytest.raises(duckdb.PermissionException):
            relations.connection.execute("SELECT * FROM read_parquet($1)", [str(other)])
        with pytest.raises(duckdb.CatalogException):
            relations.connection.execute("SELECT * FROM in_python")
        with pytest.raises(duckdb.InvalidInputException):
            relations.connection.execute("SET enable_external_access = true")


def test_a_relation_that_cannot_be_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "text.parquet").write_text("no parquet")
    relations: list[list[Path]] = [[], [tmp_path / "missing.parquet"], [tmp_path / "text.parquet"]]
    for paths in relations:
        with (
            pytest.raises(UnreadableRelation, match="relation 'chunks'"),
            open_parquet({"chunks": paths}),
        ):
            pass


def test_a_name_given_twice_is_an_error(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.parquet", 1)
    with (
        pytest.raises(UnreadableRelation, match="'t' is given twice"),
        open_parquet({"t": [path]}, tables={"t": pa.table({"value": [1]})}),
    ):
        pass


def test_a_relation_may_name_the_file_of_each_row(tmp_path: Path) -> None:
    paths = [_write(tmp_path / "a.parquet", 1), _write(tmp_path / "b.parquet", 2)]
    with open_parquet({"t": paths}, file_names={"t"}) as relations:
        rows = relations.connection.sql("SELECT * FROM t ORDER BY value").fetchall()
    assert rows == [(1, "a.parquet"), (2, "b.parquet")]


def test_a_view_selects_from_the_other_relations(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.parquet", 1, 2)
    views = {"big": "SELECT value FROM t JOIN bounds ON value > least"}
    tables = {"bounds": pa.table({"least": [1]})}
    with open_parquet({"t": [path]}, tables=tables, views=views) as relations:
        assert relations.rows("SELECT * FROM big", ()) == [(2,)]
