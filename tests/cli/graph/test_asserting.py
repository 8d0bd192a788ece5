from __future__ import annotations

import io
import json
from typing import Any

import pytest

from knowledge.cli.graph import asserting
from tests.cli.conftest import Knowledge
from tests.cli.graph.conftest import Graph, broker, said

USES = said("a", "USES", "b")


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in USES.items() if key != name}


def test_facts_are_added_and_the_same_file_again_changes_nothing(graph: Graph) -> None:
    file = graph.write(USES, "", said("a", "USES", "c"))
    first = graph.run("assert", file, *graph.place, "--json").json
    assert (first["facts"], first["added"], first["unchanged"]) == (2, 2, 0)
    assert first["ontology"] == "default@1"
    assert first["factsPerSecond"] > 0
    again = graph.run("assert", file, *graph.place)
    assert again.out.splitlines()[0].startswith(f"Asserted 2 facts in {graph.tenant}/p1: ")
    assert "unchanged  2" in again.out


def test_what_a_batch_did_is_counted_by_kind(graph: Graph) -> None:
    graph.tell(broker("RabbitMQ", "2019"), said("a", "USES", "b", observedAt="2025"))
    done = graph.tell(
        broker("Kafka", "2024"),
        said("a", "USES", "b", sourceVersion="v2", observedAt="2026"),
        said("a", "USES", "b", sourceVersion="v0", observedAt="2020"),
        said("a", "SHOUTS_AT", "b"),
    )
    assert (done["added"], done["restated"], done["outdated"]) == (2, 1, 1)
    assert done["closed"] == {"superseded": 1}
    assert done["violations"] == [
        {"message": "unknown_predicate: default@1 has no predicate SHOUTS_AT", "facts": 1}
    ]


def test_the_ontology_s_remarks_are_shown_with_their_counts(graph: Graph) -> None:
    file = graph.write(*(said(f"a{number}", "SHOUTS_AT", "b") for number in range(12)))
    shown = graph.run("assert", file, *graph.place).out.splitlines()
    assert "12 facts  unknown_predicate: default@1 has no predicate SHOUTS_AT" in shown[-1]
    assert "default@1: 1 remark" in shown[-2]


def test_a_file_longer_than_a_batch_is_told_as_a_whole(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asserting, "BATCH", 3)
    done = graph.tell(*(said("a", "USES", f"b{number}") for number in range(8)))
    assert (done["facts"], done["added"]) == (8, 8)
    assert len(graph.facts()) == 8


def test_standard_input_is_read_twice(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    class Piped:
        buffer = io.BytesIO(json.dumps(USES).encode())

    monkeypatch.setattr("sys.stdin", Piped)
    assert graph.run("assert", "-", *graph.place, "--json").json["added"] == 1


def test_the_domain_option_is_for_facts_that_name_none(graph: Graph) -> None:
    file = graph.write(without("domain"), said("a", "USES", "c", domain="business"))
    graph.run("assert", file, *graph.place, "--domain", "customer")
    assert {fact["object"]: fact["domain"] for fact in graph.facts()} == {
        "b": "customer",
        "c": "business",
    }


def test_a_new_project_is_created_once_the_file_is_good(graph: Graph, knowledge: Knowledge) -> None:
    place = ("--tenant", graph.tenant, "--project", "new")
    listing = ("graph", "sources", "list", *place)
    assert graph.run("assert", graph.write("nonsense"), *place).code == 1
    assert knowledge(*listing).failure == "there is no project new"
    assert graph.run("assert", graph.write(USES), *place).code == 0
    assert knowledge(*listing, "--json").json["sources"][0]["sourceId"] == "cmdb"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (without("sourceId") | {"sourceVersion": None}, "provenance is missing"),
        (without("sourceVersion"), "sourceVersion is missing"),
        (USES | {"validFrom": 2024, "validTo": 2020}, "validTo is before validFrom"),
        (USES | {"confidence": 1.5}, "confidence is not a number from 0 to 1"),
        (USES | {"predicate": "dependsOn"}, "predicate 'dependsOn' is not UPPER_SNAKE_CASE"),
        (USES | {"subject": "x" * 513}, "subject has 513 characters, at most 512 are allowed"),
        (USES | {"domain": "cooking"}, "domain 'cooking' is not known"),
        (USES | {"validFrom": "lately"}, "validFrom 'lately' is not a time"),
        (USES | {"trustTier": "Gospel"}, "trustTier is not one of"),
        (USES | {"mood": "good"}, "unknown field 'mood'"),
        (without("domain"), "domain is missing"),
        (
            {"subject": "a", "predicate": "SHOUTS_AT", "sourceId": "cmdb"},
            "object, domain and sourceVersion are missing (domain is one of code, architecture",
        ),
        ({"client": "agent"}, "subject, predicate, object and sessionId are missing"),
        (
            {"subject": "a", "predicate": "USES_MESSAGE_BROKER"},
            "object, sourceId and sourceVersion are missing",
        ),
        ({"subject": "a", "mood": "good"}, "unknown field 'mood'"),
        ("[1]", "a fact is a JSON object"),
        ('{"subject":', "not valid JSON: "),
        ("[" * 100_000, "not valid JSON: "),
        ('{"confidence": NaN}', "NaN is not a number in JSON"),
        ('{"subject": "a", "subject": "b"}', "field 'subject' is given twice"),
        (json.dumps(USES | {"acl": ["user:\ud800"]}), "an escape"),
        ('{"subject": "' + "x" * 1_000_001 + '"}', "longer than 1,000,000 bytes"),
    ],
)
def test_a_wrong_line_is_named_and_nothing_is_written(
    graph: Graph, line: dict[str, Any] | str, message: str
) -> None:
    file = graph.write(USES, "", line, said("a", "USES", "c"))
    failure = graph.run("assert", file, *graph.place).failure
    assert failure.startswith(f"{file}:3: {message}")
    assert failure.endswith("(nothing was written)")
    assert graph.facts() == []


def test_a_line_that_is_not_utf_8_is_named(graph: Graph) -> None:
    file = graph.write(USES)
    file.write_bytes(file.read_bytes() + b'{"subject": "\xff"}\n')
    assert graph.run("assert", file, *graph.place).failure.startswith(f"{file}:2: not UTF-8")


def test_of_many_wrong_lines_the_first_are_shown_and_all_counted(graph: Graph) -> None:
    file = graph.write(USES, *("[]" for _ in range(12)))
    done = graph.run("assert", file, *graph.place)
    assert done.code == 1
    *shown, last = done.err.splitlines()
    assert shown == [f"{file}:{number}: a fact is a JSON object" for number in range(2, 12)]
    assert last == (
        "knowledge: 12 of 13 lines are not valid, the first 10 are shown: nothing was written"
    )
    assert graph.facts() == []


def test_a_correction_of_an_unknown_fact_names_its_lines(graph: Graph) -> None:
    unknown = "00000000-0000-0000-0000-000000000001"
    file = graph.write(USES, said("a", "USES", "c", corrects=unknown))
    assert graph.run("assert", file, *graph.place).failure == (
        f"{file}, lines 1 to 2: there is no fact {unknown} (before them 0 facts were written)"
    )
    assert graph.facts() == []
    file = graph.write(said("a", "USES", "c", corrects=unknown))
    assert graph.run("assert", file, *graph.place).failure == (
        f"{file}, line 1: there is no fact {unknown} (before them 0 facts were written)"
    )


def test_a_repeated_fact_that_was_retracted_is_counted(graph: Graph) -> None:
    file = graph.write(USES, said("a", "USES", "c"))
    graph.run("assert", file, *graph.place)
    graph.run("retract", graph.fact_id("b"), *graph.place)
    done = graph.run("assert", file, *graph.place, "--json").json
    assert (done["unchanged"], done["ended"]) == (2, 1)
    shown = graph.run("assert", file, *graph.place).out
    assert "unchanged  2 (1 of them was retracted or corrected since: to say it again," in shown
    assert [fact["object"] for fact in graph.facts()] == ["c"]
    graph.tell(said("a", "USES", "b", sourceVersion="v2"))
    assert {fact["object"] for fact in graph.facts()} == {"b", "c"}


def test_an_empty_a_missing_file_and_a_folder_are_one_line_each(graph: Graph) -> None:
    file = graph.write()
    assert graph.run("assert", file, *graph.place).failure == f"{file} holds no fact"
    file.unlink()
    assert graph.run("assert", file, *graph.place).failure == f"{file}: No such file or directory"
    folder = graph.folder
    assert graph.run("assert", folder, *graph.place).failure == f"{folder}: Is a directory"


def test_a_predicate_that_a_closed_ontology_does_not_have_is_refused(graph: Graph) -> None:
    ontology = graph.folder / "closed.yaml"
    ontology.write_text("name: acme\nversion: 2\nextends: default\nclosed: true\n")
    graph.run("ontology", "set", ontology, "--tenant", graph.tenant)
    file = graph.write(said("a", "SHOUTS_AT", "b"))
    assert graph.run("assert", file, *graph.place).failure == (
        f"{file}:1: predicate SHOUTS_AT is not in ontology acme@2, which is closed"
        " (nothing was written)"
    )
