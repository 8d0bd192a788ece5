"""RESULTS.md and the picture, written anew from every section measured so far."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.machine import Machine
from benchmarks.picture import draw_growth
from benchmarks.sections import Section, Table, read_sections

REPORT: Final = "RESULTS.md"
SECTIONS: Final = "results"
ORDER: Final = (
    "latency",
    "load",
    "publish",
    "growth",
    "slowest",
    "facts",
    "memory",
    "quality",
    "conversations",
)
BACKENDS: Final = {"weaviate": "Weaviate", "pgvector": "pgvector"}

_NUMBER: Final = re.compile(r"[-\d]")

READING: Final = """\
Written by `make bench`; `python -m benchmarks PART` measures one part and leaves the others as they
were, so each part says when and at which commit it was measured (`+`: with changes that were not
committed). The budgets are ratios taken in one run on one machine where they can be: the other side
of a ratio is weaviate-client doing the same work without scope, clock, fusion or citation.
Milliseconds and seconds are this machine's, on which the load generator runs too; compare them with
each other, not with another machine's. Documents are synthetic except under *Quality*: 80 English
words each by Zipf's law, vectors in clusters, three in ten with an ACL, 16 sources. Their vectors are
given; the query is embedded by the real model."""


def write_report(folder: Path) -> Path:
    """Render every section kept in ``folder``; returns the file, the pictures lie beside it."""
    sections = sorted(read_sections(folder / SECTIONS), key=_place)
    parts = ["# Benchmark results", READING]
    if sections:
        newest = max(sections, key=lambda section: section.provenance.measured_at)
        parts += [_machine(newest.provenance.machine), _budgets(sections), _choice(sections)]
        for section in sections:
            parts.append(_section(folder, section, newest.provenance.machine))
    report = folder / REPORT
    report.write_text("\n\n".join(part for part in parts if part) + "\n")
    return report


def _place(section: Section) -> tuple[int, int]:
    return list(BACKENDS).index(section.backend), ORDER.index(section.name)


def _machine(machine: Machine) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    return (
        f"Machine: {machine.cpu}, {machine.cores} cores, {machine.memory_bytes / 2**30:.0f} GiB,"
        f" {machine.system}. {versions}."
    )


def _budgets(sections: Sequence[Section]) -> str:
    rows = [
        (
            BACKENDS[section.backend],
            bar.what,
            bar.bar,
            bar.figure,
            "yes" if bar.is_met else "**no**",
        )
        for section in sections
        for bar in section.bars
    ]
    if not rows:
        return ""
    header = ("backend", "what", "bar", "measured", "met")
    return "## Budgets\n\n" + _table(Table(caption="", header=header, rows=tuple(rows)))


def _choice(sections: Sequence[Section]) -> str:
    """The backends side by side at the sizes that both were grown to."""
    grown = {s.backend: s.data["points"] for s in sections if s.name == "growth"}
    if len(grown) < 2:
        return ""
    by_size = {name: {p["chunks"]: p for p in points} for name, points in grown.items()}
    shared = sorted(set.intersection(*(set(points) for points in by_size.values())))
    if not shared:
        return ""
    header = (
        "chunks",
        *(f"{BACKENDS[b]} {what}" for what in ("search p50", "publish of 100") for b in by_size),
    )
    rows = [
        (
            f"{size:,}",
            *(f"{points[size]['search_p50_ms']:.1f} ms" for points in by_size.values()),
            *(f"{points[size]['publish_s']:.2f} s" for points in by_size.values()),
        )
        for size in shared
    ]
    return "## Which backend\n\n" + _table(Table(caption="", header=header, rows=tuple(rows)))


def _section(folder: Path, section: Section, usual: Machine) -> str:
    provenance = section.provenance
    told = (
        f"*{provenance.measured_at:%Y-%m-%d %H:%M} UTC, commit {provenance.commit},"
        f" `{provenance.command}`*"
    )
    parts = [f"## {section.title} ({BACKENDS[section.backend]})", told]
    if provenance.machine != usual:
        parts.append("Another machine than above. " + _machine(provenance.machine))
    if section.name == "growth":
        parts.append(_picture(folder, section))
    for table in section.tables:
        parts += [f"**{table.caption}**" if table.caption else "", _table(table)]
    return "\n\n".join(part for part in (*parts, *section.notes) if part)


def _picture(folder: Path, section: Section) -> str:
    """Draw the growth beside the report; returns the line that shows it."""
    suffix = "" if section.backend == "weaviate" else f"-{section.backend}"
    name = f"growth{suffix}.svg"
    (folder / name).write_text(draw_growth(section.data["points"]))
    return f"![Search p50 and publish of 100 chunks by size of the collection]({name})"


def _table(table: Table) -> str:
    columns = zip(*table.rows, strict=True)
    rule = ["---:" if all(map(_NUMBER.match, column)) else "---" for column in columns]
    lines = [table.header, rule, *table.rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
