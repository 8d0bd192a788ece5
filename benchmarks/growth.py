"""One collection grown by deltas: what a search, a publish and the memory cost at each size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import psutil  # type: ignore[import-untyped]

from benchmarks.installation import Installation
from benchmarks.latency import compare
from benchmarks.publishing import (
    STEPS,
    DataChecks,
    Steps,
    announce_documents,
    grow,
    median_steps,
    publish,
    timed,
)
from benchmarks.sections import Section, Table
from benchmarks.service import Service, serving
from benchmarks.timings import ms, seconds
from knowledge.indexing.serving import serve
from knowledge.indexing.tick import leased, tick
from knowledge.model.collection import Collection

SIZES: Final = (1_000, 5_000, 20_000, 50_000, 100_000, 200_000)
CHANGED: Final = 100
REPEATS: Final = 3
MB: Final = 1e6


@dataclass(frozen=True, slots=True)
class Point:
    """What was measured at one size. ``raw_*`` and ``weaviate_*`` are None without Weaviate.

    ``hash_scan_s`` is the tick of a full publish in which nothing differs, data checks left out.
    """

    chunks: int
    search_p50_ms: float
    search_p95_ms: float
    degraded: int
    raw_p50_ms: float | None
    raw_queries_p50_ms: float | None
    publish: Steps
    hash_scan_s: float
    api_bytes: int
    weaviate_bytes: int | None
    weaviate_disk_bytes: int | None
    postgres_disk_bytes: int


def measure_growth(installation: Installation, sizes: Sequence[int], pairs: int) -> Section:
    """Grow a new collection through ``sizes`` (rising) and measure at each of them."""
    collection = installation.new_collection("growth")
    points: list[Point] = []
    editions: dict[int, int] = {}
    with serving(installation) as service:
        reached = 0
        for size in sizes:
            grow(installation, collection, reached, size)
            reached = size
            points.append(_measure(installation, service, collection, size, editions, pairs))
    return Section(
        name="growth",
        backend=installation.backend,
        title=f"Growth from {sizes[0]:,} to {sizes[-1]:,} chunks, vectors given",
        tables=(_search_table(points), _publish_table(points), _space_table(points)),
        notes=(*_notes(points, pairs), *_index_note(installation)),
        data={"points": [_shown(point) for point in points]},
    )


def _measure(
    installation: Installation,
    service: Service,
    collection: Collection,
    size: int,
    editions: dict[int, int],
    pairs: int,
) -> Point:
    installation.say(f"measuring at {size:,} chunks")
    steps = median_steps(
        [_publish_changes(installation, collection, size, editions) for _ in range(REPEATS)]
    )
    found = installation.run(compare(installation, service.url, collection, pairs, seed=size))
    weaviate = installation.weaviate_pid()
    home = installation.runtime.home
    return Point(
        chunks=size,
        search_p50_ms=found.product.p50_ms,
        search_p95_ms=found.product.p95_ms,
        degraded=found.degraded,
        raw_p50_ms=found.raw_total.p50_ms if found.raw else None,
        raw_queries_p50_ms=found.raw_queries.p50_ms if found.raw else None,
        publish=steps,
        hash_scan_s=_scan(installation, collection, size, editions),
        api_bytes=service.resident_bytes(),
        weaviate_bytes=int(psutil.Process(weaviate).memory_info().rss) if weaviate else None,
        weaviate_disk_bytes=_size_on_disk(home.weaviate_dir) if weaviate else None,
        postgres_disk_bytes=_database_bytes(installation),
    )


def _publish_changes(
    installation: Installation, collection: Collection, size: int, editions: dict[int, int]
) -> Steps:
    """Publish new editions of `CHANGED` documents, spread over the collection."""
    changed = sorted({number * size // CHANGED for number in range(CHANGED)})
    for number in changed:
        editions[number] = editions.get(number, 0) + 1
    documents = [installation.corpus.document(number, editions[number]) for number in changed]
    return publish(installation, collection, documents)


def _scan(
    installation: Installation, collection: Collection, size: int, editions: dict[int, int]
) -> float:
    """Publish everything as it stands; returns the seconds of finding that nothing differs."""
    corpus, runtime = installation.corpus, installation.runtime
    documents = (corpus.document(number, editions.get(number, 0)) for number in range(size))
    announce_documents(installation, collection, documents, mode="full")
    checks = DataChecks()
    with leased(runtime, collection.tenant_id, collection.slug, "bench-scan") as held:
        taken, ticked = timed(lambda: tick(runtime, held, check=checks))
        assert not ticked.ticked, "a publish of what is there must not move the clock"
        serve(runtime, held)
    return taken - checks.seconds


def _size_on_disk(folder: Path) -> int:
    files = (path for path in folder.rglob("*") if path.is_file())
    return sum(path.stat().st_blocks * 512 for path in files)


def _database_bytes(installation: Installation) -> int:
    with installation.runtime.owner.transaction() as connection:
        row = connection.execute("select pg_database_size(current_database()) as size").fetchone()
    assert row is not None
    return int(row["size"])


# --- how it is shown ---------------------------------------------------------------------


def _shown(point: Point) -> dict[str, Any]:
    return {**asdict(point), "publish_s": point.publish.total}


def _search_table(points: Sequence[Point]) -> Table:
    rows = [
        (
            f"{p.chunks:,}",
            ms(p.search_p50_ms),
            ms(p.search_p95_ms),
            str(p.degraded),
            "-" if p.raw_p50_ms is None else ms(p.raw_p50_ms),
            "-" if p.raw_queries_p50_ms is None else ms(p.raw_queries_p50_ms),
            "-" if p.raw_p50_ms is None else f"{p.search_p50_ms / p.raw_p50_ms:.2f}",
        )
        for p in points
    ]
    header = ("chunks", "search p50", "p95", "degraded", "raw p50", "two queries p50", "ratio")
    return Table(caption="Search through the service", header=header, rows=tuple(rows))


def _publish_table(points: Sequence[Point]) -> Table:
    rows = [
        (
            f"{p.chunks:,}",
            *(seconds(getattr(p.publish, step)) for step in STEPS),
            seconds(p.publish.total),
            seconds(p.hash_scan_s),
        )
        for p in points
    ]
    steps = (step.replace("_", " ") for step in STEPS)
    header = ("chunks", *steps, "total", "hash scan of a full publish")
    return Table(
        caption=f"Publish of {CHANGED} changed chunks, by step", header=header, rows=tuple(rows)
    )


def _space_table(points: Sequence[Point]) -> Table:
    rows: list[tuple[str, ...]] = [
        (
            f"{p.chunks:,}",
            _mb(p.api_bytes),
            _mb(p.weaviate_bytes),
            _mb(p.weaviate_disk_bytes),
            _mb(p.postgres_disk_bytes),
        )
        for p in points
    ]
    if len(points) > 1:
        rows.append(("each 1,000 more", *_slopes(points[0], points[-1])))
    header = ("chunks", "API memory", "Weaviate memory", "Weaviate disk", "PostgreSQL disk")
    return Table(caption="Resident memory and disk", header=header, rows=tuple(rows))


def _index_note(installation: Installation) -> tuple[str, ...]:
    if installation.backend != "weaviate":
        return ()
    cutoff = installation.runtime.settings.indexing.flat_search_cutoff
    return (
        f"Up to {cutoff:,} admitted objects Weaviate compares the query with each of them, exactly;"
        " beyond that it walks its graph.",
    )


def _slopes(first: Point, last: Point) -> tuple[str, ...]:
    """MB for each 1,000 chunks between the smallest and the largest size."""
    thousands = (last.chunks - first.chunks) / 1000
    pairs = (
        (first.api_bytes, last.api_bytes),
        (first.weaviate_bytes, last.weaviate_bytes),
        (first.weaviate_disk_bytes, last.weaviate_disk_bytes),
        (first.postgres_disk_bytes, last.postgres_disk_bytes),
    )
    return tuple(
        "-" if a is None or b is None else f"{(b - a) / thousands / MB:.2f} MB" for a, b in pairs
    )


def _mb(size: int | None) -> str:
    return "-" if size is None else f"{size / MB:,.0f} MB"


def _notes(points: Sequence[Point], pairs: int) -> tuple[str, ...]:
    notes = (
        f"{pairs} different questions at each size, top 10, concurrency 1. The publish is the"
        f" median of {REPEATS}. All is one collection, published in deltas.",
    )
    if len(points) < 2:
        return notes
    first, last = points[0], points[-1]
    return (
        *notes,
        f"From {first.chunks:,} to {last.chunks:,} chunks search p50 grew"
        f" {last.search_p50_ms / first.search_p50_ms:.2f} times, the publish of {CHANGED} chunks"
        f" {last.publish.total / first.publish.total:.2f} times, the hash scan"
        f" {last.hash_scan_s / first.hash_scan_s:.1f} times.",
    )
