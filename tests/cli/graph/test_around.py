from __future__ import annotations

import pytest

from tests.cli.graph.conftest import Graph, said


@pytest.fixture
def told(graph: Graph) -> Graph:
    graph.tell(
        said("checkout", "CALLS_API_OF", "payments", validFrom=2022),
        said("payments", "CALLS_API_OF", "ledger", validFrom=2021),
        said("ledger", "STORES_IN", "postgres", validFrom=2020, objectType="database"),
        said("checkout", "READS", "ledger", validFrom=2030),
    )
    return graph


def tree(shown: str) -> list[str]:
    """The lines of the tree, without windows, trust and source."""
    lines = shown.split("\n\n")[1].splitlines()
    return [line.split("  [")[0].rstrip() for line in lines]


def test_what_is_around_an_entity_is_a_tree_by_distance(told: Graph) -> None:
    shown = told.ask("expand", "payments", "--hops", 2).out
    assert shown.splitlines()[0].startswith(
        f"{told.tenant}/p1 as {told.client}, groups eng · 4 entities, 3 facts within 2 hops as of "
    )
    assert tree(shown) == [
        "payments",
        "├─ → CALLS_API_OF  ledger",
        "│  └─ → STORES_IN  postgres (database)",
        "└─ ← CALLS_API_OF  checkout",
    ]
    assert shown.splitlines()[-1] == "→ subject to object  ← object to subject"


def test_each_fact_is_shown_once_and_each_entity_opened_once(told: Graph) -> None:
    shown = told.ask("expand", "payments", "--hops", 2, "--as-of", "2031").out
    assert tree(shown) == [
        "payments",
        "├─ → CALLS_API_OF  ledger",
        "│  ├─ → STORES_IN  postgres (database)",
        "│  └─ ← READS  checkout *",
        "└─ ← CALLS_API_OF  checkout",
    ]
    assert shown.splitlines()[-1].endswith("* shown elsewhere too")


def test_direction_predicates_and_time_bound_the_tree(told: Graph) -> None:
    def names(*arguments: object) -> list[str]:
        graph = told.ask("expand", "payments", *arguments, "--json").json
        return [node["name"] for node in graph["nodes"]]

    assert names("--direction", "out") == ["payments", "ledger"]
    assert names("--direction", "in") == ["payments", "checkout"]
    assert names("--as-of", "2021-06") == ["payments", "ledger"]
    assert names("--hops", 3, "--predicate", "STORES_IN") == ["payments"]


def test_a_cut_is_said(told: Graph) -> None:
    shown = told.ask("expand", "payments", "--hops", 2, "--max-edges", 1).out
    assert "There is more: raise --max-nodes or --max-edges" in shown
    told.tell(*(said("payments", "USES", f"tool {number}") for number in range(3)))
    shown = told.ask("expand", "payments", "--fan-out", 2).out
    assert "More facts than were followed at: payments (raise --fan-out)." in shown


def test_nothing_around_is_said(told: Graph) -> None:
    unknown = "No fact about nobody found in what this client may read."
    assert unknown in told.ask("expand", "nobody").out
    beside = told.ask("expand", "payments", "nobody").out
    assert unknown in beside
    assert "→ CALLS_API_OF  ledger" in beside
    assert "No fact about" not in told.ask("expand", "payments").out


def test_a_path_is_a_chain_with_its_facts_below(told: Graph) -> None:
    shown = told.ask("paths", "postgres", "checkout").out.split("\n\n")
    assert "· 1 path from postgres to checkout as of " in shown[0]
    lines = shown[1].splitlines()
    assert lines[0] == "1. postgres ← ledger ← payments ← checkout"
    assert [line.split()[:3] for line in lines[1:]] == [
        ["ledger", "STORES_IN", "postgres"],
        ["payments", "CALLS_API_OF", "ledger"],
        ["checkout", "CALLS_API_OF", "payments"],
    ]


def test_arrows_turn_where_the_walk_goes_against_a_fact(told: Graph) -> None:
    told.tell(said("cart", "CALLS_API_OF", "payments"))
    assert "1. cart → payments ← checkout" in told.ask("paths", "cart", "checkout").out
    assert "1. payments → ledger" in told.ask("paths", "Payments", "ledger").out


def test_paths_are_bounded_and_valid_at_the_time(told: Graph) -> None:
    ends = ("paths", "checkout", "postgres")
    assert told.ask(*ends, "--json").json["paths"][0]["hops"] == 3
    assert told.ask(*ends, "--as-of", "2031", "--json").json["paths"][0]["hops"] == 2
    assert told.ask(*ends, "--max-hops", 2, "--json").json["paths"] == []
    assert "No path of at most 2 hops" in told.ask(*ends, "--max-hops", 2).out
    assert told.ask(*ends, "--as-of", "2020-06", "--json").json["paths"] == []


@pytest.mark.parametrize("verb", [("expand", "a", "--hops"), ("paths", "a", "b", "--max-hops")])
def test_nine_hops_are_wrong_usage(graph: Graph, verb: tuple[str, ...]) -> None:
    done = graph.ask(*verb, 9)
    assert done.code == 2
    assert "9 is not in the range" in done.err


def test_too_many_entities_are_one_line(graph: Graph) -> None:
    names = [f"e{number}" for number in range(33)]
    failure = graph.ask("expand", *names).failure
    assert failure == "33 entities given: name 1 to 32 of them"
