"""Checks found in files and folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt_like_checks import InvalidChecks, builtin_checks, load_checks

NOT_NULL = "models: [{name: t, columns: [{name: c, tests: [not_null]}]}]"


def test_a_folder_yields_the_checks_of_its_files_by_path(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "second.sql").write_text("SELECT 1")
    (tmp_path / "a.yml").write_text(NOT_NULL)
    (tmp_path / "README.md").write_text("no check")
    checks = load_checks([tmp_path])
    assert [check.name for check in checks] == ["not_null_t_c", "second"]
    assert checks[1].file == str(tmp_path / "b" / "second.sql")


def test_two_checks_of_one_name_are_an_error_that_names_both(tmp_path: Path) -> None:
    first, second = tmp_path / "a.yml", tmp_path / "b.yaml"
    first.write_text(NOT_NULL)
    second.write_text("\n" + NOT_NULL)
    with pytest.raises(InvalidChecks) as raised:
        load_checks([first, second])
    assert str(raised.value).startswith(f"{second}:2: check 'not_null_t_c' is already declared in")
    assert f"{first}:1" in str(raised.value)


def test_paths_without_a_check_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidChecks, match="no check is declared here"):
        load_checks([tmp_path])
    with pytest.raises(InvalidChecks, match="no check is declared here"):
        load_checks([])


def test_a_file_that_is_missing_or_not_text_or_no_check_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "latin.yml").write_bytes(b"models: [\xe9]")
    for name, message in (
        ("missing.yml", "cannot be read"),
        ("latin.yml", "cannot be read"),
        ("checks.txt", "not a check file; valid: a folder, .yml, .yaml, .sql"),
    ):
        with pytest.raises(InvalidChecks, match=message):
            load_checks([tmp_path / name])


def test_an_unknown_builtin_lists_the_valid_names() -> None:
    with pytest.raises(
        LookupError,
        match="no built-in checks 'x'; valid: collection, embeddings, hybrid_index, snapshot_chunks",
    ):
        builtin_checks("x")
