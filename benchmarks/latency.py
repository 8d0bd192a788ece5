"""HTTP search against raw Weaviate, pair by pair in one run, so that a drifting machine cancels out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from benchmarks.installation import Installation
from benchmarks.raw import RawTimes, opened_raw_search
from benchmarks.sections import Bar, Section, Table
from benchmarks.service import Asked, opened_asker, serving
from benchmarks.standing import standing_collection
from benchmarks.timings import Timings, ms
from knowledge.model.collection import Collection

MAX_RATIO: Final = 1.8
WARM_UP: Final = 50


@dataclass(frozen=True, slots=True)
class Comparison:
    """Searches one after another. ``raw`` is empty where the backend has no raw side.

    ``degraded`` counts answers that lacked a leg, or had another stand in for it.
    """

    product: Timings
    degraded: int
    raw: Sequence[RawTimes]

    @property
    def raw_total(self) -> Timings:
        return Timings([times.total for times in self.raw])

    @property
    def raw_queries(self) -> Timings:
        return Timings([times.queries for times in self.raw])

    @property
    def ratio(self) -> float:
        return self.product.p50_ms / self.raw_total.p50_ms


async def compare(
    installation: Installation, url: str, collection: Collection, pairs: int, *, seed: int = 7
) -> Comparison:
    """Ask ``pairs`` questions, none of them twice, on both sides; each side first in turn.

    ``seed`` draws the questions: a service that was asked them before remembers rows.
    """
    questions = installation.corpus.questions(WARM_UP + pairs, seed=seed)
    product: list[Asked] = []
    raw: list[RawTimes] = []
    async with AsyncExitStack() as stack:
        asker = await stack.enter_async_context(opened_asker(installation, url, collection.slug))
        other = None
        if installation.backend == "weaviate":
            other = await stack.enter_async_context(opened_raw_search(installation, collection))
        for number, question in enumerate(questions):
            if other and number % 2:
                raw.append(await other.timed(question))
            product.append(await asker.ask(question))
            if other and not number % 2:
                raw.append(await other.timed(question))
    counted = product[WARM_UP:]
    return Comparison(
        product=Timings([asked.seconds for asked in counted]),
        degraded=sum(asked.is_degraded for asked in counted),
        raw=raw[WARM_UP:],
    )


def measure_latency(installation: Installation, size: int, pairs: int) -> Section:
    """Search at concurrency 1."""
    collection = standing_collection(installation, size)
    installation.say(f"asking {pairs} questions, one after another")
    with serving(installation) as service:
        found = installation.run(compare(installation, service.url, collection, pairs))
    sides = [("HTTP search", found.product)]
    if found.raw:
        sides.append(("raw: embed, then two queries", found.raw_total))
        sides.append(("raw: the two queries alone", found.raw_queries))
    rows = [(name, *map(ms, (t.p50_ms, t.p95_ms, t.p99_ms))) for name, t in sides]
    return Section(
        name="latency",
        backend=installation.backend,
        title=f"Search at concurrency 1, {size:,} chunks",
        bars=_bars(found),
        tables=(Table(caption="", header=("", "p50", "p95", "p99"), rows=tuple(rows)),),
        notes=(
            f"{pairs} different questions on each side, top 10; {found.degraded} answers degraded.",
        ),
        data={
            "p50Ms": found.product.p50_ms,
            "degraded": found.degraded,
            "ratio": found.ratio if found.raw else None,
        },
    )


def _bars(found: Comparison) -> tuple[Bar, ...]:
    if not found.raw:
        return ()
    return (
        Bar(
            what="HTTP search p50, concurrency 1, against embedding and two raw queries",
            bar=f"≤ {MAX_RATIO}",
            figure=f"{found.ratio:.2f} ({ms(found.product.p50_ms)} / {ms(found.raw_total.p50_ms)})",
            is_met=found.ratio <= MAX_RATIO and not found.degraded,
        ),
    )
