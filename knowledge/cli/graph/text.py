"""Facts as a person reads them: one line a fact."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from knowledge.cli.output import one_line, plural, short_version, table
from knowledge.model.fact import DEFAULT_NAMESPACE, Fact, Moment, Precision
from knowledge.model.scope import Scope

NAME_CHARS: Final = 48
OWNER_CHARS: Final = 60
HEADER: Final = ("SUBJECT", "PREDICATE", "OBJECT", "HOLDS", "TRUST", "SAID BY", "")
_LENGTHS: Final = {Precision.YEAR: 4, Precision.MONTH: 7, Precision.DAY: 10}


def facts_text(facts: Sequence[Fact], *, with_ids: bool) -> str:
    """A table; the last column says what is special about a fact."""
    objects = {fact.fact_id: fact.object for fact in facts}
    rows = [(*triple(fact), *said(fact), "; ".join(notes(fact, objects))) for fact in facts]
    if not with_ids:
        return table(HEADER, rows)
    ids = [str(fact.fact_id) for fact in facts]
    return table(("FACT", *HEADER), [(id_, *row) for id_, row in zip(ids, rows, strict=True)])


def fact_lines(facts: Sequence[Fact], indent: str) -> list[str]:
    """The same without a header, below something else."""
    rows = [[*triple(fact), *said(fact), "; ".join(notes(fact, {}))] for fact in facts]
    return [f"{indent}{line}" for line in columns(rows)]


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of equal length as lines with aligned columns."""
    if not rows:
        return []
    return table(rows[0], rows[1:]).splitlines()


def triple(fact: Fact) -> tuple[str, str, str]:
    return name(fact.subject), fact.predicate, name(fact.object)


def said(fact: Fact) -> tuple[str, str, str]:
    """Window, trust and who says it."""
    return window(fact.valid_from, fact.valid_to), trust(fact), owner(fact)


def name(text: str) -> str:
    return one_line(text, NAME_CHARS)


def notes(fact: Fact, objects: Mapping[uuid.UUID, str]) -> list[str]:
    """What is special about a fact. ``objects`` are those of the facts that are shown."""
    found = []
    if fact.contradicts:
        others = [name(objects[other]) for other in fact.contradicts if other in objects]
        if hidden := len(fact.contradicts) - len(others):
            others.append(f"{hidden} more" if others else plural(hidden, "fact"))
        found.append(f"CONTRADICTS {', '.join(others)}")
    if fact.suggestion == "suggested":
        found.append(f"SUGGESTION by {one_line(fact.rule or '-', NAME_CHARS)}")
    elif fact.rule is not None:
        found.append(f"inferred by {one_line(fact.rule, NAME_CHARS)}")
    if fact.verified:
        found.append("verified")
    if fact.superseded_by is not None:
        by = objects.get(fact.superseded_by)
        found.append("superseded" if by is None else f"superseded by {name(by)}")
    if fact.namespace != DEFAULT_NAMESPACE:
        found.append(f"in {one_line(fact.namespace, NAME_CHARS)}")
    return found


def trust(fact: Fact) -> str:
    return f"{fact.tier.value} {fact.confidence:g}"


def owner(fact: Fact) -> str:
    """The source at its version, or the program and its session."""
    told = fact.provenance
    if told.source_id is not None:
        return one_line(f"{told.source_id}@{short_version(told.source_version)}", OWNER_CHARS)
    if fact.rule is not None:
        return plural(len(fact.lineage), "premise")
    return one_line(f"{told.client or told.principal} {told.session_id or ''}", OWNER_CHARS).strip()


def window(begins: Moment | None, ends: Moment | None) -> str:
    """Half-open, each end as exactly as it is known."""
    if begins is None and ends is None:
        return "always"
    if begins is None:
        return f"(… {moment(ends)})"
    return f"[{moment(begins)} …)" if ends is None else f"[{moment(begins)} … {moment(ends)})"


def moment(given: Moment | None) -> str:
    if given is None:
        return "…"
    if given.precision is Precision.INSTANT:
        return instant(given.at)
    return given.at.strftime("%Y-%m-%d").rjust(10, "0")[: _LENGTHS[given.precision]]


def instant(at: datetime) -> str:
    """In UTC: a day where it is one's first instant, otherwise to the second."""
    utc = at.astimezone(UTC)
    written = utc.replace(tzinfo=None).isoformat(timespec="seconds")
    return written[:10] if written.endswith("T00:00:00") else f"{written}Z"


def scope_line(scope: Scope, found: str, as_of: datetime | None) -> str:
    """Whose eyes saw it, what was found, and as of when."""
    groups = f", groups {', '.join(scope.groups)}" if scope.groups else ", no group"
    when = "" if as_of is None else f" as of {instant(as_of)}"
    return f"{scope.tenant_id}/{scope.project_id} as {scope.principal}{groups} · {found}{when}"


def more_line(cursor: str) -> str:
    return f"There are more: repeat with --cursor {cursor}"


def remark_lines(remarks: Iterable[tuple[str, int]], indent: str, most: int) -> list[str]:
    """What an ontology says against facts, most frequent first, at most ``most`` lines."""
    ordered = sorted(remarks, key=lambda remark: (-remark[1], remark[0]))
    width = max((len(f"{times:,}") for _, times in ordered), default=0)
    shown = [
        f"{times:>{width},} {'fact ' if times == 1 else 'facts'}  {one_line(line, 200)}"
        for line, times in ordered[:most]
    ]
    hidden = len(ordered) - len(shown)
    more = [f"and {plural(hidden, 'other remark')}: --json shows all"] if hidden else []
    return [f"{indent}{line}" for line in shown + more]
