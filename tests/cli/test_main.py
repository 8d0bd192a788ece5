from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from knowledge.cli.main import SUMMARIES, VERBS, cli, run
from knowledge.errors import NotFound


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_of_the_table_is_a_command_with_a_summary(verb: str) -> None:
    command = cli.get_command(click.Context(cli), verb)
    assert isinstance(command, click.Command)
    assert command.name == verb
    assert SUMMARIES[verb]


def test_help_imports_neither_drivers_nor_dagster_nor_models() -> None:
    code = (
        "import sys; from knowledge.cli.main import run; run(['--help']);"
        "heavy = {'dagster', 'psycopg', 'weaviate', 'onnxruntime', 'numpy', 'pydantic'};"
        "print('imported:', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.endswith("imported: []\n")
    assert all(verb in done.stdout for verb in VERBS)


def test_an_unknown_verb_is_a_usage_error_that_lists_the_verbs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["stauts"]) == 2
    assert "no verb 'stauts': use one of up, down" in capsys.readouterr().err


def test_an_error_of_the_program_is_one_line_and_exit_code_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @click.command("broken")
    def broken() -> None:
        raise NotFound("no such collection")

    monkeypatch.setitem(globals(), "broken", broken)
    monkeypatch.setitem(VERBS, "broken", f"{__name__}:broken")
    assert run(["broken"]) == 1
    assert capsys.readouterr().err == "knowledge: no such collection\n"


def test_a_home_that_cannot_be_created_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("KNOWLEDGE_HOME", str(tmp_path / "file" / "home"))
    assert run(["up"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"knowledge: {tmp_path}/file/home")
    assert line.endswith(": Not a directory")


def test_a_wrong_setting_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KNOWLEDGE_HOME", str(tmp_path))
    monkeypatch.setenv("KNOWLEDGE__STACK__API_PROT", "1")
    assert run(["status"]) == 1
    assert "stack.api_prot" in capsys.readouterr().err


def test_status_of_a_home_that_does_not_run_says_so_with_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KNOWLEDGE_HOME", str(tmp_path / "absent"))
    assert run(["status", "--json"]) == 1
    assert '"healthy": false' in capsys.readouterr().out
    assert not (tmp_path / "absent").exists()


def test_a_reader_that_closes_the_pipe_is_no_error() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m knowledge.cli.main doctor | true"],
        env=os.environ | {"KNOWLEDGE_HOME": "/nonexistent/home"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
