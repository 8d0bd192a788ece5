"""A conversation over HTTP, with the real model: turns cited alone, and a confidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from knowledge.client import KnowledgeClient
from knowledge.runtime import Runtime
from tests.publication import collection_of, publish_documents
from tests.retrieval_api.conftest import CallerFactory
from tests.retrieval_api.service import Caller

TENANT = "talkers"
SAID = (
    ("Ada", "Morning! Did the summer school go well?"),
    ("Grace", "It did, twelve pupils came."),
    ("Ada", "Which topic did they like best?"),
    ("Grace", "Building a tide clock. Two of them took theirs home."),
    ("Ada", "Lovely. I spent the week in the archive."),
    ("Grace", "Still looking for the lighthouse plans?"),
    ("Ada", "Found them on Thursday, in a box of harbour bills."),
    ("Grace", "You must be relieved."),
)


def turns(session: str, day: int) -> list[dict[str, Any]]:
    time = f"2026-0{session}-{day:02}T10:00:00Z"
    return [
        {
            "id": f"{session}:{number}",
            "text": text,
            "metadata": {"speaker": speaker, "session": session, "time": time},
        }
        for number, (speaker, text) in enumerate(SAID, start=1)
    ]


@pytest.fixture(scope="module")
def reader(runtime: Runtime, caller_factory: CallerFactory) -> Iterator[Caller]:
    collection = collection_of(runtime, TENANT, "talk", profile="minilm@1", kind="conversation")
    publish_documents(runtime, collection, turns("5", 4))
    yield caller_factory(TENANT)


def test_the_turn_that_answers_is_found_beside_the_one_that_has_the_words(reader: Caller) -> None:
    answer = reader.search("Where did Ada find the lighthouse plans?")
    first = {one["citation"]["path"]: one for one in answer["candidates"][:3]}
    assert "5:6" in first
    best = first["5:7"]
    assert best["text"] == SAID[6][1]
    assert best["metadata"] == {"speaker": "Ada", "session": "5", "time": "2026-05-04T10:00:00Z"}
    assert set(best["citation"]["signals"]) <= {"vector", "fullText", "metadata"}
    assert not answer["degraded"]


def test_a_question_about_something_else_has_low_support(reader: Caller) -> None:
    own = reader.search("Where did Ada find the lighthouse plans?")
    other = reader.search("Which enzyme breaks down lactose in the small intestine?")
    assert 0 <= other["confidence"] < 0.2 < 0.8 < own["confidence"] <= 1
    assert (own["lowSupport"], other["lowSupport"]) == (False, True)


def test_words_alone_are_less_certain(reader: Caller) -> None:
    words = reader.search("Where did Ada find the lighthouse plans?", legs=["fullText"])
    both = reader.search("Where did Ada find the lighthouse plans?")
    assert words["confidence"] <= 0.9
    assert abs(words["confidence"] - 0.5) < abs(both["confidence"] - 0.5)


def test_nothing_found_has_no_confidence(caller_factory: CallerFactory, runtime: Runtime) -> None:
    collection_of(runtime, "silent", "talk", kind="conversation")
    answer = caller_factory("silent").search("anything")
    assert (answer["confidence"], answer["lowSupport"]) == (0.0, True)


def test_a_chunk_out_of_reach_of_any_hit_is_explained(reader: Caller, runtime: Runtime) -> None:
    found = reader.search("lighthouse plans", legs=["fullText"])
    held = {one["citation"]["path"]: one["citation"]["chunkId"] for one in found["candidates"]}
    assert "5:1" not in held
    everything = reader.search("Morning", legs=["vector"])
    [first] = [c for c in everything["candidates"] if c["citation"]["path"] == "5:1"]
    explained = reader.search(
        "lighthouse plans", legs=["fullText"], explainChunk=first["citation"]["chunkId"]
    )["explainedChunk"]
    assert explained["outcome"] == "not_a_candidate"
    [words] = [leg for leg in explained["legs"] if leg["leg"] == "fullText"]
    assert words["reason"] == "it holds none of the query's words"
    near = reader.search("lighthouse plans", legs=["fullText"], explainChunk=held["5:8"])[
        "explainedChunk"
    ]
    assert near["outcome"] == "returned"


def test_the_typed_client_reads_the_confidence(reader: Caller) -> None:
    with KnowledgeClient(reader.url, reader.client_id, reader.secret) as client:
        answer = client.search("Where did Ada find the lighthouse plans?", project_id="p1")
    assert answer.confidence is not None
    assert answer.confidence > 0.8
    assert answer.low_support is False
