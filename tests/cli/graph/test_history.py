from __future__ import annotations

from tests.cli.graph.conftest import Graph, broker, said


def rows(shown: str, heading: str) -> list[str]:
    """The rows below a heading, blanks collapsed."""
    (part,) = [part for part in shown.split("\n\n") if part.splitlines()[0] == heading]
    return [" ".join(line.split()) for line in part.splitlines()[1:]]


def test_a_timeline_goes_by_predicate_from_the_oldest_and_says_what_ended_a_fact(
    graph: Graph,
) -> None:
    graph.tell(
        broker("Azure Service Bus", "2024-05"),
        broker("RabbitMQ", "2019"),
        said("Payments", "USES_MESSAGE_BROKER", "NATS", validFrom="2090"),
        said("checkout", "DEPENDS_ON", "payments", validFrom=2021, validTo=2023),
    )
    shown = graph.ask("history", "payments").out
    assert "· 4 tellings of payments" in shown.splitlines()[0]
    assert rows(shown, "payments USES_MESSAGE_BROKER …") == [
        "· [2019 … 2024-05-01) RabbitMQ SourceFact 1 cmdb@v1 superseded by Azure Service Bus",
        "● [2024-05 … 2090-01-01) Azure Service Bus SourceFact 1 cmdb@v1 superseded by NATS",
        "○ [2090 …) NATS SourceFact 1 cmdb@v1",
    ]
    assert rows(shown, "… DEPENDS_ON payments") == ["· [2021 … 2023) checkout SourceFact 1 cmdb@v1"]
    assert shown.splitlines()[-1] == "● holds now  · ended  ○ has not begun"


def test_a_belief_that_was_closed_stays_visible_with_the_reason(graph: Graph) -> None:
    graph.tell(said("a", "USES", "wrong"), said("a", "USES", "gone"), said("a", "USES", "same"))
    graph.tell(
        said("a", "USES", "right", corrects=graph.fact_id("wrong")),
        said("a", "USES", "same", sourceVersion="v2"),
    )
    graph.run("retract", graph.fact_id("gone"), *graph.place)
    shown = graph.ask("history", "a").out
    closed = {row.split()[2]: row for row in rows(shown, "a USES …") if row.startswith("✗")}
    assert closed.keys() == {"wrong", "gone"}
    assert " corrected 2" in closed["wrong"]
    assert closed["wrong"].endswith(": a USES right")
    assert " retracted 2" in closed["gone"]
    assert closed["gone"].endswith(" by operator")
    assert shown.splitlines()[-1] == "● holds now  ✗ believed no longer"


def test_a_fact_that_was_told_again_is_one_line_and_no_loss_of_belief(graph: Graph) -> None:
    graph.tell(said("a", "USES", "same", confidence=0.5, observedAt="2024"))
    graph.tell(said("a", "USES", "same", sourceVersion="v2", observedAt="2025"))
    shown = graph.ask("history", "a").out
    assert "· 2 tellings of a" in shown.splitlines()[0]
    assert rows(shown, "a USES …") == [
        "● always same SourceFact 1 cmdb@v2 told before by cmdb@v1 with SourceFact 0.5"
    ]
    assert shown.splitlines()[-1] == "● holds now"
    graph.tell(said("a", "USES", "same", sourceVersion="v3", observedAt="2026"))
    graph.run("retract", graph.fact_id("same"), *graph.place)
    (row,) = rows(graph.ask("history", "a").out, "a USES …")
    assert row.startswith("✗ always same SourceFact 1 cmdb@v3 retracted 2")
    assert row.endswith("; told 2 times before, first by cmdb@v1 with SourceFact 0.5")


def test_a_telling_whose_repetition_is_cut_off_is_marked_as_told_again(graph: Graph) -> None:
    graph.tell(said("a", "USES", "same", observedAt="2024"))
    graph.tell(said("a", "USES", "same", sourceVersion="v2", observedAt="2025"))
    shown = graph.ask("history", "a", "--limit", 1).out
    (row,) = rows(shown, "a USES …")
    assert row.startswith("↻ always same SourceFact 1 cmdb@v1 told again 2")
    assert "↻ told again since" in shown


def test_a_history_is_narrowed_and_cut(graph: Graph) -> None:
    graph.tell(
        said("a", "USES", "b"),
        said("a", "DEPENDS_ON", "c"),
        said("a", "DEPENDS_ON", "d", domain="business"),
    )

    def objects(*arguments: object) -> set[str]:
        facts = graph.ask("history", "a", *arguments, "--json").json["facts"]
        return {fact["object"] for fact in facts if fact["suggestion"] is None}

    assert objects() == {"b", "c", "d"}
    assert objects("--predicate", "DEPENDS_ON") == {"c", "d"}
    assert objects("--domain", "business") == {"d"}
    assert "There is more" in graph.ask("history", "a", "--limit", 1).out


def test_ids_are_shown_when_asked_for(graph: Graph) -> None:
    graph.tell(broker("RabbitMQ", "2019"))
    wanted = graph.fact_id("RabbitMQ")
    assert wanted not in graph.ask("history", "payments").out
    assert wanted in graph.ask("history", "payments", "--ids").out


def test_an_entity_nobody_spoke_of_has_no_history(graph: Graph) -> None:
    assert "Nothing told in what this client may read." in graph.ask("history", "nobody").out
