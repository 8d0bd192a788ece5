"""What publishing costs: loading the index, a small publish after a full one, and freshness."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Final

from benchmarks.freshness import Freshness, measure_freshness
from benchmarks.installation import Installation
from benchmarks.publishing import STEPS, Steps, median_steps, publish
from benchmarks.raw import import_objects, read_objects
from benchmarks.sections import Bar, Section, Table
from benchmarks.timings import seconds
from knowledge.model.collection import Collection

MIN_LOAD_RATIO: Final = 0.8
MAX_SMALL_SHARE: Final = 0.08
SMALL_SHARE: Final = 0.01
REPEATS: Final = 3
RAW_BATCHES: Final = (500, 200)
"""The product's own batch size, and a smaller one; the faster counts."""

MAX_FRESH_P50_S: Final = 12.0
MAX_FRESH_S: Final = 25.0


@dataclass(frozen=True, slots=True)
class Publishes:
    """One full publish of ``size`` chunks and the median of the small ones after it.

    ``again`` publishes the same texts to a second collection, whose order of ids is another: its
    batches need vectors from all over the store. ``raw`` are the seconds of importing the first
    one's objects directly, by batch size.
    """

    size: int
    full: Steps
    again: Steps
    small: Steps
    raw: dict[int, float]

    @property
    def load_ratio(self) -> float:
        return min(self.raw.values()) / self.full.hybrid

    @property
    def small_share(self) -> float:
        return self.small.total / self.full.total


def measure_publish_cost(installation: Installation, size: int, *, with_stack: bool) -> Section:
    """Publish ``size`` chunks, then 1 % of them again; ``with_stack`` then through Dagster."""
    collection = installation.new_collection(f"publish-{size}")
    found = _publish_both(installation, collection, size)
    fresh = measure_freshness(installation, collection) if with_stack else None
    return Section(
        name="publish",
        backend=installation.backend,
        title=f"Publishing, {size:,} chunks, vectors given",
        bars=(*_load_bars(found), _small_bar(found), *(_fresh_bars(fresh) if fresh else ())),
        tables=(_step_table(found), *(_load_tables(found))),
        notes=_notes(fresh),
        data={
            "fullS": found.full.total,
            "smallS": found.small.total,
            "loadRatio": found.load_ratio if found.raw else None,
            "freshS": list(fresh.searchable_s) if fresh else None,
        },
    )


def _publish_both(installation: Installation, collection: Collection, size: int) -> Publishes:
    corpus = installation.corpus
    installation.say(f"publishing {size:,} chunks at once")
    full = publish(installation, collection, corpus.documents(0, size), mode="full")
    raw = _import_raw(installation, collection) if installation.backend == "weaviate" else {}
    few = max(1, round(size * SMALL_SHARE))
    installation.say(f"publishing {few:,} changed chunks, {REPEATS} times")
    small = [
        publish(
            installation,
            collection,
            [corpus.document(number * size // few, edition) for number in range(few)],
        )
        for edition in range(1, REPEATS + 1)
    ]
    installation.say("publishing the same texts to a second collection")
    second = installation.new_collection(f"publish-{size}-again")
    again = publish(installation, second, corpus.documents(0, size), mode="full")
    return Publishes(size, full, again, median_steps(small), raw)


def _import_raw(installation: Installation, collection: Collection) -> dict[int, float]:
    installation.say("importing the same objects with weaviate-client alone")
    today = installation.runtime.collection(installation.tenant, collection.slug)
    objects = read_objects(installation, today)
    return {batch: import_objects(installation, objects, batch) for batch in RAW_BATCHES}


def _load_bars(found: Publishes) -> tuple[Bar, ...]:
    if not found.raw:
        return ()
    return (
        Bar(
            what="hybrid_index load with vectors given, against raw batch import",
            bar=f"≥ {MIN_LOAD_RATIO}",
            figure=f"{found.load_ratio:.2f}"
            f" ({_rate(found, found.full.hybrid)} / {_rate(found, min(found.raw.values()))})",
            is_met=found.load_ratio >= MIN_LOAD_RATIO,
        ),
    )


def _small_bar(found: Publishes) -> Bar:
    return Bar(
        what=f"1 % publish against the full one, {found.size:,} chunks",
        bar=f"≤ {MAX_SMALL_SHARE:.0%}",
        figure=f"{found.small_share:.1%}"
        f" ({seconds(found.small.total)} / {seconds(found.full.total)})",
        is_met=found.small_share <= MAX_SMALL_SHARE,
    )


def _fresh_bars(fresh: Freshness) -> tuple[Bar, Bar]:
    middle, longest = median(fresh.searchable_s), max(fresh.searchable_s)
    what = f"publish → searchable, daemon running, {len(fresh.searchable_s)} publishes"
    return (
        Bar(
            what=f"{what}: p50",
            bar=f"≤ {MAX_FRESH_P50_S:.0f} s",
            figure=seconds(middle),
            is_met=middle <= MAX_FRESH_P50_S,
        ),
        Bar(
            what=f"{what}: longest",
            bar=f"≤ {MAX_FRESH_S:.0f} s",
            figure=seconds(longest),
            is_met=longest <= MAX_FRESH_S,
        ),
    )


def _step_table(found: Publishes) -> Table:
    columns = (found.full, found.again, found.small)
    rows = [
        (name.replace("_", " "), *(seconds(getattr(steps, name)) for steps in columns))
        for name in (*STEPS, "total")
    ]
    few = max(1, round(found.size * SMALL_SHARE))
    header = ("step", f"all {found.size:,}", "in a second collection", f"{few:,} changed")
    return Table(caption="Seconds of a run by step", header=header, rows=tuple(rows))


def _load_tables(found: Publishes) -> tuple[Table, ...]:
    loads = {
        "hybrid_index": found.full.hybrid,
        "hybrid_index of the second collection": found.again.hybrid,
    }
    rows = [(name, seconds(taken), _rate(found, taken)) for name, taken in loads.items()]
    rows += [
        (f"weaviate-client, batches of {batch}", seconds(taken), _rate(found, taken))
        for batch, taken in found.raw.items()
    ]
    header = ("", "seconds", "objects/s")
    return (Table(caption="Loading the index", header=header, rows=tuple(rows)),)


def _rate(found: Publishes, taken: float) -> str:
    return f"{found.size / taken:,.0f}/s"


def _notes(fresh: Freshness | None) -> tuple[str, ...]:
    steps = (
        "The steps are those of a Dagster run in one process; vectors were in the store before"
        f" `embed`. The small publish is the median of {REPEATS}. The second collection holds the"
        " same texts, but its vectors lie in the store in the order of the first."
    )
    if fresh is None:
        return (steps,)
    told = ", ".join(f"{value:.1f}" for value in fresh.announced_s)
    waits = ", ".join(f"{value:.1f}" for value in fresh.searchable_s)
    return (
        steps,
        "Publish → searchable is counted from the start of the command `knowledge publish` to the"
        f" first answer that holds the new document: {waits} s; the command itself took {told} s.",
    )
