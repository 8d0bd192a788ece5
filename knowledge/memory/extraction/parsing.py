"""Facts out of what a model wrote, whatever it wrote.

The answer is scanned once for complete JSON objects, wherever they stand: between fences, in
prose, in several pieces, in an answer that breaks off. Objects that hold others are containers;
the others are items. One bad item loses that item and is counted by its reason.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from knowledge.errors import InvalidFact
from knowledge.graph.ontology.model import Ontology
from knowledge.memory.extraction.extractor import (
    ExtractedTriple,
    Spelling,
    require_confidence,
    require_mention,
    require_predicate,
)
from knowledge.model.fact import Moment, parse_moment, require_type

MAX_ANSWER_CHARS: Final = 1_000_000
MAX_ITEM_CHARS: Final = 4_000
MAX_ITEMS: Final = 2_000
"""Of one answer: a model that repeats itself without end stops being read."""

_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "subject": ("subject", "subj", "head", "source", "from", "entity1", "s"),
    "predicate": ("predicate", "relation", "relationship", "rel", "edge", "verb", "type", "p"),
    "object": ("object", "obj", "tail", "target", "to", "entity2", "value", "o"),
    "subject_type": ("subject_type", "subjecttype", "head_type", "source_type"),
    "object_type": ("object_type", "objecttype", "tail_type", "target_type"),
    "confidence": ("confidence", "score", "probability", "certainty"),
    "valid_from": ("valid_from", "validfrom", "since", "start", "date"),
}
_NAME_KEYS: Final = ("name", "label", "text", "id", "value")
_TOKEN: Final = re.compile(r'["\\{}\n]')
_EMPTY: Final = re.compile(r"\[\s*\]|\{\s*\}")
_MAX_HEIGHT: Final = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """``readable`` is false when nothing in it is JSON that could hold facts."""

    triples: list[ExtractedTriple]
    dropped: Counter[str]
    readable: bool


def parse_answer(
    text: str,
    ontology: Ontology,
    spelling: Spelling,
    is_told: Callable[[str, str], bool] = lambda subject, object_: True,
) -> Answer:
    """The facts of an answer. Never raises; time grows with the length.

    ``is_told`` says whether two names stand in what the model was given: what it made up
    is dropped as ``not_in_text``.
    """
    dropped: Counter[str] = Counter()
    text = text[:MAX_ANSWER_CHARS]
    items = _items(text, dropped)
    triples: list[ExtractedTriple] = []
    for item in items:
        try:
            triples.append(_triple(item, ontology, spelling, is_told))
        except InvalidFact as error:
            dropped[error.message] += 1
    return Answer(triples, +dropped, bool(items) or _EMPTY.search(text) is not None)


def _items(text: str, dropped: Counter[str]) -> list[object]:
    """The innermost complete objects, in order: a dict, or an `InvalidFact` that says why not.

    An object whose names are objects themselves is one item. A line end closes a string: JSON
    has none in strings, and a stray quote mark in the prose would swallow all that follows.
    """
    frames: list[list[int]] = []  # of each open object: where it begins, and its height
    items: list[tuple[int, object]] = []
    in_string = False
    position = 0
    while (token := _TOKEN.search(text, position)) and len(items) <= MAX_ITEMS:
        character, position = token.group(), token.end()
        if in_string:
            position += character == "\\"  # whatever it escapes
            in_string = character not in '"\n'
        elif character == '"':
            in_string = True
        elif character == "{":
            frames.append([token.start(), 1])
        elif character == "}" and frames:
            start, height = frames.pop()
            if frames:
                frames[-1][1] = max(frames[-1][1], height + 1)
            _close(text[start:position], start, height, items)
    dropped["truncated"] += bool(frames) and token is None
    dropped["too_many"] += len(items) > MAX_ITEMS
    return [item for _, item in items[:MAX_ITEMS]]


def _close(written: str, start: int, height: int, items: list[tuple[int, object]]) -> None:
    """Enter an object that is complete, in place of those it holds; a container enters nothing."""
    has_inner = bool(items) and items[-1][0] > start
    if height > _MAX_HEIGHT or len(written) > MAX_ITEM_CHARS:
        if not has_inner:
            items.append((start, InvalidFact("item_too_long")))
        return
    item = _decode(written)
    is_triple = isinstance(item, dict) and bool(_value(item, "subject") or _value(item, "object"))
    if has_inner and not is_triple:
        return
    while items and items[-1][0] > start:
        items.pop()
    is_empty = isinstance(item, dict) and not any(item.values())  # {"triples": []}
    if not is_empty:
        items.append((start, item))


def _decode(written: str) -> object:
    try:
        return json.loads(written, object_pairs_hook=_object, strict=False)
    except InvalidFact as error:
        return error
    except (ValueError, RecursionError):
        return InvalidFact("not_json")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Keys in lower case; which of two equal ones was meant, nobody can tell."""
    found = {key.strip().lower(): value for key, value in pairs}
    if len(found) < len(pairs):
        raise InvalidFact("duplicate_keys")
    return found


def _value(item: Mapping[str, Any], what: str) -> object:
    for key in _KEYS[what]:
        if item.get(key) is not None:
            return item[key]
    return None


def _triple(
    item: object, ontology: Ontology, spelling: Spelling, is_told: Callable[[str, str], bool]
) -> ExtractedTriple:
    if isinstance(item, InvalidFact):
        raise item
    if not isinstance(item, dict) or _value(item, "predicate") is None:
        raise InvalidFact("not_a_triple")
    subject, subject_type = _end(item, "subject")
    object_, object_type = _end(item, "object")
    confidence = require_confidence(_value(item, "confidence"))
    predicate = require_predicate(_value(item, "predicate"), ontology)
    if subject == object_:
        raise InvalidFact("same_names")
    if not is_told(subject, object_):
        raise InvalidFact("not_in_text")
    return ExtractedTriple(
        subject=spelling.of(subject),
        predicate=predicate,
        object=spelling.of(object_),
        subject_type=subject_type,
        object_type=object_type,
        confidence=confidence,
        valid_from=_moment(_value(item, "valid_from")),
    )


def _end(item: Mapping[str, Any], what: str) -> tuple[str, str | None]:
    """Name and type of subject or object, which may be an object with a name itself."""
    value = _value(item, what)
    type_ = _value(item, f"{what}_type")
    if isinstance(value, dict):
        type_ = type_ or value.get("type")
        value = next((value[key] for key in _NAME_KEYS if key in value), None)
    if value is None:
        raise InvalidFact("not_a_triple")
    return require_mention(value), _type(type_)


def _type(value: object) -> str | None:
    """A type that is none is left out: the fact is none the worse for it."""
    if not isinstance(value, str):
        return None
    try:
        return require_type(value.strip().lower().replace(" ", "_").replace("-", "_"), "type")
    except InvalidFact:
        return None


def _moment(value: object) -> Moment | None:
    """A time that cannot be read is left out: nobody said when else."""
    try:
        return parse_moment(value, "valid_from")
    except InvalidFact:
        return None
