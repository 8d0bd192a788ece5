from __future__ import annotations

import socket

from knowledge.home import LAYOUT_VERSION, Home, write_json
from knowledge.settings import Settings, StackSettings
from knowledge.stack.doctor import Finding, doctor
from knowledge.stack.servers import running_servers


def _by_subject(home: Home, settings: Settings) -> dict[str, Finding]:
    return {finding.subject: finding for finding in doctor(home, settings)}


def test_a_new_home_on_this_machine_has_nothing_to_mend(home: Home) -> None:
    assert [finding for finding in doctor(home, Settings()) if finding.level == "fail"] == []


def test_secrets_that_others_can_read_fail_with_the_command_that_mends_it(home: Home) -> None:
    (home.root / "secrets.json").chmod(0o644)
    finding = _by_subject(home, Settings())["secrets"]
    assert finding.level == "fail"
    assert finding.remedy == f"chmod 600 {home.root}/secrets.json"


def test_a_home_of_a_newer_program_fails(home: Home) -> None:
    identity = {"layoutVersion": LAYOUT_VERSION + 1, "installationId": home.installation_id}
    write_json(home.root / "home.json", identity)
    finding = _by_subject(home, Settings())["home"]
    assert finding.level == "fail"
    assert "use a newer program" in finding.found


def test_an_explicit_port_in_use_fails_and_says_which(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = Settings(stack=StackSettings(api_port=port))
        assert _by_subject(home, settings)["api port"] == Finding(
            "fail", "api port", f"{port} is in use", "choose another port"
        )


def test_running_servers_show_their_versions_and_unreachable_ones_fail(
    home: Home, postgres_only: Settings
) -> None:
    with running_servers(home, postgres_only):
        findings = _by_subject(home, postgres_only)
    assert findings["postgres"].level == "ok"
    assert findings["postgres"].found.startswith("18.")
    assert findings["weaviate"].level == "fail"


def test_with_pgvector_nothing_is_said_about_weaviate(home: Home) -> None:
    settings = Settings(vector_backend="pgvector")
    with running_servers(home, settings):
        findings = _by_subject(home, settings)
    assert findings["postgres"].level == "ok"
    assert not [subject for subject in findings if "weaviate" in subject]
