"""What the time that a query names does to the order of an answer."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from knowledge.home import Home
from knowledge.model.collection import Collection
from knowledge.model.scope import TrustTier
from knowledge.retrieval.answer import Candidate
from knowledge.retrieval.planning import Target
from knowledge.retrieval.ranking import Found, rank
from knowledge.retrieval.request import SearchRequest
from knowledge.retrieval.time_prior import TIME_PRIOR, note_time_prior
from knowledge.retrieval.wire import candidate_to_wire
from knowledge.runtime import Runtime
from knowledge.text.bm25 import TermStatistics
from knowledge.text.time_windows import time_windows
from tests.asking import Asker, asking, caller_of
from tests.publication import Document, collection_of, publish_documents
from tests.storage.conftest import BACKENDS

NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)
TARGET = Target(
    uuid.UUID(int=9),
    "docs",
    1,
    None,
    {"s1": TrustTier.SOURCE_FACT},
    {},
    TermStatistics(0, 0.0, 0.0, {}, {}),
    {},
)


def _prior(query: str, text: str, *, title: str = "", updated_at: datetime | None = None) -> float:
    row = {"title": title, "text": text, "updated_at": updated_at}
    found = Found(row, TARGET, 1, None, 1.0)
    note_time_prior([found], time_windows(query, NOW))
    return found.prior


@pytest.mark.parametrize(
    ("query", "text", "is_met"),
    [
        ("who lived there in 1963", "bought in 1963 by a widow", True),
        ("who lived there in 1963", "bought in 1964 by a widow", False),
        ("who owned it from 1811 to 1827", "sold in 1820", True),
        ("who owned it from 1811 to 1827", "sold in 1828", False),
        ("who owned it in 1918", "its owner during 1916-1920", True),
        ("who owned it before 1794", "built in 1794", False),
        ("who owned it after 1794", "sold in 1811", True),
        ("what was decided in May 2026", "a decision of 2026", True),
        ("what was decided in May 2026", "a decision of 2025", False),
        ("fashion of the 1990s", "seen in 1994", True),
        ("fashion of 1994", "a matter of the 1990s", True),
        ("what was decided last week", "a decision of 2026", False),
        ("what was decided last year", "a decision of 2025", True),
    ],
)
def test_a_candidate_that_names_a_year_of_the_window_gets_the_prior(
    query: str, text: str, is_met: bool
) -> None:
    assert _prior(query, text) == (TIME_PRIOR if is_met else 0.0)
    assert _prior(query, "", title=text) == _prior(query, text)


@pytest.mark.parametrize(
    ("query", "day", "is_met"),
    [
        ("decisions of May 2026", datetime(2026, 5, 31, 23, tzinfo=UTC), True),
        ("decisions of May 2026", datetime(2026, 6, 1, tzinfo=UTC), False),
        ("decisions since 2025", datetime(2026, 1, 1, tzinfo=UTC), True),
        ("decisions of last week", datetime(2026, 5, 12, tzinfo=UTC), True),
        ("decisions of last week", datetime(2026, 5, 19, tzinfo=UTC), False),
        ("decisions", datetime(2026, 5, 12, tzinfo=UTC), False),
    ],
)
def test_a_candidate_dated_in_the_window_gets_the_prior(
    query: str, day: datetime, is_met: bool
) -> None:
    assert _prior(query, "decided", updated_at=day) == (TIME_PRIOR if is_met else 0.0)


def _found(sparse: Sequence[float], priors: Sequence[float]) -> dict[uuid.UUID, Found]:
    found = {}
    for number, (score, prior) in enumerate(zip(sparse, priors, strict=True), start=1):
        row: dict[str, Any] = {"source_id": "s1", "kind": "document"}
        candidate = Found(row, TARGET, 1, None, score, anchors=True, prior=prior)
        found[uuid.UUID(int=number)] = candidate
    return found


def test_the_prior_is_added_to_the_blend_in_units_of_z() -> None:
    plain = rank(_found([1, 2, 4], [0, 0, 0]), mode="reranker", weights=lambda _p, _k: 0.0)
    moved = rank(_found([1, 2, 4], [0, 1.5, 0]), mode="reranker", weights=lambda _p, _k: 0.0)
    changes = {key.int: moved.blended[key] - plain.blended[key] for key in plain.blended}
    assert changes == pytest.approx({1: 0.0, 2: 1.5, 3: 0.0})
    assert [key.int for key in plain.order] == [3, 2, 1]
    scores = [moved.scores[key] for key in moved.order]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_many_candidates_cost_little() -> None:
    row = {"title": "House", "text": "It was sold in 1811 to a widow. " * 40, "updated_at": None}
    found = [Found(row, TARGET, 1, None, 1.0) for _ in range(100)]
    windows = time_windows("in 1999", NOW)

    def seconds() -> float:
        started = time.perf_counter()
        note_time_prior(found, windows)
        return time.perf_counter() - started

    assert min(seconds() for _ in range(3)) < 0.02


# --- in the product ----------------------------------------------------------------------

DOCUMENTS: list[Document] = [
    {"id": "a", "text": "The owner of the mill was the mill owner Adams, owner of every mill."},
    {"id": "b", "text": "The mill was let to Brown, who was its owner until he died in 1823."},
    {
        "id": "c",
        "text": "The mill owner is Clark, owner of it.",
        "metadata": {"updatedAt": "2026-05-12"},
    },
    {"id": "d", "text": "A poem about rivers."},
]


@pytest.fixture
def collection(indexed: Runtime, tenant: str) -> Collection:
    made = collection_of(indexed, tenant)
    publish_documents(indexed, made, DOCUMENTS)
    return made


@pytest.fixture(scope="module")
def backend(home: Home, runtime: Runtime) -> Any:
    return BACKENDS["memory"](home, runtime)


@pytest.fixture
def indexed(runtime: Runtime, backend: Any) -> Runtime:
    return replace(runtime, index=backend.index)


@pytest.fixture
def asker(runtime: Runtime, backend: Any) -> Iterator[Asker]:
    with asking(runtime, backend.search()) as opened:
        yield opened


def _ask(asker: Asker, runtime: Runtime, tenant: str, query: str, **fields: Any) -> list[Candidate]:
    request = SearchRequest(query, "p1", explain=True, as_of=NOW, **fields)
    return list(asker.ask(caller_of(runtime, tenant), request).chunks)


def _paths(candidates: Sequence[Candidate]) -> list[str]:
    return [candidate.citation.path for candidate in candidates]


@pytest.mark.usefixtures("collection")
def test_the_time_named_lifts_what_is_of_that_time(
    asker: Asker, indexed: Runtime, tenant: str
) -> None:
    query = "owner of the mill"
    assert _paths(_ask(asker, indexed, tenant, query))[0] == "a"
    assert _paths(_ask(asker, indexed, tenant, f"{query} from 1811 to 1827"))[0] == "b"
    [first, *others] = _ask(asker, indexed, tenant, f"{query} last week")
    assert first.citation.path == "c"
    assert candidate_to_wire(first)["explain"]["prior"] == TIME_PRIOR
    assert {candidate_to_wire(other)["explain"]["prior"] for other in others} == {0.0}


@pytest.mark.usefixtures("collection")
def test_without_a_time_in_the_query_or_a_reranker_there_is_no_prior(
    asker: Asker, indexed: Runtime, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_time = "owner of the mill from 1811 to 1827"
    plain = _ask(asker, indexed, tenant, "owner of the mill")
    fused = _ask(asker, indexed, tenant, in_time, rerank="none")
    assert {c.explanation.prior for c in [*plain, *fused] if c.explanation} == {0.0}
    monkeypatch.setattr("knowledge.retrieval.search.note_time_prior", lambda _found, _windows: None)
    assert _ask(asker, indexed, tenant, "owner of the mill") == plain
    assert _ask(asker, indexed, tenant, in_time, rerank="none") == fused
    assert _ask(asker, indexed, tenant, in_time) != fused
