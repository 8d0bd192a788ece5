from __future__ import annotations

import uuid

from tests.cli.graph.conftest import Graph, said


def test_a_merged_name_finds_the_entity_until_the_merge_is_undone(graph: Graph) -> None:
    graph.tell(said("payments", "USES", "ledger"))
    tenant = ("--tenant", graph.tenant)
    assert graph.facts("--subject", "PSP") == []
    done = graph.run("merge", "PSP", "payments", *tenant, "--reason", "old name")
    assert done.out.startswith("PSP stands for payments in default")
    assert [fact["object"] for fact in graph.facts("--subject", "psp")] == ["ledger"]
    (merge,) = graph.run("merges", "list", *tenant, "--json").json["merges"]
    assert (merge["name"], merge["into"], merge["reason"]) == ("PSP", "payments", "old name")
    assert (merge["mergedBy"], merge["undoneAt"]) == ("operator", None)
    done = graph.run("merges", "undo", merge["mergeId"], *tenant)
    assert done.out == f"Merge {merge['mergeId']} is undone, from the next request on.\n"
    assert graph.facts("--subject", "psp") == []
    assert " undone 2" in graph.run("merges", "list", *tenant).out
    again = graph.run("merges", "undo", merge["mergeId"], *tenant)
    assert again.failure == f"there is no merge {merge['mergeId']}, or it was undone"


def test_a_name_that_no_fact_has_is_merged_with_a_hint(graph: Graph) -> None:
    graph.tell(
        said("payments", "USES", "ledger", subjectType="service"),
        said("PSP", "USES", "cards", namespace="crm"),
    )
    tenant = ("--tenant", graph.tenant)
    hint = "No fact in {} names {} yet: look whether it is spelt so."
    assert graph.run("merge", "PSP", "payments", *tenant).out.splitlines()[1:] == [
        hint.format("default", "PSP")
    ]
    there = ("--namespace", "crm")
    assert graph.run("merge", "Cards", "paymnts", *tenant, *there).out.splitlines()[1:] == [
        hint.format("crm", "paymnts")
    ]
    typed = ("--type", "service", "--into-type", "team")
    assert "No fact" not in graph.run("merge", "Payments", "ledger", *tenant, *typed).out
    other = ("--type", "team")
    assert hint.format("default", "payments") in (
        graph.run("merge", "payments", "ledger", *tenant, *other).out
    )


def test_types_and_namespace_of_a_merge_are_kept(graph: Graph) -> None:
    tenant = ("--tenant", graph.tenant)
    options = ("--type", "service", "--into-type", "team", "--namespace", "crm")
    made = graph.run("merge", "pay", "pay", *tenant, *options, "--json").json
    (merge,) = graph.run("merges", "list", *tenant, "--json").json["merges"]
    assert (merge["mergeId"], merge["namespace"]) == (made["mergeId"], "crm")
    assert (merge["type"], merge["intoType"]) == ("service", "team")
    shown = graph.run("merges", "list", *tenant).out
    assert "pay (service)" in shown
    assert "pay (team)" in shown


def test_a_merge_that_cannot_be_is_one_line(graph: Graph) -> None:
    tenant = ("--tenant", graph.tenant)
    graph.run("merge", "a", "b", *tenant)
    taken = "a was merged already: undo that merge first"
    assert graph.run("merge", "a", "c", *tenant).failure == taken
    circle = "a stands for b already: undo that merge first"
    assert graph.run("merge", "b", "a", *tenant).failure == circle
    assert graph.run("merge", "x", "X", *tenant).failure == "x is that entity already"
    assert "NAME is empty" in graph.run("merge", " ", "b", *tenant).failure
    assert "not a type name" in graph.run("merge", "x", "b", *tenant, "--type", "A b").failure
    missing = "there is no tenant nobody-here"
    assert graph.run("merge", "a", "b", "--tenant", "nobody-here").failure == missing


def test_another_tenant_s_merge_is_not_undone(graph: Graph) -> None:
    merge = graph.run("merge", "a", "b", "--tenant", graph.tenant, "--json").json["mergeId"]
    failure = graph.run("merges", "undo", merge, "--tenant", f"{graph.tenant}-other").failure
    assert failure == f"there is no merge {merge}, or it was undone"
    assert graph.run("merges", "undo", uuid.uuid4(), "--tenant", graph.tenant).code == 1
