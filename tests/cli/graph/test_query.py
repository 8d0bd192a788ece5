from __future__ import annotations

import pytest

from tests.cli.conftest import Knowledge
from tests.cli.graph.conftest import Graph, broker, said


@pytest.fixture
def told(graph: Graph) -> Graph:
    graph.tell(
        broker("RabbitMQ", "2019-03"),
        broker("Azure Service Bus", "2024"),
        said("payments", "DEPENDS_ON", "ledger", validFrom=2020, validTo="2022-07-14"),
    )
    return graph


def test_facts_hold_at_the_time_asked_about(told: Graph) -> None:
    def objects(*arguments: str) -> list[str]:
        return sorted(fact["object"] for fact in told.facts(*arguments))

    assert objects() == ["Azure Service Bus"]
    assert objects("--as-of", "2021") == ["RabbitMQ", "ledger"]
    assert objects("--as-of", "2022-07-13") == ["RabbitMQ", "ledger"]
    assert objects("--as-of", "2022-07-14") == ["RabbitMQ"]
    assert objects("--as-of", "2019-02-28T23:59:59Z") == []
    assert objects("--between", "2022-07-14", "2024") == ["RabbitMQ"]
    assert objects("--between", "2023", "2025") == ["Azure Service Bus", "RabbitMQ"]
    assert objects("--known-at", "2020") == []
    assert objects("--subject", "PAYMENTS", "--as-of", "2021", "--predicate", "DEPENDS_ON") == [
        "ledger"
    ]


def test_a_fact_is_one_line_with_window_trust_and_source(told: Graph) -> None:
    shown = told.ask("query", "--as-of", "2021").out.splitlines()
    assert shown[0] == (f"{told.tenant}/p1 as {told.client}, groups eng · 2 facts as of 2021-01-01")
    assert [" ".join(line.split()) for line in shown[2:]] == [
        "SUBJECT PREDICATE OBJECT HOLDS TRUST SAID BY",
        "payments DEPENDS_ON ledger [2020 … 2022-07-14) SourceFact 1 cmdb@v1",
        "payments USES_MESSAGE_BROKER RabbitMQ [2019-03 … 2024-01-01) SourceFact 1 cmdb@v1"
        " superseded",
    ]


def test_ids_are_shown_when_asked_for(told: Graph) -> None:
    wanted = told.fact_id("Azure Service Bus")
    assert wanted not in told.ask("query").out
    assert wanted in told.ask("query", "--ids").out


def test_contradictions_and_suggestions_are_marked(told: Graph) -> None:
    agent = {"sourceId": None, "sourceVersion": None, "client": "agent", "sessionId": "s1"}
    told.tell(broker("Kafka", "2025", confidence=0.6, **agent), said("x", "OWNED_BY", "y"))
    plain = told.ask("query").out
    assert "CONTRADICTS Kafka" in plain
    assert "AgentObservation 0.6  agent s1" in plain
    assert "SUGGESTION" not in plain
    assert "CONTRADICTS 1 fact\n" in told.ask("query", "--object", "Kafka").out
    assert "SUGGESTION by inverse" in told.ask("query", "--suggestions").out


def test_facts_are_sieved_by_who_says_them_and_how_surely(told: Graph) -> None:
    told.tell(
        said("a", "USES", "b", sourceId="wiki", domain="business", namespace="other"),
        said("a", "USES", "c", verified=True),
        said("a", "USES", "d", trustTier="UnverifiedMemory"),
    )

    def objects(*arguments: str) -> set[str]:
        return {fact["object"] for fact in told.facts("--subject", "a", *arguments)}

    assert objects() == {"b", "c", "d"}
    assert objects("--source", "wiki") == {"b"}
    assert objects("--namespace", "other") == {"b"}
    assert objects("--domain", "business") == {"b"}
    assert objects("--domain", "business", "--domain", "architecture") == {"b", "c", "d"}
    assert objects("--verified") == {"c"}
    assert objects("--unverified") == {"b", "d"}
    assert objects("--min-trust", "SourceFact") == {"b", "c"}


def test_a_page_ends_with_the_cursor_of_the_next(told: Graph) -> None:
    told.tell(*(said("a", "USES", f"b{number}") for number in range(3)))
    first = told.ask("query", "--subject", "a", "--limit", 2, "--json").json
    assert len(first["facts"]) == 2
    more = ("query", "--subject", "a", "--limit", 2, "--cursor", first["nextCursor"])
    rest = told.ask(*more, "--json").json
    assert (len(rest["facts"]), rest["nextCursor"]) == (1, None)
    shown = told.ask("query", "--subject", "a", "--limit", 2).out
    assert "There are more: repeat with --cursor " in shown
    assert "There are more" not in told.ask(*more).out


def test_another_question_s_cursor_is_refused(told: Graph, knowledge: Knowledge) -> None:
    told.tell(said("a", "USES", "b"), said("a", "USES", "c"))
    cursor = told.ask("query", "--limit", 1, "--json").json["nextCursor"]
    refusal = "cursor is not one that this question gave: repeat the question without a cursor"
    assert told.ask("query", "--limit", 2, "--cursor", cursor).failure == refusal
    other = f"{told.tenant}-other"
    made = knowledge("clients", "create", "--tenant", other, "--projects", "p1", "--json").json
    asked = ("--tenant", other, "--project", "p1", "--as", made["clientId"])
    assert told.run("query", *asked, "--limit", 1, "--cursor", cursor).failure == refusal


def test_an_unknown_predicate_that_finds_nothing_is_said(told: Graph) -> None:
    shown = told.ask("query", "--predicate", "DEPNDS_ON").out
    assert "No fact found in what this client may read." in shown
    assert shown.endswith(
        "Ontology default@1 has no predicate DEPNDS_ON, nor has any fact."
        " Did you mean DEPENDS_ON?\n"
    )
    assert "has no predicate" not in told.ask("query", "--predicate", "OWNED_BY").out
    told.tell(said("a", "SHOUTS_AT", "b", validTo="2020"))
    assert "has no predicate" not in told.ask("query", "--predicate", "SHOUTS_AT").out
    wire = told.ask("query", "--predicate", "DEPNDS_ON", "--json").json
    assert (wire["facts"], wire["nextCursor"]) == ([], None)


def test_text_of_a_fact_does_not_act_on_the_terminal(told: Graph) -> None:
    told.tell(said("a", "USES", "b\u202egnp.exe"))
    assert "\u202e" not in told.ask("query").out
    assert told.fact_id("b\u202egnp.exe")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--predicate", "uses"), "predicate 'uses' is not UPPER_SNAKE_CASE"),
        (("--subject", "x" * 513), "subject has 513 characters"),
        (("--between", "2025", "2024"), "--between FROM TO: TO is not later than FROM"),
        (("--between", "2024", "2024"), "--between FROM TO: TO is not later than FROM"),
        (("--cursor", "nonsense"), "cursor is not one that this question gave"),
    ],
)
def test_a_question_that_is_not_valid_is_one_line(
    graph: Graph, arguments: tuple[str, ...], message: str
) -> None:
    assert graph.ask("query", *arguments).failure.startswith(message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--as-of", "lately"), "'lately' is not a time"),
        (("--domain", "cooking"), "'cooking' is not one of"),
        (("--limit", "0"), "0 is not in the range 1<=x<=1000"),
        (("--min-trust", "Gospel"), "'Gospel' is not one of"),
    ],
)
def test_an_option_that_is_not_valid_is_wrong_usage(
    graph: Graph, arguments: tuple[str, ...], message: str
) -> None:
    done = graph.ask("query", *arguments)
    assert done.code == 2
    (line,) = done.err.splitlines()
    assert message in line


def test_there_is_no_question_without_a_client_and_its_project(graph: Graph) -> None:
    assert "say who asks with --as CLIENT" in graph.run("query", *graph.place).failure
    elsewhere = ("--tenant", graph.tenant, "--project", "p2", "--as", graph.client)
    assert graph.run("query", *elsewhere).failure == "there is no project p2"
