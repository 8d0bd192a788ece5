"""A timeline as a person reads it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from knowledge.cli.graph.text import columns, instant, name, notes, owner, scope_line, trust, window
from knowledge.cli.output import one_line, plural
from knowledge.graph.querying import History
from knowledge.model.fact import Closing, Domain, Fact, name_key

HOLDS: Final = "●"
ENDED: Final = "·"
COMING: Final = "○"
CLOSED: Final = "✗"
REPEATED: Final = "↻"
SUGGESTED: Final = "?"
_MEANINGS: Final = {
    HOLDS: "holds now",
    ENDED: "ended",
    COMING: "has not begun",
    CLOSED: "believed no longer",
    REPEATED: "told again since",
    SUGGESTED: "suggestion",
}

Groups = list[tuple[str, list[tuple[Fact, str]]]]
"""Headings, each with its facts and the name that a fact's row shows."""

Repeated = Mapping[uuid.UUID, Sequence[Fact]]
"""Tellings that a later one of the same fact only repeats, by that one's id."""


def history_text(history: History, *, with_ids: bool) -> str:
    """The entity's facts by predicate, oldest first in each; the mark says where each stands."""
    found = f"{plural(len(history.facts), 'telling')} of {name(history.entity)}"
    parts = [scope_line(history.scope, found, None)]
    if not history.facts:
        parts.append("Nothing told in what this client may read.")
        return "\n\n".join(parts)
    now = history.as_known_at
    by_id = {str(fact.fact_id): fact for fact in history.facts}
    repeated = _repeated(history.facts)
    folded = {fact.telling_id for before in repeated.values() for fact in before}
    groups = _groups(history.entity, [f for f in history.facts if f.telling_id not in folded])
    rows = [
        _row(fact, end, now, by_id, repeated.get(fact.telling_id, ()), with_ids)
        for _, told in groups
        for fact, end in told
    ]
    lines = iter(columns(rows))
    for heading, told in groups:
        parts.append("\n".join([heading, *(f"  {next(lines)}" for _ in told)]))
    used = {row[0] for row in rows}
    legend = [f"{mark} {words}" for mark, words in _MEANINGS.items() if mark in used]
    parts.append("  ".join(legend))
    if history.is_cut:
        parts.append("There is more: narrow it with --predicate or --domain.")
    return "\n\n".join(parts)


def _repeated(facts: Sequence[Fact]) -> Repeated:
    """What is folded into the row of a later telling, earliest observed first."""
    by_telling = {str(fact.telling_id): fact for fact in facts}
    repeated: dict[uuid.UUID, list[Fact]] = {}
    for fact in sorted(facts, key=lambda fact: fact.observed_at):
        last, passed = fact, set[uuid.UUID]()
        while last.closing is Closing.RESTATED and last.telling_id not in passed:
            passed.add(last.telling_id)
            last = by_telling.get(last.closed_by or "", last)
        if last.telling_id not in passed and last is not fact:
            repeated.setdefault(last.telling_id, []).append(fact)
    return repeated


def _groups(entity_name: str, facts: Sequence[Fact]) -> Groups:
    """By predicate and the end at which the entity stands, in the order of the first fact."""
    entity = name_key(entity_name)
    groups: dict[tuple[str, str, bool], tuple[str, list[tuple[Fact, str]]]] = {}
    for fact in sorted(facts, key=_place):
        is_object = name_key(fact.object) == entity and name_key(fact.subject) != entity
        own, other = (fact.object, fact.subject) if is_object else (fact.subject, fact.object)
        predicate = fact.predicate
        heading = f"… {predicate} {name(own)}" if is_object else f"{name(own)} {predicate} …"
        # Config and config are two things
        key = own if fact.domain is Domain.CODE else name_key(own)
        groups.setdefault((key, predicate, is_object), (heading, []))[1].append((fact, other))
    return list(groups.values())


def _place(fact: Fact) -> tuple[datetime, datetime]:
    begins = fact.valid_from.at if fact.valid_from else fact.observed_at
    return begins, fact.recorded_at


def _row(
    fact: Fact,
    end: str,
    now: datetime,
    by_id: Mapping[str, Fact],
    before: Sequence[Fact],
    with_ids: bool,
) -> Sequence[str]:
    is_closed = fact.closed_at is not None
    # What nobody believes any longer is shown as it was told: later facts did not end it.
    ends = fact.stated_to if is_closed else fact.valid_to
    row = [
        _mark(fact, now),
        window(fact.stated_from if is_closed else fact.valid_from, ends),
        name(end),
        trust(fact),
        owner(fact),
        "; ".join([*_why(fact, by_id), *_told_before(fact, before)]),
    ]
    return [row[0], str(fact.fact_id), *row[1:]] if with_ids else row


def _told_before(fact: Fact, before: Sequence[Fact]) -> list[str]:
    """Who told the fact before, and how surely where that was different."""
    if not before:
        return []
    first = before[0]
    differs = (first.confidence, first.verified) != (fact.confidence, fact.verified)
    how = f" with {trust(first)}" if differs else ""
    if len(before) == 1:
        return [f"told before by {owner(first)}{how}"]
    return [f"told {len(before):,} times before, first by {owner(first)}{how}"]


def _mark(fact: Fact, now: datetime) -> str:
    if fact.closing is Closing.RESTATED:
        return REPEATED
    if fact.closed_at is not None:
        return CLOSED
    if fact.suggestion == "suggested":
        return SUGGESTED
    if fact.holds_at(now):
        return HOLDS
    return COMING if fact.valid_from is not None and fact.valid_from.at > now else ENDED


def _why(fact: Fact, by_id: Mapping[str, Fact]) -> list[str]:
    """What ended the fact, or the belief in it, and what else is special about it."""
    if fact.closed_at is None:
        return notes(fact, {other.fact_id: other.object for other in by_id.values()})
    when = instant(fact.closed_at)
    by = one_line(fact.closed_by or "-", 60)
    match fact.closing:
        case Closing.CORRECTED:
            better = by_id.get(by)
            what = (
                f"{name(better.subject)} {better.predicate} {name(better.object)}" if better else by
            )
            return [f"corrected {when}: {what}"]
        case Closing.RESTATED:
            return [f"told again {when}"]
        case Closing.PREMISE:
            return [f"withdrawn {when}: {by}"]
        case _:
            return [f"{fact.closing} {when} by {by}"]
