"""Work that a few facts can ask for is bounded, and what was left out is said."""

from __future__ import annotations

import time

from knowledge.graph.inferring import MAX_SUGGESTIONS
from tests.graph.telling import Graph, at, fact


def test_a_hub_with_facts_on_both_sides_is_told_in_bounded_time(graph: Graph) -> None:
    begun = time.perf_counter()
    written = graph.tell(
        *(fact(f"in {n}", "DEPENDS_ON", "hub") for n in range(600)),
        *(fact("hub", "DEPENDS_ON", f"out {n}") for n in range(600)),
    )
    assert written.added == 1_200
    assert written.suggested == MAX_SUGGESTIONS and written.is_inference_cut
    assert time.perf_counter() - begun < 20


def test_one_long_timeline_is_told_in_bounded_time(graph: Graph) -> None:
    lines = [
        fact("billing", "HAS_STATUS", f"s{n}", validFrom=f"{2000 + n // 12}-{n % 12 + 1:02d}")
        for n in range(1_200)
    ]
    graph.tell(*lines[::2])
    begun = time.perf_counter()
    written = graph.tell(*lines[1::2])
    assert written.added == 600 and len(written.closed) == 600
    assert time.perf_counter() - begun < 4
    assert graph.objects(subject="billing", as_of=at(2050)) == ["s600"]
    assert graph.objects(subject="billing", as_of=at(2099, 12, 31)) == ["s1199"]
