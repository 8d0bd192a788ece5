"""``knowledge mcp install``: the right words in the right file, and nothing else in it changed."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Knowledge

FILES = {
    ("claude-code", "project"): ".mcp.json",
    ("claude-code", "user"): "~/.claude.json",
    ("cursor", "project"): ".cursor/mcp.json",
    ("cursor", "user"): "~/.cursor/mcp.json",
    ("codex", "project"): ".codex/config.toml",
    ("codex", "user"): "~/.codex/config.toml",
    ("vscode", "project"): ".vscode/mcp.json",
}
SECTIONS = {
    "claude-code": "mcpServers",
    "cursor": "mcpServers",
    "codex": "mcp_servers",
    "vscode": "servers",
}
URL = "http://127.0.0.1:8123"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder the command runs in; the user's folder is beside it."""
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "user").mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.delenv("KNOWLEDGE_URL", raising=False)
    monkeypatch.setenv("KNOWLEDGE_API_KEY", "kk_key-0123456789abcdef_" + "s" * 43)
    yield folder


def read(path: Path) -> dict[str, Any]:
    text = path.read_text()
    found: dict[str, Any] = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    return found


@pytest.mark.parametrize(("client", "scope"), FILES)
@pytest.mark.parametrize("transport", [("--stdio",), ("--url", URL)])
def test_what_is_written_is_what_was_shown_and_holds_no_key(
    knowledge: Knowledge, client: str, scope: str, transport: tuple[str, ...]
) -> None:
    arguments = ("mcp", "install", "--client", client, "--scope", scope, *transport)
    shown = knowledge(*arguments)
    path = Path(FILES[client, scope]).expanduser()
    assert str(path) in shown.err
    assert not path.exists()
    assert knowledge(*arguments, "--write").code == 0
    assert path.read_text() == shown.out
    assert "kk_" not in shown.out
    assert "KNOWLEDGE_API_KEY" in shown.out
    entry = read(path)[SECTIONS[client]]["knowledge"]
    if transport == ("--stdio",):
        assert entry["args"] == ["mcp"]
        assert entry["command"] == str(Path(sys.executable).with_name("knowledge"))
    else:
        assert entry["url"] == f"{URL}/mcp"
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("client", "reference"),
    [
        ("claude-code", "${KNOWLEDGE_API_KEY:-}"),
        ("cursor", "${env:KNOWLEDGE_API_KEY}"),
        ("vscode", "${env:KNOWLEDGE_API_KEY}"),
    ],
)
def test_the_key_is_referred_to_in_the_programs_own_way(
    knowledge: Knowledge, client: str, reference: str
) -> None:
    shown = json.loads(knowledge("mcp", "install", "--client", client).out)
    assert shown[SECTIONS[client]]["knowledge"]["env"]["KNOWLEDGE_API_KEY"] == reference
    shown = json.loads(knowledge("mcp", "install", "--client", client, "--url", URL).out)
    headers = shown[SECTIONS[client]]["knowledge"]["headers"]
    assert headers == {"Authorization": f"Bearer {reference}"}


def test_codex_passes_the_variable_on(knowledge: Knowledge) -> None:
    shown = tomllib.loads(knowledge("mcp", "install", "--client", "codex").out)
    assert shown["mcp_servers"]["knowledge"]["env_vars"] == ["KNOWLEDGE_API_KEY"]
    shown = tomllib.loads(knowledge("mcp", "install", "--client", "codex", "--url", URL).out)
    assert shown["mcp_servers"]["knowledge"]["bearer_token_env_var"] == "KNOWLEDGE_API_KEY"


def test_other_servers_and_settings_stay_and_a_backup_is_kept(
    knowledge: Knowledge, project: Path
) -> None:
    path = project / ".mcp.json"
    before = {"mcpServers": {"other": {"command": "ünïcode"}, "knowledge": {"old": 1}}, "x": [1]}
    path.write_text(json.dumps(before, ensure_ascii=False))
    path.chmod(0o640)
    done = knowledge("mcp", "install", "--client", "claude-code", "--write")
    assert str(project / ".mcp.json.backup") in done.out
    held = read(path)
    assert held["x"] == [1]
    assert held["mcpServers"]["other"] == {"command": "ünïcode"}
    assert "old" not in held["mcpServers"]["knowledge"]
    assert read(project / ".mcp.json.backup") == before
    assert path.stat().st_mode & 0o777 == 0o640
    again = knowledge("mcp", "install", "--client", "claude-code", "--write")
    assert "backup" not in again.out
    knowledge("mcp", "install", "--client", "claude-code", "--write", "--url", URL)
    assert (project / ".mcp.json.backup1").exists()


TOML = """\
# my settings
model = "m"  # a comment

[mcp_servers.other]
command = "x"

[mcp_servers.knowledge]
command = "old"

[mcp_servers.knowledge.env]
A = "b"

[mcp_servers.knowledge-two]
command = "y"

[profiles.fast]
model = "n"
"""


def test_toml_keeps_its_comments_and_other_tables(knowledge: Knowledge) -> None:
    path = Path("~/.codex/config.toml").expanduser()
    path.parent.mkdir()
    path.write_text(TOML)
    assert knowledge("mcp", "install", "--client", "codex", "--write").code == 0
    before, after = tomllib.loads(TOML), read(path)
    assert '# my settings\nmodel = "m"  # a comment\n' in path.read_text()
    assert after["mcp_servers"].pop("knowledge")["args"] == ["mcp"]
    before["mcp_servers"].pop("knowledge")
    assert after == before
    written = path.read_text()
    assert knowledge("mcp", "install", "--client", "codex", "--write").code == 0
    assert path.read_text() == written


@pytest.mark.parametrize(
    ("client", "file", "text"),
    [
        ("vscode", ".vscode/mcp.json", '{"servers": {}} // mine'),
        ("vscode", ".vscode/mcp.json", '{"servers": []}'),
        ("vscode", ".vscode/mcp.json", "[]"),
        ("codex", ".codex/config.toml", "mcp_servers = 7"),
        ("codex", ".codex/config.toml", "mcp_servers = { knowledge = { command = 'x' } }"),
        ("codex", ".codex/config.toml", "a = "),
    ],
)
def test_a_file_that_would_lose_something_is_left_alone(
    knowledge: Knowledge, project: Path, client: str, file: str, text: str
) -> None:
    path = project / file
    path.parent.mkdir()
    path.write_text(text)
    scope = ("--scope", "project")
    failure = knowledge("mcp", "install", "--client", client, *scope, "--write").failure
    assert "nothing was changed" in failure
    assert path.read_text() == text
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_link_to_the_file_stays_a_link(knowledge: Knowledge, project: Path) -> None:
    kept = project / "dotfiles.json"
    kept.write_text("{}")
    (project / ".mcp.json").symlink_to(kept)
    assert knowledge("mcp", "install", "--client", "claude-code", "--write").code == 0
    assert (project / ".mcp.json").is_symlink()
    assert "mcpServers" in read(kept)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--client", "vscode", "--scope", "user"), "no file of scope user"),
        (("--client", "emacs"), "emacs"),
        (("--client", "cursor", "--url", URL, "--stdio"), "exclude each other"),
        (("--client", "cursor", "--url", "localhost"), "is no address"),
    ],
)
def test_wrong_usage_is_one_line(
    knowledge: Knowledge, arguments: tuple[str, ...], words: str
) -> None:
    done = knowledge("mcp", "install", *arguments)
    assert done.code == 2
    (line,) = done.err.splitlines()
    assert words in line


def test_a_home_elsewhere_is_named(
    knowledge: Knowledge, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KNOWLEDGE_HOME", "/srv/knowledge")
    shown = json.loads(knowledge("mcp", "install", "--client", "claude-code").out)
    assert "KNOWLEDGE_HOME" in shown["mcpServers"]["knowledge"]["env"]


def test_without_an_installation_it_says_what_to_set(
    knowledge: Knowledge, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KNOWLEDGE_HOME")
    for client in ("claude-code", "cursor"):
        shown = knowledge("mcp", "install", "--client", client)
        (warning, _) = shown.err.splitlines()
        assert f"no installation at {project / '.knowledge'}: set KNOWLEDGE_HOME" in warning
        assert "KNOWLEDGE_HOME" not in shown.out


def test_the_address_that_is_set_is_carried_over(
    knowledge: Knowledge, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KNOWLEDGE_URL", f"{URL}/")
    monkeypatch.delenv("KNOWLEDGE_HOME")
    shown = knowledge("mcp", "install", "--client", "cursor")
    environment = json.loads(shown.out)["mcpServers"]["knowledge"]["env"]
    assert environment["KNOWLEDGE_URL"] == URL
    assert "KNOWLEDGE_HOME" not in environment
    assert len(shown.err.splitlines()) == 1
    monkeypatch.setenv("KNOWLEDGE_URL", "localhost")
    assert "is no address" in knowledge("mcp", "install", "--client", "cursor").err


def test_the_help_names_each_programs_default_scope(knowledge: Knowledge) -> None:
    told = " ".join(knowledge("mcp", "install", "--help").out.split())
    assert "[claude-code, vscode: project; cursor, codex: user]" in told
