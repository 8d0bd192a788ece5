"""Temporal facts at size: told in bulk, asked for, expanded and connected.

python -m benchmarks facts [--facts 1000000]
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from benchmarks.installation import PROJECT, Installation
from benchmarks.sections import Bar, Section, Table
from benchmarks.timings import Timings, ms
from knowledge.graph.asserting import Batch, assert_facts
from knowledge.graph.expanding import expand, find_paths
from knowledge.graph.ontologies import tenant_ontology
from knowledge.graph.querying import FactReader
from knowledge.graph.questions import Expansion, FactQuestion, PathQuestion, Sieve
from knowledge.graph.reading import Teller, read_fact
from knowledge.graph.session import Writer
from knowledge.model.fact import Domain
from knowledge.storage.postgres import catalogue
from knowledge.storage.postgres.database import AsyncDatabase

BATCH: Final = 2_000
FACTS_A_SUBJECT: Final = 10
PREDICATES: Final = tuple(f"RELATES_{number}" for number in range(20))
FUNCTIONAL: Final = "HAS_STATUS"
QUESTIONS: Final = 300
BULK_BAR: Final = 5_000
FUNCTIONAL_BAR: Final = 1_500
READ_BAR_MS: Final = 50.0


@dataclass(frozen=True, slots=True)
class Made:
    """Facts to tell: everything about a number is the same in every run."""

    facts: int

    @property
    def entities(self) -> int:
        return max(self.facts // FACTS_A_SUBJECT, 10)

    def lines(self, functional: bool, count: int) -> Iterator[dict[str, Any]]:
        rng = random.Random(7 if functional else 3)
        for _ in range(count):
            year = rng.randrange(1950, 2025)
            line = {
                "subject": f"Entity {rng.randrange(self.entities)}",
                "predicate": FUNCTIONAL if functional else rng.choice(PREDICATES),
                "object": f"Entity {rng.randrange(self.entities)}",
                "validFrom": f"{year}-{rng.randrange(1, 13):02d}",
                "domain": "architecture",
                "sourceId": f"feed-{rng.randrange(20)}",
                "sourceVersion": "1",
            }
            if not functional and rng.random() < 0.6:
                line["validTo"] = str(year + rng.randrange(1, 12))
            yield line


def measure_facts(installation: Installation, facts: int) -> Section:
    made = Made(facts)
    catalogue.ensure_project(installation.runtime.owner, installation.tenant, PROJECT)
    plain = facts * 9 // 10
    bulk = _tell(installation, made, functional=False, count=plain)
    functional = _tell(installation, made, functional=True, count=facts - plain)
    reads = installation.run(_read(installation, made))
    bars = [
        _rate("bulk", bulk, BULK_BAR),
        _rate("functional predicate", functional, FUNCTIONAL_BAR),
        *(
            Bar(
                what=f"{name}, {facts:,} facts, p95",
                bar=f"≤ {READ_BAR_MS:.0f} ms",
                figure=ms(timings.p95_ms),
                is_met=timings.p95_ms <= READ_BAR_MS,
            )
            for name, timings in reads.items()
        ),
    ]
    rows = [
        (name, ms(timings.p50_ms), ms(timings.p95_ms), ms(timings.p99_ms))
        for name, timings in reads.items()
    ]
    table = Table(
        caption=f"{QUESTIONS} questions each, one at a time, in process",
        header=("question", "p50", "p95", "p99"),
        rows=tuple(rows),
    )
    return Section(
        name="facts",
        backend=installation.backend,
        title="Temporal facts",
        bars=tuple(bars),
        tables=(table,),
    )


def _rate(what: str, rate: float, bar: int) -> Bar:
    return Bar(
        what=f"facts told, {what}, batches of {BATCH:,}",
        bar=f"≥ {bar:,}/s",
        figure=f"{rate:,.0f}/s",
        is_met=rate >= bar,
    )


def _tell(installation: Installation, made: Made, *, functional: bool, count: int) -> float:
    """Facts a second, from a JSON object to the committed row."""
    app, tenant = installation.runtime.app, installation.tenant
    ontology = tenant_ontology(app, tenant)
    teller = Teller("benchmark", ontology, Domain.ARCHITECTURE)
    writer = Writer("benchmark")
    lines = made.lines(functional, count)
    told, seconds = 0, 0.0
    while told < count:
        given = [line for _, line in zip(range(BATCH), lines, strict=False)]
        started = time.perf_counter()
        batch = Batch([read_fact(line, teller) for line in given])
        assert_facts(app, tenant, PROJECT, batch, writer=writer, ontology=ontology)
        seconds += time.perf_counter() - started
        told += len(given)
        if told % 100_000 < BATCH:
            installation.say(f"told {told:,} of {count:,}: {told / seconds:,.0f}/s")
    return told / seconds


async def _read(installation: Installation, made: Made) -> dict[str, Timings]:
    database = AsyncDatabase(installation.runtime.urls.app_url)
    await database.open()
    reader = FactReader(database)
    caller = installation.caller
    rng = random.Random(11)

    def entity() -> str:
        return f"Entity {rng.randrange(made.entities)}"

    def then() -> datetime:
        return datetime(rng.randrange(1955, 2026), 6, 1, tzinfo=UTC)

    asked: dict[str, Callable[[], Awaitable[object]]] = {
        "subject, now": lambda: reader.query(caller, FactQuestion(PROJECT, subject=entity())),
        "object, then": lambda: reader.query(
            caller, FactQuestion(PROJECT, object=entity(), sieve=Sieve(as_of=then()))
        ),
        "subject and functional predicate, then": lambda: reader.query(
            caller,
            FactQuestion(
                PROJECT, subject=entity(), predicate=FUNCTIONAL, sieve=Sieve(as_of=then())
            ),
        ),
        "predicate, then, 100 facts": lambda: reader.query(
            caller,
            FactQuestion(PROJECT, predicate=rng.choice(PREDICATES), sieve=Sieve(as_of=then())),
        ),
        "functional predicate, then, 100 facts": lambda: reader.query(
            caller, FactQuestion(PROJECT, predicate=FUNCTIONAL, sieve=Sieve(as_of=then()))
        ),
        "everything, then, 100 facts": lambda: reader.query(
            caller, FactQuestion(PROJECT, sieve=Sieve(as_of=then()))
        ),
        "expand 1 hop": lambda: expand(reader, caller, Expansion(PROJECT, (entity(),))),
        "expand 2 hops": lambda: expand(reader, caller, Expansion(PROJECT, (entity(),), hops=2)),
        "expand 2 hops, then": lambda: expand(
            reader, caller, Expansion(PROJECT, (entity(),), hops=2, sieve=Sieve(as_of=then()))
        ),
        "paths up to 4 hops": lambda: find_paths(
            reader, caller, PathQuestion(PROJECT, entity(), entity())
        ),
    }
    timings = {}
    try:
        for name, ask in asked.items():
            for _ in range(10):
                await ask()
            timings[name] = Timings([await _timed(ask) for _ in range(QUESTIONS)])
            installation.say(f"{name}: p95 {timings[name].p95_ms:.1f} ms")
    finally:
        await database.close()
    return timings


async def _timed(ask: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await ask()
    return time.perf_counter() - started
