"""An answer as a person reads it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from itertools import groupby
from typing import Final

from knowledge.cli.output import one_line, plural, short_version, table
from knowledge.retrieval.answer import (
    Answer,
    Candidate,
    ExplainedChunk,
    Explanation,
    FactCandidate,
    LegReport,
    LegState,
)

WIDTH: Final = 100
TEXT_LINES: Final = 4
PATH_CHARS: Final = 200
_INDENT: Final = " " * 4


def answer_text(answer: Answer) -> str:
    """Scope, then every candidate with its citation, then the legs."""
    scope = answer.scope
    groups = f", groups {', '.join(scope.groups)}" if scope.groups else ", no group"
    parts = [
        f"{scope.tenant_id}/{scope.project_id} as {scope.principal}{groups}"
        f" · {plural(len(answer.candidates), 'answer')} in {answer.latency_ms:.0f} ms"
        f"\n{_confidence(answer)}",
    ]
    if answer.degraded:
        parts.append("DEGRADED: thinner than asked for, see the legs below.")
    parts += [
        _fact(rank, found) if isinstance(found, FactCandidate) else _candidate(rank, found)
        for rank, found in enumerate(answer.candidates, start=1)
    ]
    if not answer.candidates:
        parts.append("Nothing found in what this client may read.")
    if answer.explained is not None:
        parts.append(_explained(answer.explained))
    parts.append(_legs(answer.legs, answer.rerank))
    return "\n\n".join(parts)


def _confidence(answer: Answer) -> str:
    return f"confidence {answer.confidence:.2f}{' (low support)' if answer.low_support else ''}"


def _fact(rank: int, candidate: FactCandidate) -> str:
    fact = candidate.citation.fact
    told = fact.provenance
    said_by = (
        f"{one_line(told.source_id, PATH_CHARS)} {short_version(told.source_version)}"
        if told.source_id is not None
        else one_line(told.client or told.principal, PATH_CHARS)
    )
    signals = "  ".join(f"{leg} {value:.3g}" for leg, value in candidate.citation.signals.items())
    shown = [
        f"{rank:>2}. {candidate.citation.score:.3f}  fact {fact.fact_id}",
        f"{_INDENT}{fact.domain.value} · {said_by} · {fact.tier.value} · {signals}",
    ]
    if candidate.explanation is not None:
        shown.append(_INDENT + _why(candidate.explanation))
    return "\n".join([*shown, f"{_INDENT}| {_short(candidate.text)}"])


def _candidate(rank: int, candidate: Candidate) -> str:
    citation = candidate.citation
    lines = "" if citation.lines is None else f":{citation.lines[0]}-{citation.lines[1]}"
    signals = "  ".join(f"{leg} {value:.3g}" for leg, value in citation.signals.items())
    shown = [
        f"{rank:>2}. {citation.score:.3f}  {one_line(citation.path, PATH_CHARS)}{lines}",
        f"{_INDENT}{citation.collection}@{citation.index_revision}"
        f" · {one_line(citation.source_id, PATH_CHARS)} {short_version(citation.source_version)}"
        f" · {citation.trust_tier.value} · {signals}",
    ]
    if candidate.explanation is not None:
        shown.append(_INDENT + _why(candidate.explanation))
        shown.append(f"{_INDENT}chunk {citation.chunk_id}")
    if candidate.title:
        shown.append(f"{_INDENT}{_short(candidate.title)}")
    return "\n".join(shown + [f"{_INDENT}{line}" for line in _first_lines(candidate)])


def _why(explanation: Explanation) -> str:
    ranks = ", ".join(f"{leg} #{place}" for leg, place in explanation.ranks.items())
    of_it = f" ({explanation.prior:g} of it prior)" if explanation.prior else ""
    reranked = "" if explanation.rerank is None else f", blend {explanation.rerank:.3f}{of_it}"
    return f"why: {ranks}, fusion {explanation.fusion:.4f}{reranked}"


def _explained(explained: ExplainedChunk) -> str:
    """The outcome, then a line a leg: its rank, or why it does not rank the chunk."""
    lines = [f"chunk {explained.chunk_id}: {explained.outcome.value}, {explained.reason}"]
    if explained.collection is not None:
        lines.append(f"{_INDENT}in {explained.collection}@{explained.index_revision or '-'}")
    for leg in explained.legs:
        place = leg.reason if leg.rank is None else f"#{leg.rank}"
        signal = "" if leg.signal is None else f"  {leg.signal:.3g}"
        weakest = "" if leg.weakest is None else f" (weakest hit {leg.weakest:.3g})"
        lines.append(f"{_INDENT}{leg.leg.value}{signal}{weakest}: {place}")
    if explained.rank is not None:
        blend = "" if explained.rerank_rank is None else f", blend #{explained.rerank_rank}"
        lines.append(f"{_INDENT}fusion #{explained.fusion_rank}{blend}, final #{explained.rank}")
    return "\n".join(lines)


def _first_lines(candidate: Candidate) -> list[str]:
    """The first lines of the text: code as it stands, prose wrapped."""
    lines = [line.rstrip() for line in candidate.text.splitlines() if line.strip()]
    if candidate.kind != "code":
        lines = [part for line in lines for part in textwrap.wrap(line, WIDTH - 6)]
    shown = [f"| {_short(line)}" for line in lines[:TEXT_LINES]]
    return [*shown, "…"] if len(lines) > TEXT_LINES else shown


def _short(line: str) -> str:
    return one_line(line, WIDTH - 6)


def _legs(legs: Iterable[LegReport], rerank: str) -> str:
    ran = [leg for leg in legs if leg.state is not LegState.SKIPPED]
    rows = [
        (
            leg.leg.value,
            leg.collection or "-",
            leg.state.value,
            "-" if leg.index_revision is None else str(leg.index_revision),
            str(leg.count),
            f"{leg.latency_ms:.1f}",
        )
        for leg in ran
    ]
    header = ("LEG", "COLLECTION", "STATE", "REVISION", "HITS", "MS")
    shown = [table(header, rows, numbers=3)] if rows else []
    shown += [f"{_name(leg)}: {leg.reason}" for leg in ran if leg.reason]
    shown += _skipped([leg for leg in legs if leg.state is LegState.SKIPPED])
    ordered = "the blend of words and meaning" if rerank == "reranker" else "rank fusion alone"
    return "\n".join([*shown, f"ordered by {ordered}"])


def _skipped(legs: list[LegReport]) -> list[str]:
    """One line a reason, in the order they come."""
    by_reason = sorted(legs, key=lambda leg: leg.reason or "")
    return [
        f"skipped: {', '.join(dict.fromkeys(map(_name, members)))} ({reason})"
        for reason, members in groupby(by_reason, key=lambda leg: leg.reason)
    ]


def _name(leg: LegReport) -> str:
    return leg.leg.value if leg.collection is None else f"{leg.leg.value} ({leg.collection})"
