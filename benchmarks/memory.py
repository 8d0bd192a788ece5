"""Agent memory at its bounds: names found, facts recalled and told, names that share no word.

python -m benchmarks memory
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import httpx
import numpy as np

from benchmarks.installation import PROFILE, PROJECT, Installation
from benchmarks.memory_names import ACTIONS, PARTS, SYNONYMS
from benchmarks.sections import Bar, Section, Table
from benchmarks.service import serving
from benchmarks.timings import Timings, ms
from knowledge.errors import StackError
from knowledge.graph.querying import FactReader
from knowledge.memory.namespace import memory_namespace
from knowledge.memory.plan import MemoryPlan, MemoryScope, plan_memory
from knowledge.memory.recalling import LEG_DEPTH
from knowledge.memory.warm import WarmNames
from knowledge.model.scope import READ, WRITE, Caller
from knowledge.stack.process import wait_until
from knowledge.storage.postgres import catalogue
from knowledge.storage.postgres.database import AsyncDatabase
from knowledge.text.analysis import analyse

ENTITIES: Final = 4_900
FACTS: Final = 9_000
"""Told before anything is measured; the calls that are timed fill the memory up."""

PREDICATES: Final = ("DEPENDS_ON", "OWNED_BY", "WRITES_TO", "DECIDED_ON", "TESTED_WITH")
QUESTIONS: Final = 500
CALLS: Final = 10
NAMES_BAR_MS: Final = 1.0
RECALL_P50_BAR_MS: Final = 20.0
RECALL_P95_BAR_MS: Final = 30.0
UPSERT_BAR_MS: Final = 150.0
MEMORY: Final = "/factory/knowledge/memory"


def measure_memory(installation: Installation) -> Section:
    catalogue.ensure_project(installation.runtime.owner, installation.tenant, PROJECT)
    credential = catalogue.create_client(
        installation.runtime.owner,
        installation.tenant,
        projects=[PROJECT],
        groups=(),
        scopes=[READ, WRITE],
    )
    names = _names(ENTITIES)
    with serving(installation) as service, _client(service.url, credential) as http:
        _fill(installation, http, names)
        questions = _questions(names)
        recalls = [_timed(http, "recall", {"query": query}) for query in questions]
        two_hops = [_timed(http, "recall", {"query": q, "hops": 2}) for q in questions[:200]]
        searches = [_timed(http, "search", {"query": query}) for query in questions[:200]]
        upserts = [_timed(http, "upsert", _call(names, n, 100)) for n in range(1000, 1000 + CALLS)]
    leg = installation.run(_time_names(installation, credential[0], questions))
    timings = {
        "names leg, in process": leg,
        "recall, 1 hop": Timings(recalls),
        "recall, 2 hops": Timings(two_hops),
        "search of entities": Timings(searches),
        "upsert of 100 facts": Timings(upserts),
    }
    found = _synonyms(installation, names)
    return Section(
        name="memory",
        backend=installation.backend,
        title="Agent memory",
        bars=_bars(timings),
        tables=(
            Table(
                caption=f"{ENTITIES:,} entities, {FACTS:,} facts and more; over HTTP, one at a time",
                header=("what", "p50", "p95", "p99"),
                rows=tuple(
                    (n, *map(ms, (t.p50_ms, t.p95_ms, t.p99_ms))) for n, t in timings.items()
                ),
            ),
            found,
        ),
    )


def _bars(timings: dict[str, Timings]) -> tuple[Bar, ...]:
    def bar(what: str, value: float, most: float) -> Bar:
        figure = f"{value:.2f} ms"
        return Bar(what=what, bar=f"≤ {most:g} ms", figure=figure, is_met=value <= most)

    recall = timings["recall, 1 hop"]
    return (
        bar("names leg, p95", timings["names leg, in process"].p95_ms, NAMES_BAR_MS),
        bar("recall, p50", recall.p50_ms, RECALL_P50_BAR_MS),
        bar("recall, p95", recall.p95_ms, RECALL_P95_BAR_MS),
        bar("upsert of 100 facts, p95", timings["upsert of 100 facts"].p95_ms, UPSERT_BAR_MS),
    )


def _names(count: int) -> list[str]:
    """Names that share words with many others, as the names of one system do."""
    rng = random.Random(11)
    found: dict[str, None] = {}
    while len(found) < count:
        words = [
            rng.choice(PARTS),
            rng.choice(ACTIONS),
            rng.choice(("service", "worker", "api", "job")),
        ]
        if rng.random() < 0.5:
            words.append(str(rng.randrange(1, 60)))
        found[rng.choice(("-", " ", "_")).join(words)] = None
    return list(found)


def _questions(names: Sequence[str]) -> list[str]:
    rng = random.Random(5)
    forms = ("who owns {}", "what does {} depend on and why", "{}", "did we decide anything on {}?")
    return [rng.choice(forms).format(rng.choice(names)) for _ in range(QUESTIONS)]


def _call(names: Sequence[str], number: int, count: int) -> dict[str, Any]:
    rng = random.Random(number)
    triples = [
        {
            "subject": names[(number * count + place) % len(names)],
            "predicate": rng.choice(PREDICATES),
            "object": rng.choice(names),
        }
        for place in range(count)
    ]
    return {"triples": triples, "client": "benchmark", "sessionId": f"s{number % 50}"}


def _fill(installation: Installation, http: httpx.Client, names: Sequence[str]) -> None:
    installation.say(f"telling {FACTS:,} facts")
    for number in range(FACTS // 500):
        http.post(f"{MEMORY}/upsert", json=_call(names, number, 500)).raise_for_status()
    installation.say("waiting for the names' vectors")

    def is_hybrid() -> bool:
        with installation.runtime.app.tenant(installation.tenant) as connection:
            row = connection.execute("select count(*) as held from memory_vectors").fetchone()
        return row is not None and row["held"] >= len(names) - 5

    if not wait_until(is_hybrid, 120):
        raise StackError("the names of the memory got no vectors within two minutes")
    for query in _questions(names)[:20]:
        _timed(http, "recall", {"query": query})


def _timed(http: httpx.Client, operation: str, body: dict[str, Any]) -> float:
    started = time.perf_counter()
    response = http.post(f"{MEMORY}/{operation}", json=body)
    seconds = time.perf_counter() - started
    response.raise_for_status()
    if response.json().get("mode") == "names":
        raise StackError(f"recall was not hybrid: {response.json()['modeReason']}")
    return seconds


@contextmanager
def _client(url: str, credential: tuple[str, str]) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as http:
        form = {"grant_type": "client_credentials"}
        token = http.post("/oauth/token", auth=credential, data=form).raise_for_status()
        http.headers["Authorization"] = f"Bearer {token.json()['access_token']}"
        yield http


async def _time_names(
    installation: Installation, client_id: str, questions: Sequence[str]
) -> Timings:
    """Only the leg: from the words of a question to the best names that the caller may read."""
    database = AsyncDatabase(installation.runtime.urls.app_url)
    await database.open()
    try:
        caller = Caller(client_id, installation.tenant, (READ,))
        plan: MemoryPlan = await plan_memory(FactReader(database), caller, MemoryScope())
        assert plan.namespace == memory_namespace(installation.tenant, None)
        index = await WarmNames(database).current(plan, None)

        def look_up(query: str) -> object:
            return index.by_words(analyse(query), index.visible(plan.facts.facts), LEG_DEPTH)

        return Timings([_seconds(look_up, query) for query in questions])
    finally:
        await database.close()


def _seconds(do: Callable[[str], object], query: str) -> float:
    started = time.perf_counter()
    do(query)
    return time.perf_counter() - started


def _synonyms(installation: Installation, names: Sequence[str]) -> Table:
    """Of names asked for in other words: how often the floor lets the right one among the best 8,
    and how many wrong ones it lets in."""
    embedder = installation.embedder(PROFILE)
    asked, meant = zip(*SYNONYMS, strict=True)
    others = list(names[: 2000 - len(meant)])
    held = embedder.embed([*meant, *others]).vectors
    floor = embedder.profile.names_floor
    found, first, wrong = 0, 0, []
    for place, query in enumerate(asked):
        cosines = held @ embedder.embed_query(query)
        best = np.argsort(-cosines)[:8]
        admitted = [n for n in best if cosines[n] >= floor]
        found += place in admitted
        first += bool(admitted) and admitted[0] == place
        wrong.append(int((cosines >= floor).sum()) - bool(cosines[place] >= floor))
    total = len(asked)
    return Table(
        caption=f"{total} names asked for in words they do not share, among 2,000 names; {PROFILE}",
        header=(
            "floor",
            "right name among the best 8",
            "right name first",
            "wrong names over the floor, mean",
        ),
        rows=(
            (
                f"{floor:.2f}",
                f"{found / total:.1%}",
                f"{first / total:.1%}",
                f"{sum(wrong) / total:.1f} ({sum(wrong) / total / 2000:.2%} of the names)",
            ),
        ),
    )
