"""Search under load: requests start on schedule, whether or not earlier ones were answered."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Final

import httpx

from benchmarks.installation import Installation
from benchmarks.sections import Bar, Section, Table
from benchmarks.service import Asker, opened_asker, serving
from benchmarks.standing import standing_collection
from benchmarks.timings import Timings, ms
from knowledge.errors import KnowledgeError

MAX_P95_MS: Final = 80.0
MAX_P99_MS: Final = 200.0
QUESTIONS: Final = 500
"""Different ones; then they are asked again."""


@dataclass(frozen=True, slots=True)
class Load:
    """What came of it. ``errors`` are requests without a full answer."""

    requests: int
    errors: int
    timings: Timings


def measure_load(installation: Installation, size: int, rate: float, seconds: float) -> Section:
    """Ask ``rate`` questions a second for ``seconds``."""
    collection = standing_collection(installation, size)
    installation.say(f"asking {rate:.0f} questions a second for {seconds:.0f} s")
    with serving(installation) as service:

        async def loaded() -> Load:
            async with opened_asker(installation, service.url, collection.slug) as asker:
                questions = installation.corpus.questions(QUESTIONS)
                await apply_load(asker, questions, min(rate, 20.0), 3.0)  # warm up
                return await apply_load(asker, questions, rate, seconds)

        found = installation.run(loaded())
    times = found.timings
    shown = (ms(times.p50_ms), ms(times.p95_ms), ms(times.p99_ms), ms(max(times.seconds) * 1000))
    row = (f"{rate:.0f}/s for {seconds:.0f} s", f"{found.requests:,}", str(found.errors), *shown)
    header = ("load", "requests", "errors", "p50", "p95", "p99", "longest")
    return Section(
        name="load",
        backend=installation.backend,
        title=f"Search under load, {size:,} chunks",
        bars=_bars(found, f"{rate:.0f} requests/s for {seconds:.0f} s, {size:,} chunks"),
        tables=(Table(caption="", header=header, rows=(row,)),),
        notes=(
            "Open loop: a slow answer delays no later request. A degraded answer is an error."
            " The load generator runs on the same machine.",
        ),
        data={"errors": found.errors, "p95Ms": times.p95_ms, "p99Ms": times.p99_ms},
    )


async def apply_load(asker: Asker, questions: list[str], rate: float, seconds: float) -> Load:
    total = max(1, int(rate * seconds))
    started = time.perf_counter()
    waits: list[asyncio.Task[float | None]] = []
    for number in range(total):
        await asyncio.sleep(max(0.0, started + number / rate - time.perf_counter()))
        question = questions[number % len(questions)]
        waits.append(asyncio.create_task(_answered(asker, question)))
    times = [value for value in await asyncio.gather(*waits) if value is not None]
    if not times:
        raise KnowledgeError("not one request was answered: see logs/api-of-benchmarks.log")
    return Load(total, total - len(times), Timings(times))


async def _answered(asker: Asker, question: str) -> float | None:
    """Seconds until the full answer; None for anything else."""
    try:
        asked = await asker.ask(question)
    except httpx.HTTPError:
        return None
    return None if asked.is_degraded else asked.seconds


def _bars(found: Load, what: str) -> tuple[Bar, ...]:
    times = found.timings
    return (
        Bar(what=f"{what}: errors", bar="0", figure=str(found.errors), is_met=not found.errors),
        Bar(
            what=f"{what}: p95",
            bar=f"< {MAX_P95_MS:.0f} ms",
            figure=ms(times.p95_ms),
            is_met=times.p95_ms < MAX_P95_MS,
        ),
        Bar(
            what=f"{what}: p99",
            bar=f"< {MAX_P99_MS:.0f} ms",
            figure=ms(times.p99_ms),
            is_met=times.p99_ms < MAX_P99_MS,
        ),
    )
