from __future__ import annotations

import uuid

from tests.cli.graph.conftest import Graph, said


def test_suggestions_are_listed_confirmed_and_rejected(graph: Graph) -> None:
    graph.tell(said("a", "USES", "b"), said("c", "USES", "d"))
    waiting = graph.suggestions()
    assert waiting.keys() == {"b USED_BY a", "d USED_BY c"}
    shown = graph.run("suggestions", "list", *graph.place, "--as", graph.client).out
    assert "· 2 suggestions" in shown.splitlines()[0]
    assert waiting["b USED_BY a"] in shown
    yes, no = waiting["b USED_BY a"], waiting["d USED_BY c"]
    done = graph.run("suggestions", "confirm", yes, *graph.place)
    assert done.out.startswith(f"Suggestion {yes} is confirmed")
    done = graph.run("suggestions", "reject", no, *graph.place, "--json")
    assert done.json == {"factId": no, "suggestion": "rejected"}
    assert graph.suggestions() == {}
    assert [fact["factId"] for fact in graph.facts("--predicate", "USED_BY")] == [yes]
    assert graph.run("suggestions", "confirm", yes, *graph.place).code == 0
    assert graph.run("suggestions", "reject", no, *graph.place).code == 0
    other = graph.run("suggestions", "reject", yes, *graph.place)
    assert other.failure == f"suggestion {yes} is confirmed: it cannot be rejected"
    other = graph.run("suggestions", "confirm", no, *graph.place)
    assert other.failure == f"suggestion {no} is rejected: it cannot be confirmed"


def test_a_page_of_suggestions_ends_with_a_cursor(graph: Graph) -> None:
    graph.tell(*(said(f"a{number}", "USES", "b") for number in range(3)))
    listing = ("suggestions", "list", *graph.place, "--as", graph.client, "--limit", 2)
    first = graph.run(*listing, "--json").json
    rest = graph.run(*listing, "--cursor", first["nextCursor"], "--json").json
    assert (len(first["facts"]), len(rest["facts"])) == (2, 1)
    assert "There are more" in graph.run(*listing).out


def test_suggestions_are_narrowed_by_subject_and_predicate(graph: Graph) -> None:
    graph.tell(said("a", "USES", "b"), said("a", "OWNED_BY", "t"), said("c", "USES", "d"))

    def listed(*arguments: object) -> set[str]:
        listing = ("suggestions", "list", *graph.place, "--as", graph.client)
        facts = graph.run(*listing, *arguments, "--json").json["facts"]
        return {f"{fact['subject']} {fact['predicate']} {fact['object']}" for fact in facts}

    assert listed("--predicate", "USED_BY") == {"b USED_BY a", "d USED_BY c"}
    assert listed("--subject", "T") == {"t OWNS a"}
    assert listed("--subject", "t", "--predicate", "USED_BY") == set()


def test_a_fact_that_is_no_suggestion_is_not_settled(graph: Graph) -> None:
    graph.tell(said("a", "USES", "b"))
    fact, unknown = graph.fact_id("b"), str(uuid.uuid4())
    for wanted in (fact, unknown):
        done = graph.run("suggestions", "confirm", wanted, *graph.place)
        assert done.failure == f"there is no suggestion {wanted}"


def test_rules_of_a_new_ontology_are_applied_to_known_facts(graph: Graph) -> None:
    graph.tell(said("a", "SHOUTS_AT", "b"))
    ontology = graph.folder / "acme.yaml"
    ontology.write_text(
        "name: acme\nversion: 2\nextends: default\npredicates:\n"
        "  SHOUTS_AT:\n    inverse: SHOUTED_AT_BY\n  SHOUTED_AT_BY:\n    inverse: SHOUTS_AT\n"
    )
    graph.run("ontology", "set", ontology, "--tenant", graph.tenant)
    done = graph.run("infer", *graph.place, "--json").json
    assert done["suggested"] == 1
    assert graph.suggestions().keys() == {"b SHOUTED_AT_BY a"}
    again = graph.run("infer", *graph.place).out
    assert again.endswith(" that a rule applies to: 0 new suggestions.\n")


def test_nothing_is_inferred_in_a_project_that_is_not_there(graph: Graph) -> None:
    place = ("--tenant", graph.tenant, "--project", "nowhere")
    assert graph.run("infer", *place).failure == "there is no project nowhere"


def test_a_retracted_fact_is_believed_no_longer_nor_what_rested_on_it(graph: Graph) -> None:
    graph.tell(said("a", "USES", "b"))
    wanted = graph.fact_id("b")
    (suggestion,) = graph.suggestions().values()
    graph.run("suggestions", "confirm", suggestion, *graph.place)
    done = graph.run("retract", wanted, *graph.place)
    assert done.out == (
        f"Fact {wanted} is retracted, and stays in the history."
        " 1 fact that rested on it is withdrawn.\n"
    )
    assert graph.facts() == []
    again = graph.run("retract", wanted, *graph.place)
    assert again.out == f"Fact {wanted} was believed no longer already.\n"
    assert graph.run("retract", wanted, *graph.place, "--json").json["closed"] == []


def test_an_unknown_fact_is_not_retracted(graph: Graph) -> None:
    unknown = uuid.uuid4()
    assert graph.run("retract", unknown, *graph.place).failure == f"there is no fact {unknown}"
    done = graph.run("retract", "nonsense", *graph.place)
    assert done.code == 2
    assert "'nonsense' is not a valid UUID" in done.err
