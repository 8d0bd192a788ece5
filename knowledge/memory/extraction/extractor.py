"""What an extractor takes and gives, and what every one of its facts must satisfy."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal, Protocol

from knowledge.errors import InvalidFact, ModelUnavailable
from knowledge.graph.ontology.model import Ontology
from knowledge.model.fact import MAX_PREDICATE_CHARS, Moment, name_key

MIN_CONFIDENCE: Final = 0.6
"""What is less sure is dropped; what states no confidence counts as just sure enough."""

MAX_NAME_CHARS: Final = 120
MAX_NAME_WORDS: Final = 12
"""Longer ones are sentences, and what a sentence says is not a name."""

USER: Final = "user"
"""The name of whoever says "I" in the turns of the user."""

Kind = Literal["spacy", "llm"]
Role = Literal["user", "assistant", "system", "tool"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation. ``time``, aware, dates what it says with "now" or "May"."""

    role: Role
    content: str = field(repr=False)
    time: datetime | None = None


@dataclass(frozen=True, slots=True)
class ExtractedTriple:
    """A fact as it was found: names on one line, at most `MAX_NAME_CHARS`; UPPER_SNAKE_CASE;
    ``confidence`` from `MIN_CONFIDENCE` to 1. Types are None where they would be a guess: an
    entity told once with a type and once without would be two."""

    subject: str
    predicate: str
    object: str
    subject_type: str | None = None
    object_type: str | None = None
    confidence: float = MIN_CONFIDENCE
    valid_from: Moment | None = None


@dataclass(frozen=True, slots=True)
class Extraction:
    """Facts in the order they were told, each once, and what was dropped, by reason.

    ``reason`` says why it was this ``extractor`` where another one is or could be configured.
    """

    triples: list[ExtractedTriple]
    dropped: Counter[str]
    model: str
    extractor: Kind
    reason: str | None = None


class Extractor(Protocol):
    """Finds facts. Nothing of the turns is kept, logged or part of an error."""

    @property
    def kind(self) -> Kind: ...

    @property
    def model(self) -> str: ...

    @property
    def reason(self) -> str | None:
        """Why it is this kind, where a better one is not configured."""

    async def extract(
        self, turns: Sequence[Turn], known_names: Sequence[str], ontology: Ontology
    ) -> Extraction:
        """Facts of ``turns``, their names spelt like ``known_names`` where they are the same.

        Runs beside the event loop: work of more than some milliseconds is done in a thread.
        Raises `ModelUnavailable` when the model cannot be reached or gives nothing readable.
        """


@dataclass(frozen=True, slots=True)
class FallbackExtractor:
    """Asks ``first``; where that is not available, ``second``, and says so."""

    first: Extractor
    second: Extractor

    @property
    def kind(self) -> Kind:
        return self.first.kind

    @property
    def model(self) -> str:
        return self.first.model

    @property
    def reason(self) -> str | None:
        return self.first.reason

    async def extract(
        self, turns: Sequence[Turn], known_names: Sequence[str], ontology: Ontology
    ) -> Extraction:
        try:
            return await self.first.extract(turns, known_names, ontology)
        except ModelUnavailable as error:
            reason = error.message
        return replace(await self.second.extract(turns, known_names, ontology), reason=reason)


def spoken(turns: Sequence[Turn]) -> list[Turn]:
    """Those of the user and the assistant: what tools print and systems order are no memories.

    Halves of characters, which cannot be encoded, are replaced.
    """
    said = [turn for turn in turns if turn.role in ("user", "assistant")]
    return [
        replace(turn, content=turn.content.encode("utf-8", "replace").decode()) for turn in said
    ]


class Spelling:
    """Known names by what is looked up, so that a mention is written as its entity is."""

    def __init__(self, known_names: Sequence[str]) -> None:
        self._names: dict[str, str] = {}
        for name in known_names:
            self._names.setdefault(name_key(name), name)

    def of(self, name: str) -> str:
        return self._names.get(name_key(name), name)

    def knows(self, name: str) -> bool:
        return name_key(name) in self._names


def require_mention(value: object) -> str:
    """A name of at most `MAX_NAME_CHARS` and `MAX_NAME_WORDS`, on one line, NFC.

    Raises `InvalidFact` whose message is the reason to count, never the text.
    """
    if not isinstance(value, str):
        raise InvalidFact("not_a_string")
    if len(value) > MAX_NAME_CHARS * 2:
        raise InvalidFact("name_too_long")
    name = " ".join(unicodedata.normalize("NFC", value).split())
    if len(name) > MAX_NAME_CHARS or name.count(" ") >= MAX_NAME_WORDS:
        raise InvalidFact("name_too_long")
    if any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co") for character in name):
        raise InvalidFact("control_character")
    if not any(map(str.isalnum, name)):
        raise InvalidFact("empty_name")
    if "[redacted:" in name:
        raise InvalidFact("redacted")
    return name


_WORD_ENDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\s_-]+")


def require_predicate(value: object, ontology: Ontology) -> str:
    """``depends on``, ``dependsOn`` or ``is_depended_on`` as UPPER_SNAKE_CASE, canonical.

    A leading IS goes where the ontology knows the rest. Raises `InvalidFact` with the reason to
    count when there is no one way to write it.
    """
    if not isinstance(value, str):
        raise InvalidFact("not_a_string")
    written = value.strip()
    if len(written) > MAX_PREDICATE_CHARS or not re.fullmatch(r"[A-Za-z][A-Za-z0-9 _-]*", written):
        raise InvalidFact("predicate")
    words = [word.upper() for word in _WORD_ENDS.split(written) if word]
    name = "_".join(words)
    if not 1 <= len(words) <= 6 or len(name) > MAX_PREDICATE_CHARS:
        raise InvalidFact("predicate")
    if ontology.find(name) is None and words[0] in ("IS", "ARE", "WAS") and len(words) > 1:
        shorter = "_".join(words[1:])
        name = shorter if ontology.find(shorter) else name
    return ontology.canonical(name)


def require_confidence(value: object) -> float:
    """From `MIN_CONFIDENCE` to 1. None is `MIN_CONFIDENCE`; "0.8" is read as a number.

    Raises `InvalidFact` with the reason to count.
    """
    if value is None:
        return MIN_CONFIDENCE
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise InvalidFact("confidence")
    try:
        confidence = float(value)
    except (ValueError, OverflowError):
        raise InvalidFact("confidence") from None
    if not math.isfinite(confidence) or not 0 <= confidence <= 1:
        raise InvalidFact("confidence")
    if confidence < MIN_CONFIDENCE:
        raise InvalidFact("low_confidence")
    return confidence


def distinct(triples: Sequence[ExtractedTriple]) -> list[ExtractedTriple]:
    """Each fact once, where it was told first, as sure as its surest telling."""
    kept: dict[tuple[str, str, str, Moment | None], ExtractedTriple] = {}
    for triple in triples:
        key = (
            name_key(triple.subject),
            triple.predicate,
            name_key(triple.object),
            triple.valid_from,
        )
        known = kept.get(key)
        if known is None or known.confidence < triple.confidence:
            kept[key] = triple
    return list(kept.values())
