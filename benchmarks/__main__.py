"""``python -m benchmarks``: measure the product and write ``benchmarks/RESULTS.md``.

Everything runs on a scratch home with real servers. Parts can be run alone; what is not measured
this time keeps its last result.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click
import httpx

from benchmarks.conversations import find_conversations, measure_conversations
from benchmarks.facts import measure_facts
from benchmarks.growth import SIZES, measure_growth
from benchmarks.installation import Installation, open_installation
from benchmarks.latency import measure_latency
from benchmarks.load import measure_load
from benchmarks.memory import measure_memory
from benchmarks.publish_cost import measure_publish_cost
from benchmarks.quality import DATA_SETS, find_data_sets, local_profiles, measure_quality
from benchmarks.report import BACKENDS, SECTIONS, write_report
from benchmarks.sections import Section, write_section
from benchmarks.slowest import measure_slowest
from knowledge.errors import KnowledgeError

PGVECTOR_MAX: Final = 50_000
"""It scans: larger collections are Weaviate's."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says; see the options."""

    home: Path | None
    output: Path
    size: int
    sizes: tuple[int, ...]
    pairs: int
    rate: float
    seconds: float
    with_stack: bool
    facts: int
    data: Path | None
    profiles: tuple[str, ...]
    limit: int | None


Measure = Callable[[Installation, Options], Section | None]


def _latency(installation: Installation, options: Options) -> Section:
    return measure_latency(installation, options.size, options.pairs)


def _load(installation: Installation, options: Options) -> Section:
    return measure_load(installation, options.size, options.rate, options.seconds)


def _publish(installation: Installation, options: Options) -> Section:
    return measure_publish_cost(installation, options.size, with_stack=options.with_stack)


def _growth(installation: Installation, options: Options) -> Section:
    most = PGVECTOR_MAX if installation.backend == "pgvector" else max(options.sizes)
    sizes = [size for size in sorted(options.sizes) if size <= most]
    return measure_growth(installation, sizes or [min(options.sizes)], options.pairs)


def _slowest(installation: Installation, options: Options) -> Section:
    return measure_slowest(installation, options.size, options.pairs)


def _facts(installation: Installation, options: Options) -> Section:
    return measure_facts(installation, options.facts)


def _memory(installation: Installation, _options: Options) -> Section:
    return measure_memory(installation)


def _quality(installation: Installation, options: Options) -> Section | None:
    found = find_data_sets(options.data) if options.data else []
    if not found:
        where = f"no {' or '.join(DATA_SETS)} in it" if options.data else "no --data DIR is given"
        _say(f"quality: skipped, {where}")
        return None
    profiles = options.profiles or local_profiles(installation)
    return measure_quality(installation, found, profiles, options.limit)


def _conversations(installation: Installation, options: Options) -> Section | None:
    found = find_conversations(options.data, options.limit) if options.data else None
    if found is None:
        where = "no turns and questions in it" if options.data else "no --data DIR is given"
        _say(f"conversations: skipped, {where}")
        return None
    profiles = options.profiles or local_profiles(installation)
    return measure_conversations(installation, found, profiles)


PARTS: Final[dict[str, Measure]] = {
    "latency": _latency,
    "load": _load,
    "slowest": _slowest,
    "publish": _publish,
    "growth": _growth,
    "facts": _facts,
    "memory": _memory,
    "quality": _quality,
    "conversations": _conversations,
}
ALL: Final = {
    "weaviate": (
        ("latency", "load", "slowest", "publish"),
        ("growth",),
        ("facts",),
        ("memory",),
        ("quality", "conversations"),
    ),
    "pgvector": (("latency", "publish"), ("growth",)),
}
"""The parts of ``all``; those that stand together share a temporary home, growth and facts need new ones.

On the second backend what helps to choose between the two.
"""


@click.command(help=(__doc__ or "").replace("``", ""))
@click.argument("part", type=click.Choice([*PARTS, "all", "report"]))
@click.option("--backend", type=click.Choice(list(BACKENDS)), help="Only this one.")
@click.option(
    "--home",
    envvar="KNOWLEDGE_HOME",
    type=click.Path(file_okay=False, path_type=Path),
    help="A scratch home that is kept and used again.  [default: temporary]",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(__file__).parent,
    help="Folder of RESULTS.md and what it is made from.  [default: benchmarks]",
)
@click.option("--size", default=20_000, show_default=True, help="Chunks, in all parts but growth.")
@click.option("--sizes", default=",".join(map(str, SIZES)), show_default=True, help="Growth.")
@click.option("--facts", default=1_000_000, show_default=True, help="Facts that are told.")
@click.option("--pairs", default=300, show_default=True, help="Questions asked one by one.")
@click.option("--rate", default=50.0, show_default=True, help="Requests a second under load.")
@click.option("--seconds", default=60.0, show_default=True, help="Length of the load.")
@click.option("--no-stack", is_flag=True, help="Do not start Dagster: publish → searchable is out.")
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of the test collections.  [default: quality is skipped]",
)
@click.option(
    "--profile", "profiles", multiple=True, help="Quality, conversations: only this. Repeatable."
)
@click.option("--limit", type=click.IntRange(1), help="Quality: only the first questions.")
def main(part: str, backend: str | None, no_stack: bool, sizes: str, **given: Any) -> None:
    options = Options(with_stack=not no_stack, sizes=_numbers(sizes), **given)
    failed: list[str] = []
    if part == "all":
        failed = _measure_all([backend] if backend else list(BACKENDS), options)
    elif part != "report":
        failed = _measure(backend or "weaviate", [part], options)
    _say(f"written: {write_report(options.output)}")
    if failed:
        sys.exit(f"benchmarks: not measured: {', '.join(failed)}")


def _measure_all(backends: Sequence[str], options: Options) -> list[str]:
    failed = []
    for backend in backends:
        with_stack = options.with_stack and backend == "weaviate"
        for parts in ALL[backend]:
            failed += _measure(backend, parts, replace(options, with_stack=with_stack))
    return failed


def _measure(backend: str, parts: Sequence[str], options: Options) -> list[str]:
    """Measure parts on one installation; returns those that failed, the others are written."""
    failed = []
    try:
        with open_installation(options.home, backend, _say) as installation:
            for part in parts:
                try:
                    _measure_part(installation, part, options)
                except (KnowledgeError, httpx.HTTPError) as error:
                    _say(f"{backend}: {part} failed: {error}")
                    failed.append(f"{backend} {part}")
    except KnowledgeError as error:
        sys.exit(f"benchmarks: {error.message}")
    return failed


def _measure_part(installation: Installation, part: str, options: Options) -> None:
    _say(f"{installation.backend}: {part}")
    section = PARTS[part](installation, options)
    if section is None:
        return
    write_section(options.output / SECTIONS, section)
    write_report(options.output)
    for bar in section.bars:
        met = "met" if bar.is_met else "NOT MET"
        _say(f"  {bar.what}: {bar.figure} (bar {bar.bar}): {met}")


def _numbers(text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(word.replace("_", "")) for word in text.split(","))
    except ValueError as error:
        raise click.BadParameter("write whole numbers: --sizes 1000,5000") from error
    if min(numbers) < 100:
        raise click.BadParameter("sizes start at 100")
    return numbers


def _say(line: str) -> None:
    click.echo(line, err=True)


if __name__ == "__main__":
    main()
