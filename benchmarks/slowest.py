"""Where the time of a search goes, and what sets the slowest tenth of them apart.

The service runs in this process with its functions wrapped, so that nothing of this is in the
product. Questions are asked one after another: whatever is noted belongs to the one that runs.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from statistics import median
from typing import Any, Final
from unittest.mock import patch

import httpx

from benchmarks.installation import Installation
from benchmarks.sections import Section, Table
from benchmarks.service import Asker, opened_asker
from benchmarks.standing import standing_collection
from benchmarks.timings import Timings, ms
from knowledge.profiles.onnx import OnnxEmbedder
from knowledge.retrieval import search as pipeline
from knowledge.retrieval.recording import Recorder
from knowledge.retrieval.search import Searcher
from knowledge.runtime import index_location
from knowledge.stack.cache import cache_folder
from knowledge.stack.servers import current_addresses
from knowledge.storage.guarded import GuardedSearch
from knowledge.storage.postgres.retrieval import CandidateReader
from knowledge.text.analysis import analyse
from retrieval_api.app import create_app
from retrieval_api.endpoints import search as endpoint
from retrieval_api.service import Service, ServiceConfig

Seconds = defaultdict[str, float]

WARM_UP: Final = 50
SLOWEST_SHARE: Final = 0.1

_GC: Final = "meanwhile: collect garbage"
_FLUSH: Final = "meanwhile: flush records"

STAGES: Final = (
    (Service, "authenticate", "check the token"),
    (endpoint, "read_json", "read the body"),
    (pipeline, "plan_search", "plan (PostgreSQL)"),
    (Searcher, "_embed_query", "embed the query, whole"),
    (OnnxEmbedder, "embed_query", "model: embed"),
    (pipeline, "run_leg", "leg, whole"),
    (GuardedSearch, "near_vector", "index: nearest vectors"),
    (GuardedSearch, "bm25", "index: BM25"),
    (CandidateReader, "read", "candidate rows (PostgreSQL)"),
    (pipeline, "note_ranks", "note ranks"),
    (Searcher, "_complete_cosines", "index: missing cosines"),
    (Searcher, "_collect", "collect candidates, whole"),
    (pipeline, "rank", "rank"),
    (pipeline, "cite", "cite"),
    (endpoint, "answer_to_wire", "encode the answer"),
    (Recorder, "record", "queue the record"),
    (Recorder, "flush", _FLUSH),
)
"""Where a function is looked up, its name there, and what the stage is called."""

_CPU: Final = "processor time of this process"
_TOTAL: Final = "the search"


@dataclass(slots=True)
class Watch:
    """What is noted of the search that runs: seconds by stage, and counts."""

    seconds: Seconds = field(default_factory=lambda: defaultdict(float))
    counts: Counter[str] = field(default_factory=Counter)

    def note(self, stage: str, started: float) -> None:
        self.seconds[stage] += time.perf_counter() - started

    def begin(self) -> None:
        self.seconds, self.counts = defaultdict(float), Counter()


@dataclass(frozen=True, slots=True)
class Profiled:
    """One search: its length in s, the seconds of its stages (they overlap), and counts."""

    total: float
    seconds: Seconds
    counts: Counter[str]


def measure_slowest(installation: Installation, size: int, searches: int) -> Section:
    """Profile ``searches`` different questions."""
    collection = standing_collection(installation, size)
    installation.say(f"profiling {searches} searches")
    profiled = installation.run(_profile(installation, collection.slug, searches))
    ordered = sorted(profiled, key=lambda search: search.total)
    slow = ordered[-max(1, round(len(ordered) * SLOWEST_SHARE)) :]
    return Section(
        name="slowest",
        backend=installation.backend,
        title=f"The slowest 10 % of searches, {size:,} chunks",
        tables=(_stage_table(profiled, slow), _count_table(profiled, slow)),
        notes=_notes(profiled, slow),
        data={"p50Ms": Timings([s.total for s in profiled]).p50_ms},
    )


async def _profile(installation: Installation, collection: str, searches: int) -> list[Profiled]:
    questions = installation.corpus.questions(WARM_UP + searches, seed=11)
    watch = Watch()
    with _watched(watch), _tuned_like_the_service():
        async with _asker_within(installation, collection) as asker:
            found = [await _profile_one(asker, watch, question) for question in questions]
    return found[WARM_UP:]


async def _profile_one(asker: Asker, watch: Watch, question: str) -> Profiled:
    watch.begin()
    cpu = time.process_time()
    asked = await asker.ask(question)
    watch.seconds[_CPU] = time.process_time() - cpu
    watch.counts["words looked up"] = len(set(analyse(question)))
    return Profiled(asked.seconds, watch.seconds, watch.counts)


@asynccontextmanager
async def _asker_within(installation: Installation, collection: str) -> AsyncIterator[Asker]:
    """The whole service in this process, asked without a network."""
    runtime = installation.runtime
    addresses = current_addresses(runtime.home, runtime.settings)
    assert addresses is not None, "the installation's servers run while it is open"
    config = ServiceConfig(
        home=runtime.home,
        settings=runtime.settings,
        app_url=runtime.urls.app_url,
        index=index_location(runtime.home, runtime.settings, addresses),
        cache_dir=cache_folder(),
    )
    app = create_app(config)
    async with app.router.lifespan_context(app):
        while not app.state.service.index.is_proven:
            await asyncio.sleep(0.1)
        transport = httpx.ASGITransport(app)
        async with opened_asker(
            installation, "http://service", collection, transport=transport
        ) as asker:
            yield asker


# --- watching ----------------------------------------------------------------------------


@contextmanager
def _watched(watch: Watch) -> Iterator[None]:
    """Wrap the stages' functions for the length of the block."""
    garbage = _garbage_watch(watch)
    with ExitStack() as stack:
        for owner, name, stage in STAGES:
            wrapped = _wrapped(watch, getattr(owner, name), stage)
            stack.enter_context(patch.object(owner, name, wrapped))
        gc.callbacks.append(garbage)
        stack.callback(gc.callbacks.remove, garbage)
        yield


def _wrapped(watch: Watch, inner: Callable[..., Any], stage: str) -> Callable[..., Any]:
    def named(arguments: Sequence[Any]) -> str:
        return f"leg {arguments[0]}, whole" if stage == "leg, whole" else stage

    def sync(*arguments: Any, **options: Any) -> Any:
        started = time.perf_counter()
        try:
            return inner(*arguments, **options)
        finally:
            watch.note(named(arguments), started)

    async def asynchronous(*arguments: Any, **options: Any) -> Any:
        if stage.startswith("candidate rows"):
            _count_rows(watch, *arguments)
        started = time.perf_counter()
        try:
            return await inner(*arguments, **options)
        finally:
            watch.note(named(arguments), started)

    return asynchronous if iscoroutinefunction(inner) else sync


def _count_rows(watch: Watch, reader: Any, _collection: Any, _scope: Any, ids: Any) -> None:
    watch.counts["candidates"] += len(ids)
    watch.counts["of them not in the cache of rows"] += sum(key not in reader._rows for key in ids)


def _garbage_watch(watch: Watch) -> Callable[[str, dict[str, int]], None]:
    started = 0.0

    def noted(phase: str, _info: dict[str, int]) -> None:
        nonlocal started
        if phase == "start":
            started = time.perf_counter()
        else:
            watch.note(_GC, started)

    return noted


@contextmanager
def _tuned_like_the_service() -> Iterator[None]:
    """The interpreter's settings of the service's own process."""
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(0.0005)
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*threshold)
        sys.setswitchinterval(interval)


# --- how it is shown ---------------------------------------------------------------------


def _stage_table(profiled: Sequence[Profiled], slow: Sequence[Profiled]) -> Table:
    rows = [(stage, *map(ms, values)) for stage, values in _differences(profiled, slow)]
    header = ("stage", "median of all", "median of the slowest 10 %", "difference")
    return Table(
        caption="Stages, by what they add to a slow search (legs and embedding overlap; `whole` contains others)",
        header=header,
        rows=tuple(rows),
    )


def _differences(
    profiled: Sequence[Profiled], slow: Sequence[Profiled]
) -> list[tuple[str, tuple[float, float, float]]]:
    """Of each stage the two medians and their difference, in ms, the largest difference first."""
    found = {_TOTAL: _pair([s.total for s in profiled], [s.total for s in slow])}
    for stage in sorted({stage for search in profiled for stage in search.seconds}):
        found[stage] = _pair(
            [search.seconds[stage] for search in profiled],
            [search.seconds[stage] for search in slow],
        )
    return sorted(found.items(), key=lambda entry: -entry[1][2])


def _pair(every: Sequence[float], slow: Sequence[float]) -> tuple[float, float, float]:
    a, b = median(every) * 1000, median(slow) * 1000
    return a, b, b - a


def _count_table(profiled: Sequence[Profiled], slow: Sequence[Profiled]) -> Table:
    names = sorted({name for search in profiled for name in search.counts})
    rows: list[tuple[str, ...]] = [
        (
            name,
            f"{median(search.counts[name] for search in profiled):.0f}",
            f"{median(search.counts[name] for search in slow):.0f}",
        )
        for name in names
    ]
    rows += [(f"share with `{stage}`", *_shares(stage, profiled, slow)) for stage in (_GC, _FLUSH)]
    header = ("", "of all", "of the slowest 10 %")
    return Table(caption="What the searches were like", header=header, rows=tuple(rows))


def _shares(stage: str, *groups: Sequence[Profiled]) -> tuple[str, ...]:
    """The share of searches in which a stage took more than half a millisecond."""
    return tuple(
        f"{sum(search.seconds[stage] > 0.0005 for search in group) / len(group):.0%}"
        for group in groups
    )


def _notes(profiled: Sequence[Profiled], slow: Sequence[Profiled]) -> tuple[str, ...]:
    times = Timings([search.total for search in profiled])
    first = [
        stage
        for stage, _ in _differences(profiled, slow)
        if stage not in (_TOTAL, _CPU) and not stage.endswith("whole")
    ][:3]
    return (
        f"{len(profiled)} searches one after another: p50 {ms(times.p50_ms)}, p90"
        f" {ms(times.percentile_ms(90))}, p99 {ms(times.p99_ms)}. What a slow one spends more"
        f" time in than others, most first: {', '.join(first)}.",
    )
