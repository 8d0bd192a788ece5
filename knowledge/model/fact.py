"""Graph facts: what somebody says holds between two entities, and when."""

from __future__ import annotations

import re
import unicodedata
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from knowledge.errors import InvalidFact
from knowledge.model.scope import TrustTier

MAX_NAME_CHARS: Final = 512
MAX_PREDICATE_CHARS: Final = 64
MAX_FACTS: Final = 5_000
"""Facts of one batch: larger sets are asserted in several."""

DEFAULT_NAMESPACE: Final = "default"
"""Where facts are kept that name no namespace."""

SUGGESTED: Final = "suggested"
"""What an inferred fact is until somebody confirms it."""

_PREDICATE: Final = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")
_TYPE: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_REORDERING: Final = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
"""Marks, embeddings, overrides and isolates of writing direction: what is shown is not what is
stored."""

_HIDDEN: Final = frozenset("\u115f\u1160\u3164\uffa0").union(map(chr, range(0xE0000, 0xE0080)))
"""Fillers, and tags that can spell a text that models read and people do not see."""

_BLANK_BRAILLE: Final = "\u2800"

_NAMESPACE: Final = re.compile(r"[a-z0-9][a-z0-9|._:-]{0,127}")


class Domain(StrEnum):
    """The separate domains of the graph, by their wire names."""

    CODE = "code"
    ARCHITECTURE = "architecture"
    INFRASTRUCTURE = "infrastructure"
    ORGANIZATION = "organization"
    CUSTOMER = "customer"
    BUSINESS = "business"
    AGENT_EXPERIENCE = "agentExperience"


class Precision(StrEnum):
    """How exactly a time was given; a coarser one stands for its first instant."""

    YEAR = "year"
    MONTH = "month"
    DAY = "day"
    INSTANT = "instant"


class Closing(StrEnum):
    """Why a fact, or one telling of it, is believed no longer."""

    RESTATED = "restated"
    CORRECTED = "corrected"
    RETRACTED = "retracted"
    PREMISE = "premise"
    REJECTED = "rejected"
    PROMOTED = "promoted"


_SAID_CHARS: Final = {Precision.YEAR: 4, Precision.MONTH: 7, Precision.DAY: 10}


@dataclass(frozen=True, slots=True)
class Moment:
    """A time as it was given: its first instant in UTC, and how exactly."""

    at: datetime
    precision: Precision = Precision.INSTANT

    @property
    def text(self) -> str:
        """The time as exactly as it was said: `parse_moment` reads it as the same."""
        written = self.at.astimezone(UTC).isoformat().replace("+00:00", "Z")
        return written[: _SAID_CHARS.get(self.precision, len(written))]


@dataclass(frozen=True, slots=True)
class Provenance:
    """Who says it: a source at a version, or an agent (its program, model, session).

    ``principal`` is the API client that wrote it. Without ``source_id`` the fact is the
    principal's own.
    """

    principal: str
    source_id: str | None = None
    source_version: str | None = None
    client: str | None = None
    model: str | None = None
    session_id: str | None = None

    @property
    def owner(self) -> str:
        """Whose statement it is: two owners saying the same are two facts."""
        if self.source_id is not None:
            return f"source:{self.source_id}"
        return f"principal:{self.principal}"


@dataclass(frozen=True, slots=True)
class Statement:
    """One fact as it is asserted, valid and complete; see `knowledge.graph.reading`.

    ``valid_from`` and ``valid_to`` bound the half-open window [from, to); None is unbounded.
    ``observed_at`` is None where the teller did not say. ``acl`` None is everyone with the
    project. ``confidence`` is from 0 to 1. Of a fact that a chunk says, ``collection_id`` and
    ``chunk_id`` name the chunk: who may not see it does not see the fact. ``corrects`` names the fact this one replaces;
    ``readers_of`` the restricted sources that an inferred fact rests on. ``session_scope`` is the
    session that alone may recall the fact; None is every one. ``verified_by`` is the person who
    verified a telling before.
    """

    domain: Domain
    subject: str
    predicate: str
    object: str
    provenance: Provenance
    namespace: str = DEFAULT_NAMESPACE
    subject_type: str | None = None
    object_type: str | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    observed_at: datetime | None = None
    confidence: float = 1.0
    tier: TrustTier = TrustTier.SOURCE_FACT
    verified: bool = False
    acl: tuple[str, ...] | None = None
    collection_id: uuid.UUID | None = None
    chunk_id: uuid.UUID | None = None
    corrects: uuid.UUID | None = None
    readers_of: tuple[str, ...] = ()
    session_scope: str | None = None
    verified_by: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the window ends as it begins: the fact never holds, and so ends no other."""
        return (
            self.valid_from is not None
            and self.valid_to is not None
            and (self.valid_from.at == self.valid_to.at)
        )

    def starts(self, observed_at: datetime) -> datetime:
        """Its place on the timeline of a functional predicate.

        Without ``valid_from`` it starts when it was observed; what had ended by then, ever so early.
        """
        if self.valid_from is not None:
            return self.valid_from.at
        has_ended = self.valid_to is not None and self.valid_to.at <= observed_at
        return datetime.min.replace(tzinfo=UTC) if has_ended else observed_at


def require_name(value: str, what: str) -> str:
    """``value`` on one line, NFC, without outer blanks; raises `InvalidFact`."""
    name = " ".join(unicodedata.normalize("NFC", value).split())
    if not name:
        raise InvalidFact(f"{what} is empty")
    if len(name) > MAX_NAME_CHARS:
        raise InvalidFact(
            f"{what} has {len(name):,} characters, at most {MAX_NAME_CHARS} are allowed"
        )
    kinds = {unicodedata.category(character) for character in name.replace(_BLANK_BRAILLE, "")}
    if not kinds.isdisjoint(("Cc", "Cs")):
        raise InvalidFact(f"{what} holds a control character")
    if kinds <= {"Cf", "Zs", "Mn", "Me"}:
        raise InvalidFact(f"{what} holds nothing that can be seen")
    return name


def require_seen(name: str, what: str) -> None:
    """For names that agents tell one another: raises `InvalidFact` where they hold more than is
    seen, or show it otherwise. Sources may have such names."""
    if not _REORDERING.isdisjoint(name):
        raise InvalidFact(f"{what} holds a character that reorders the text around it")
    if not _HIDDEN.isdisjoint(name):
        raise InvalidFact(f"{what} holds a character that cannot be seen")


def require_predicate(value: str) -> str:
    if len(value) > MAX_PREDICATE_CHARS or not _PREDICATE.fullmatch(value):
        raise InvalidFact(
            f"predicate {value[:80]!r} is not UPPER_SNAKE_CASE of at most"
            f" {MAX_PREDICATE_CHARS} characters, such as DEPENDS_ON"
        )
    return value


def require_type(value: str, what: str) -> str:
    if not _TYPE.fullmatch(value):
        raise InvalidFact(f"{what} {value[:80]!r} is not a type name such as service or build_job")
    return value


def require_namespace(value: str) -> str:
    if not _NAMESPACE.fullmatch(value):
        raise InvalidFact(
            f"namespace {value[:80]!r} is not valid: use 1 to 128 of a-z, 0-9 and '|._:-',"
            " starting with a letter or digit"
        )
    return value


def is_memory(namespace: str) -> bool:
    """Whether facts of this namespace are a memory of agents: ``tenant|graph``."""
    return "|" in namespace


def require_domain(value: str) -> Domain:
    try:
        return Domain(value)
    except ValueError as error:
        raise InvalidFact(
            f"domain {value[:80]!r} is not known: use one of {', '.join(Domain)}"
        ) from error


def parse_moment(value: object, what: str) -> Moment | None:
    """A time as people write it: ``2024``, ``"2024-05"``, ``"2024-05-01"``, ISO 8601 with a time.

    Whole numbers of six or eight digits read as year and month, or year, month and day. A time
    without a zone is UTC. None stays None; raises `InvalidFact`.
    """
    if value is None:
        return None
    text = str(value).strip() if isinstance(value, (str, int)) and value is not True else ""
    for pattern, precision in _MOMENTS:
        if found := pattern.fullmatch(text):
            year, month, day = (*map(int, found.groups()), 1, 1)[:3]
            try:
                return Moment(datetime(year, month, day, tzinfo=UTC), precision)
            except ValueError:
                break
    try:
        if not isinstance(value, str):
            raise ValueError
        at = datetime.fromisoformat(text)
        return Moment(at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC))
    except (ValueError, OverflowError) as error:
        raise InvalidFact(
            f"{what} {str(value)[:40]!r} is not a time in the years 1 to 9999: write 2024,"
            " 2024-05, 2024-05-01 or 2024-05-01T12:00:00Z"
        ) from error


_MOMENTS: Final = (
    (re.compile(r"(\d{1,4})"), Precision.YEAR),
    (re.compile(r"(\d{4})-?(\d{2})"), Precision.MONTH),
    (re.compile(r"(\d{4})-?(\d{2})-?(\d{2})"), Precision.DAY),
)


@dataclass(frozen=True, slots=True)
class EntityName:
    """A name as facts are found by it. None of ``namespace`` or ``type`` is any of them.

    A mention without a type is one of every type of its name.
    """

    key: str
    namespace: str | None = None
    type: str | None = None


_FACTS: Final = uuid.UUID("4b0f6c0e-52a6-5d8e-9d55-0a3a1f6f2c11")
_UNIT: Final = "\x1f"


def name_key(name: str) -> str:
    """A name as it is looked up: compatibility forms, case and blanks make no difference."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def starts_at_observation(statement: Statement, *, functional: bool) -> bool:
    """A functional predicate's fact without ``valid_from`` begins when it was observed."""
    return functional and statement.valid_from is None


def fact_id(
    tenant_id: str, project_id: str, statement: Statement, *, functional: bool
) -> uuid.UUID:
    """The id of a fact: what is said of when, by whom, with which trust and for whose eyes.

    Source version, session, confidence and the time of observation are not part of it: they
    tell the same fact again. Only where the observation is what dates the fact, they are.
    """
    parts: list[object] = [
        tenant_id,
        project_id,
        statement.namespace,
        statement.domain,
        statement.subject,
        statement.subject_type,
        statement.predicate,
        statement.object,
        statement.object_type,
        _moment_parts(statement.valid_from),
        _moment_parts(statement.valid_to),
        statement.tier,
        statement.provenance.owner,
        statement.chunk_id,
        None if statement.acl is None else ",".join(statement.acl),
    ]
    if statement.readers_of:
        parts.append(",".join(statement.readers_of))
    if statement.session_scope is not None:
        parts += ["session", statement.session_scope]
    if starts_at_observation(statement, functional=functional):
        parts += _telling_parts(statement)
    return _digest(parts)


def telling_id(fact: uuid.UUID, statement: Statement) -> uuid.UUID:
    """The id of one telling of a fact: the same telling again changes nothing."""
    return _digest([fact, statement.confidence, statement.verified, *_telling_parts(statement)])


def timeline_id(tenant_id: str, project_id: str, statement: Statement) -> uuid.UUID:
    """The id of the line on which facts of a functional predicate follow one another."""
    subject = name_key(statement.subject)
    if statement.domain is Domain.CODE:  # Config and config are two things
        subject = statement.subject
    session = [] if statement.session_scope is None else ["session", statement.session_scope]
    return _digest(
        [
            tenant_id,
            project_id,
            statement.namespace,
            statement.domain,
            subject,
            statement.subject_type,
            statement.predicate,
            *session,
        ]
    )


def _telling_parts(statement: Statement) -> list[object]:
    told = statement.provenance
    observed = statement.observed_at and statement.observed_at.isoformat()
    return [told.source_version, told.client, told.model, told.session_id, observed]


def _moment_parts(moment: Moment | None) -> str | None:
    return None if moment is None else f"{moment.at.isoformat()}/{moment.precision}"


def _digest(parts: Sequence[object]) -> uuid.UUID:
    """None and an empty text differ; no part can run into the next: texts hold no control characters."""
    written = _UNIT.join("\x00" if part is None else str(part) for part in parts)
    return uuid.uuid5(_FACTS, written)


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact as it is read: believed at the time asked about, with the window that then holds.

    ``valid_from`` and ``valid_to`` are the half-open window in force: where a later fact of a
    functional predicate ends this one, ``superseded_by`` names it and ``stated_to`` is the end
    that was stated. ``contradicts`` are facts with another object that hold at the same time
    though the predicate allows one. ``observed_at`` and ``provenance`` are those of the telling
    that is believed. ``lineage`` and ``rule`` are set for an inferred fact, and ``suggestion`` says whether it is confirmed.
    """

    fact_id: uuid.UUID
    telling_id: uuid.UUID
    tenant_id: str
    project_id: str
    namespace: str
    domain: Domain
    subject: str
    subject_type: str | None
    predicate: str
    object: str
    object_type: str | None
    valid_from: Moment | None
    valid_to: Moment | None
    stated_from: Moment | None
    stated_to: Moment | None
    superseded_by: uuid.UUID | None
    is_functional: bool
    observed_at: datetime
    recorded_at: datetime
    closed_at: datetime | None
    closing: Closing | None
    closed_by: str | None
    confidence: float
    tier: TrustTier
    verified: bool
    provenance: Provenance
    acl: tuple[str, ...] | None
    collection_id: uuid.UUID | None
    chunk_id: uuid.UUID | None
    rule: str | None
    lineage: tuple[uuid.UUID, ...]
    lineage_sources: tuple[str, ...]
    suggestion: str | None
    confirmed_by: str | None
    session_scope: str | None = None
    verified_by: str | None = None
    contradicts: tuple[uuid.UUID, ...] = ()

    def holds_at(self, moment: datetime) -> bool:
        """Whether the window admits ``moment``."""
        return (self.valid_from is None or self.valid_from.at <= moment) and (
            self.valid_to is None or moment < self.valid_to.at
        )

    def meets(self, other: Fact) -> bool:
        """Whether the two windows share an instant."""
        begins = [f.valid_from.at for f in (self, other) if f.valid_from]
        ends = [f.valid_to.at for f in (self, other) if f.valid_to]
        return not begins or not ends or max(begins) < min(ends)
