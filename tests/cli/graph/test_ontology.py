from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.graph.conftest import Graph, said

DOCUMENT = """\
name: acme
version: 2
extends: default
predicates:
  SHOUTS_AT:
    domain: organization
  USES_MESSAGE_BROKER:
    domain: architecture
"""


@pytest.fixture
def document(graph: Graph) -> Path:
    file = graph.folder / "acme.yaml"
    file.write_text(DOCUMENT)
    return file


def test_a_check_reports_and_writes_nothing(graph: Graph, document: Path) -> None:
    graph.tell(said("a", "SHOUTS_AT", "b"))
    shown = graph.run("ontology", "check", document, "--tenant", graph.tenant).out
    assert shown.startswith(f"acme@2 instead of default@1, which is in force for {graph.tenant}:\n")
    assert "    SHOUTS_AT added\n" in shown
    assert "USES_MESSAGE_BROKER no longer functional" in shown
    assert (
        "1 fact   wrong_domain: SHOUTS_AT is of the domain organization, not architecture" in shown
    )
    assert shown.splitlines()[-1] == (
        f"Put it in force with: knowledge graph ontology set {document} --tenant {graph.tenant}"
        " (this check changed nothing)"
    )
    report = graph.run("ontology", "check", document, "--tenant", graph.tenant, "--json").json
    assert (report["version"], report["inForce"]) == (2, False)
    assert report["before"] == {"name": "default", "version": 1, "closed": False}
    listing = graph.run("ontology", "versions", "--tenant", graph.tenant)
    assert listing.out == (f"{graph.tenant} has no ontology of its own: default@1 is in force.\n")


def test_a_new_version_is_put_in_force_and_listed(graph: Graph, document: Path) -> None:
    done = graph.run("ontology", "set", document, "--tenant", graph.tenant)
    assert done.out.startswith(f"acme@2 is in force for {graph.tenant}, in the place of default@1:")
    assert "nothing against the facts that are believed" in done.out
    listing = graph.run("ontology", "versions", "--tenant", graph.tenant, "--json").json
    assert listing["inForce"] == "acme@2"
    assert [version["version"] for version in listing["versions"]] == [2]
    assert "operator" in graph.run("ontology", "versions", "--tenant", graph.tenant).out
    shown = graph.run("ontology", "show", "--tenant", graph.tenant).out
    assert shown.startswith("name: acme\nversion: 2\n")
    assert "SHOUTS_AT:" in shown
    assert "DEPENDS_ON:" in shown
    wire = graph.run("ontology", "show", "--tenant", graph.tenant, "--json").json
    assert (wire["name"], wire["document"]) == ("acme", shown)


def test_the_document_in_force_set_again_changes_nothing(graph: Graph, document: Path) -> None:
    setting = ("ontology", "set", document, "--tenant", graph.tenant)
    graph.run(*setting)
    document.write_text("# read again\n" + DOCUMENT)
    done = graph.run(*setting)
    assert (done.code, done.out) == (
        0,
        f"acme@2 is in force for {graph.tenant} already: nothing was changed.\n",
    )
    report = graph.run(*setting, "--json").json
    assert (report["version"], report["inForce"], report["changes"]) == (2, True, [])
    listing = graph.run("ontology", "versions", "--tenant", graph.tenant, "--json").json
    assert len(listing["versions"]) == 1


def test_projects_whose_facts_new_rules_may_be_applied_to_are_named(
    graph: Graph, document: Path
) -> None:
    setting = ("ontology", "set", document, "--tenant", graph.tenant)
    assert "knowledge graph infer" not in graph.run(*setting).out
    graph.tell(said("a", "USES", "b"))
    for number in range(6):
        place = ("--tenant", graph.tenant, "--project", f"q{number}")
        graph.run("assert", graph.write(said("a", "USES", "b")), *place)
    document.write_text(DOCUMENT.replace("version: 2", "version: 3"))
    shown = graph.run(*setting).out.splitlines()
    assert shown[-6:] == [
        *(
            f"  knowledge graph infer --tenant {graph.tenant} --project {project}"
            for project in ("p1", "q0", "q1", "q2", "q3")
        ),
        f"  and likewise for 2 other projects of {graph.tenant}",
    ]


def test_what_is_shown_can_be_set_again_as_a_new_version(graph: Graph, document: Path) -> None:
    graph.run("ontology", "set", document, "--tenant", graph.tenant)
    shown = graph.run("ontology", "show", "--tenant", graph.tenant).out
    document.write_text(shown.replace("version: 2", "version: 3"))
    report = graph.run("ontology", "set", document, "--tenant", graph.tenant, "--json").json
    assert (report["version"], report["inForce"], report["changes"]) == (3, True, [])


def test_a_version_that_is_not_newer_is_one_line(graph: Graph, document: Path) -> None:
    setting = ("ontology", "set", document, "--tenant", graph.tenant)
    graph.run(*setting)
    document.write_text(DOCUMENT + "  WHISPERS_TO:\n    domain: organization\n")
    assert graph.run(*setting).failure == (
        "version 2 is not newer than 2, which is in force: write version: 3"
    )


def test_a_document_that_is_not_valid_names_its_line(graph: Graph, document: Path) -> None:
    document.write_text("name: acme\nversion: 2\nclosed: maybe\n")
    for verb in ("check", "set"):
        failure = graph.run("ontology", verb, document, "--tenant", graph.tenant).failure
        assert failure.startswith(f"{document}:3: closed must be true or false")
    document.write_bytes(b"name: \xff\n")
    failure = graph.run("ontology", "check", document, "--tenant", graph.tenant).failure
    assert failure == f"{document} is not UTF-8"


def test_a_tenant_that_is_not_there_has_no_ontology_set(graph: Graph, document: Path) -> None:
    failure = graph.run("ontology", "set", document, "--tenant", "nobody-here").failure
    assert failure == "there is no tenant nobody-here"
