"""Pages of one answer: complete, disjoint, and as of one time, whatever is written meanwhile."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from knowledge.errors import InvalidInput
from knowledge.model.fact import Fact
from tests.graph.telling import Graph, at, fact

REFUSED = "cursor is not one that this question gave"


def _tell_many(graph: Graph) -> list[str]:
    """Facts that share begins of validity, and some without one; returns their objects."""
    begins = [None, None, None, "2020", "2020", "2021", "2022", "2022", "2022"]
    names = [f"o{number}" for number in range(len(begins))]
    told = zip(names, begins, strict=True)
    graph.tell(*(fact("billing", "USES", name, validFrom=since) for name, since in told))
    return names


def _pages(graph: Graph, **wanted: Any) -> Iterator[tuple[Fact, ...]]:
    answer = graph.query(**wanted)
    yield answer.facts
    while answer.next_cursor is not None:
        answer = graph.query(**wanted, cursor=answer.next_cursor)
        yield answer.facts


@pytest.mark.parametrize("limit", [1, 2, 4, 9, 100])
def test_pages_hold_every_fact_once_newest_begin_first(graph: Graph, limit: int) -> None:
    names = _tell_many(graph)
    pages = list(_pages(graph, limit=limit))
    assert {len(page) for page in pages[:-1]} <= {limit} and pages[-1]
    found = [each for page in pages for each in page]
    assert sorted(each.object for each in found) == names
    order = [(-(f.valid_from.at if f.valid_from else at(1)).timestamp(), f.fact_id) for f in found]
    assert order == sorted(order)


def test_what_is_written_between_pages_is_in_none_of_them(graph: Graph) -> None:
    names = _tell_many(graph)
    found = []
    for number, page in enumerate(_pages(graph, subject="billing", limit=2)):
        found += [each.object for each in page]
        for since in (None, "2019", "2021-06", "2023"):
            graph.tell(fact("billing", "USES", f"new{number}{since}", validFrom=since))
        graph.retract(*(each.fact_id for each in graph.facts(subject="billing")[:2]))
    assert sorted(found) == names


def test_pages_are_as_of_the_time_of_the_first(graph: Graph) -> None:
    _tell_many(graph)
    first = graph.query(limit=4)
    second = graph.query(limit=4, cursor=first.next_cursor)
    assert (second.as_of, second.as_known_at) == (first.as_of, first.as_known_at)


def test_a_source_that_is_hidden_between_pages_is_gone_from_the_next(graph: Graph) -> None:
    _tell_many(graph)
    first = graph.query(limit=4)
    graph.change_source("s1", acl=[])
    assert graph.query(limit=4, cursor=first.next_cursor).facts == ()


def test_the_cursor_of_another_tenant_client_or_question_is_refused(graph: Graph) -> None:
    _tell_many(graph)
    other = Graph(graph.runtime, f"{graph.tenant_id}-2", graph.reader, graph.runner)
    _tell_many(other) if other.caller else None
    cursor = graph.query(subject="billing", limit=2).next_cursor
    assert cursor is not None
    with pytest.raises(InvalidInput, match=REFUSED):
        other.query(subject="billing", limit=2, cursor=cursor)
    with pytest.raises(InvalidInput, match=REFUSED):
        graph.query(graph.client(), subject="billing", limit=2, cursor=cursor)
    changes: list[dict[str, Any]] = [
        {"subject": "Billing", "limit": 2},
        {"subject": "billing", "limit": 3},
        {"subject": "billing", "limit": 2, "as_of": at(2024)},
        {"subject": "billing", "limit": 2, "suggestions": True},
    ]
    for changed in changes:
        with pytest.raises(InvalidInput, match=REFUSED):
            graph.query(cursor=cursor, **changed)


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "!",
        "ünïcode",
        "a" * 10_000,
        *(
            base64.urlsafe_b64encode(text.encode()).decode()
            for text in ("", "1", "null", "{}", "[]", '"text"', "[" * 5_000, '{"a":1}')
        ),
    ],
    ids=range(12),
)
def test_garbage_is_refused(graph: Graph, cursor: str) -> None:
    with pytest.raises(InvalidInput, match=REFUSED):
        graph.query(cursor=cursor)


@pytest.mark.parametrize("place", range(1, 5))
def test_a_cursor_that_was_tampered_with_is_refused(graph: Graph, place: int) -> None:
    _tell_many(graph)
    cursor = graph.query(limit=2).next_cursor
    assert cursor is not None
    parts = json.loads(base64.urlsafe_b64decode(cursor + "=="))
    values: list[Any] = ["x", 5, [], {}, "2024-01-01T00:00:00"]
    for wrong in values:
        forged = json.dumps([*parts[:place], wrong, *parts[place + 1 :]]).encode()
        with pytest.raises(InvalidInput, match=REFUSED):
            graph.query(limit=2, cursor=base64.urlsafe_b64encode(forged).decode())


def test_a_page_in_the_past_is_paged_in_the_past(graph: Graph) -> None:
    names = _tell_many(graph)
    then = graph.now()
    graph.retract(*(each.fact_id for each in graph.facts()))
    pages = list(_pages(graph, limit=4, as_known_at=then))
    assert sorted(each.object for page in pages for each in page) == names
    assert not graph.facts(as_known_at=then - timedelta(days=1))
