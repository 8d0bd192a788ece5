"""Facts in a search: found by the entities and times that a question names, within the scope."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from knowledge.graph.querying import FactReader
from knowledge.model.scope import Caller
from knowledge.retrieval.answer import Answer, FactCandidate, LegState
from knowledge.retrieval.naming import MAX_NAME_WORDS, MAX_QUERY_WORDS, name_spans
from knowledge.retrieval.request import Filters, Leg, SearchRequest
from knowledge.retrieval.wire import answer_to_wire
from knowledge.runtime import Runtime
from knowledge.storage.postgres.database import AsyncDatabase
from tests.asking import Asker, asking, caller_of
from tests.graph.telling import Graph, at, fact, observed
from tests.publication import collection_of, publish_documents
from tests.storage.conftest import BACKENDS


@pytest.fixture(scope="module")
def asker(runtime: Runtime, home: Any) -> Iterator[Asker]:
    backend = BACKENDS["weaviate"](home, runtime)
    with asking(runtime, backend.search()) as opened:
        yield opened


@pytest.fixture
def graph(runtime: Runtime, tenant: str) -> Iterator[Graph]:
    with asyncio.Runner() as runner:
        database = AsyncDatabase(runtime.urls.app_url)
        runner.run(database.open())
        yield Graph(runtime, tenant, FactReader(database), runner)
        runner.run(database.close())


@pytest.fixture
def ask(asker: Asker, graph: Graph) -> Any:
    def answer(query: str, caller: Caller | None = None, **fields: Any) -> Answer:
        return asker.ask(caller or graph.caller, SearchRequest(query, "p1", **fields))

    return answer


def facts(answer: Answer) -> list[str]:
    return [found.text for found in answer.candidates if isinstance(found, FactCandidate)]


def states(answer: Answer) -> dict[str, LegState]:
    return {report.leg.value: report.state for report in answer.legs if report.collection is None}


def test_a_question_that_names_an_entity_finds_its_facts_and_those_next_to_it(
    graph: Graph, ask: Any
) -> None:
    graph.tell(
        fact("Billing Service", "USES", "RabbitMQ"),
        fact("RabbitMQ", "RUNS_ON", "node seven"),
        fact("Payroll", "USES", "Kafka"),
    )
    answer = ask("What does the Billing Service use?")
    assert facts(answer) == ["Billing Service uses RabbitMQ", "RabbitMQ runs on node seven"]
    assert states(answer)["graph"] is LegState.OK
    found = answer.candidates[0]
    assert isinstance(found, FactCandidate)
    assert found.citation.fact.provenance.source_version == "v1"
    assert found.citation.signals == {"graph": 1.0}
    scores = [candidate.citation.score for candidate in answer.candidates]
    assert scores == sorted(scores, reverse=True) and 0 <= scores[-1] <= scores[0] <= 1


def test_facts_are_cited_with_the_fields_of_a_chunk_beside_their_own(
    graph: Graph, ask: Any
) -> None:
    fact_id = graph.tell_one(fact("Billing", "USES", "RabbitMQ", validFrom=2024))
    [candidate] = answer_to_wire(ask("billing", explain=True))["candidates"]
    citation = candidate["citation"]
    assert candidate["type"] == "fact"
    assert candidate["text"] == "Billing uses RabbitMQ (from 2024)"
    assert citation["factId"] == str(fact_id)
    assert citation["sourceId"] == "s1" and citation["sourceVersion"] == "v1"
    assert citation["validFrom"] == "2024-01-01T00:00:00Z"
    assert citation["trustTier"] == "SourceFact"
    assert {"path", "indexRevision", "chunkId", "score", "signals"} <= citation.keys()
    assert candidate["explain"]["ranks"] == {"graph": 1}


def test_the_graph_leg_reads_what_holds_at_the_time_asked_about(graph: Graph, ask: Any) -> None:
    graph.tell(
        fact("Billing", "USES", "RabbitMQ", validFrom=2020, validTo=2024),
        fact("Billing", "USES", "Service Bus", validFrom=2024),
    )
    graph_leg = (Leg.GRAPH,)
    assert facts(ask("billing", legs=graph_leg)) == ["Billing uses Service Bus (from 2024)"]
    then = facts(ask("billing", legs=graph_leg, as_of=at(2022)))
    assert then == ["Billing uses RabbitMQ (from 2020 until 2024)"]


def test_a_time_in_the_question_brings_the_facts_that_held_then(graph: Graph, ask: Any) -> None:
    graph.tell(
        fact("Billing", "USES", "RabbitMQ", validFrom=2020, validTo=2024),
        fact("Billing", "USES", "Service Bus", validFrom=2024),
    )
    answer = ask("what did Billing use in 2022?")
    assert facts(answer)[0] == "Billing uses RabbitMQ (from 2020 until 2024)"
    assert states(answer)["temporal"] is LegState.OK
    between = ask("billing", legs=(Leg.TEMPORAL,), between=(at(2021), at(2023)))
    assert facts(between) == ["Billing uses RabbitMQ (from 2020 until 2024)"]


def test_a_time_without_an_entity_brings_what_changed_then(graph: Graph, ask: Any) -> None:
    graph.tell(
        fact("Billing", "USES", "RabbitMQ", validFrom="2024-05"),
        fact("Payroll", "USES", "Kafka", validFrom=2010),
    )
    found = facts(ask("what happened in May 2024", legs=(Leg.TEMPORAL,)))
    assert found == ["Billing uses RabbitMQ (from 2024-05)"]


def test_a_question_without_a_time_or_an_entity_says_so(graph: Graph, ask: Any) -> None:
    graph.tell(fact("Billing", "USES", "RabbitMQ"))
    answer = ask("something else entirely")
    reasons = {r.leg.value: r.reason for r in answer.legs if r.collection is None}
    assert reasons["temporal"] == "the query names no time"
    assert reasons["graph"] == "the query names no entity of a fact"
    assert not answer.degraded and facts(answer) == []


def test_a_fact_that_may_not_be_read_is_neither_found_nor_known_by_its_name(
    graph: Graph, ask: Any
) -> None:
    graph.tell(
        fact("Billing", "USES", "RabbitMQ", acl=["group:eng"]),
        fact("RabbitMQ", "RUNS_ON", "node seven"),
    )
    engineer = graph.client(groups=["eng"])
    assert len(facts(ask("billing", engineer))) == 2
    answer = ask("billing")
    assert facts(answer) == []
    assert "no entity" in next(r.reason for r in answer.legs if r.leg is Leg.GRAPH)
    graph.change_source("s1", acl=["user:nobody"])
    assert facts(ask("billing", engineer)) == []


def test_facts_follow_the_filters_of_the_request(graph: Graph, ask: Any) -> None:
    graph.tell(
        fact("Billing", "USES", "RabbitMQ"),
        fact("Billing", "USES", "Kafka", sourceId="s2"),
        observed("Billing", "USES", "Redis"),
    )
    one = ask("billing", filters=Filters(source_id="s2"))
    assert facts(one) == ["Billing uses Kafka"]
    trusted = ask("billing", min_trust="SourceFact")
    assert len(facts(trusted)) == 2
    skipped = ask("billing", filters=Filters(path_prefix="src/"))
    assert facts(skipped) == [] and states(skipped)["graph"] is LegState.SKIPPED


def test_named_collections_stand_for_the_facts_of_their_sources(
    runtime: Runtime, graph: Graph, ask: Any
) -> None:
    collection = collection_of(runtime, graph.tenant_id)
    publish_documents(runtime, collection, [{"id": "a", "text": "nothing"}], source="s2")
    graph.tell(fact("Billing", "USES", "RabbitMQ"), fact("Billing", "USES", "Kafka", sourceId="s2"))
    assert facts(ask("billing", collections=("docs",))) == ["Billing uses Kafka"]
    assert len(facts(ask("billing"))) == 2


def test_an_observation_never_stands_above_a_source(
    runtime: Runtime, graph: Graph, ask: Any
) -> None:
    collection = collection_of(runtime, graph.tenant_id)
    publish_documents(runtime, collection, [{"id": "a", "text": "Billing once used Kafka."}])
    graph.tell(observed("Billing", "USES", "Kafka"))
    answer = ask("does Billing use Kafka")
    tiers = [candidate.citation.trust_tier.value for candidate in answer.candidates]
    assert tiers == ["SourceFact", "AgentObservation"]


def test_a_fact_brings_the_chunk_that_says_it(runtime: Runtime, graph: Graph, ask: Any) -> None:
    collection = collection_of(runtime, graph.tenant_id)
    publish_documents(
        runtime, collection, [{"id": "a", "text": "It moved to another bus."}], source="s1"
    )
    [row] = graph.rows("select chunk_id from chunk_versions")
    graph.collections["docs"] = collection.collection_id
    graph.tell(fact("Billing", "USES", "Kafka", collection="docs", chunkId=str(row["chunk_id"])))
    answer = ask("billing")
    [chunk] = answer.chunks
    assert chunk.citation.chunk_id == row["chunk_id"]
    assert chunk.citation.signals["graph"] == 1.0
    report = next(r for r in answer.legs if r.leg is Leg.GRAPH and r.collection == "docs")
    assert (report.state, report.index_revision, report.count) == (LegState.OK, 1, 1)
    publish_documents(runtime, collection, [{"id": "b", "text": "Other."}], source="s1")
    assert facts(ask("billing")) == []


def test_facts_do_not_change_the_order_of_chunks(runtime: Runtime, graph: Graph, ask: Any) -> None:
    collection = collection_of(runtime, graph.tenant_id)
    documents = [
        {"id": f"d{n}", "text": f"billing {'invoice ' * n} {'tax ' * (9 - n)}"} for n in range(9)
    ]
    publish_documents(runtime, collection, documents)
    before = [c.citation.path for c in ask("billing invoice tax").chunks]
    graph.tell(*(fact("billing", "USES", f"thing {n}") for n in range(20)))
    after = ask("billing invoice tax", top_k=50)
    assert len(facts(after)) == 20
    assert [c.citation.path for c in after.chunks][: len(before)] == before


def test_another_project_has_no_facts(graph: Graph, asker: Asker) -> None:
    graph.tell(fact("Billing", "USES", "RabbitMQ"))
    other = caller_of(graph.runtime, graph.tenant_id, projects=["p2"])
    answer = asker.ask(other, SearchRequest("billing", "p2"))
    assert answer.candidates == ()
    assert {r.reason for r in answer.legs if r.leg is Leg.GRAPH} == {"the project has no facts"}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Who owned the Newton D. Baker House?", "newton d. baker house"),
        ("What about «Zürich»?", "zürich"),
        ("the teacher's pet", "teacher"),
        ("(RabbitMQ)", "rabbitmq"),
        ("Is it C++?", "c++"),
    ],
)
def test_names_are_tried_with_and_without_what_surrounds_them(text: str, key: str) -> None:
    assert key in name_spans(text)


def test_a_long_question_is_read_in_bounded_time() -> None:
    long = " ".join(f"word{number}" for number in range(100_000))
    assert len(name_spans(long)) <= MAX_QUERY_WORDS * MAX_NAME_WORDS
