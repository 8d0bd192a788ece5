"""What a clause says of what: the patterns of the dependency parse, each with its confidence.

The confidences are those of a small hand-made set of sentences (see the tests): a pattern that
was wrong there more often than not begins below what is kept and needs a predicate that the
ontology knows, or names that are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from spacy.tokens import Span, Token

from knowledge.graph.ontology.model import Ontology
from knowledge.memory.extraction import predicates
from knowledge.memory.extraction.clauses import (
    is_decision,
    is_passive,
    subjects,
    with_conjuncts,
)
from knowledge.memory.extraction.mentions import Passage
from knowledge.memory.extraction.word_lists import (
    EMPTY_VERBS,
    NO_RELATION,
    STATES,
)

_OF_WHERE: Final = {"in", "on", "at", "into", "onto"}
_PARTICIPLES: Final = {
    "keep": "kept", "write": "written", "run": "run", "put": "put", "build": "built",
    "hold": "held", "send": "sent", "set": "set", "find": "found", "ship": "shipped",
    "read": "read", "get": "got", "make": "made", "take": "taken", "leave": "left",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Claim:
    """``object`` is a token, or the word for a state. ``is_known``: the ontology has the predicate."""

    subject: Token
    predicate: str
    is_known: bool
    object: Token | str
    confidence: float
    verb: Token


_Said = tuple[Token, tuple[str, bool], "Token | str", float]


def claims(verb: Token, ontology: Ontology) -> Iterator[Claim]:
    """What the clause of ``verb`` asserts, in the order of its words."""
    if verb.lemma_ == "be":
        pattern = _copula
    elif is_passive(verb):
        pattern = _passive
    else:
        pattern = _active
    for subject in subjects(verb):
        for said, (predicate, is_known), object_, confidence in pattern(verb, subject, ontology):
            yield Claim(said, predicate, is_known, object_, confidence, verb)


def claims_of_code(sentence: Span, passage: Passage, ontology: Ontology) -> Iterator[Claim]:
    """``BookingStore implements IStore``: names around a predicate whose subject was not seen."""
    if any(each.lower_ in ("?", "if", "not", "n't") or each.tag_ == "MD" for each in sentence):
        return
    for first in sentence:
        for length in (1, 2):
            last = first.i + length + 1
            if last >= sentence.end or not passage.names.issuperset((first.i, last)):
                continue
            between = passage.doc[first.i + 1 : last]
            predicate = ontology.find("_".join(each.text.upper() for each in between))
            if predicate is not None and not subjects(between[0]):
                yield Claim(first, predicate.name, True, passage.doc[last], 0.7, between[0])


def prepositions(verb: Token) -> Iterator[tuple[Token, list[Token]]]:
    """Each preposition of a verb or noun with what it governs."""
    for child in verb.children:
        if child.dep_ in ("prep", "agent", "dative"):
            governed = [each for each in child.children if each.dep_ == "pobj"]
            if governed:
                yield child, with_conjuncts(governed[0])


def _particles(verb: Token) -> list[str]:
    return [child.lower_ for child in verb.children if child.dep_ == "prt"]


def _active(verb: Token, subject: Token, ontology: Ontology) -> Iterator[_Said]:
    objects = [
        each for child in verb.children if child.dep_ == "dobj" for each in with_conjuncts(child)
    ]
    lemma, past = verb.lemma_.lower(), _participle(verb)
    particles = _particles(verb)
    if objects:
        yield from _transitive(verb, subject, objects, ontology)
        return
    for preposition, governed in prepositions(verb):
        word = preposition.lower_
        predicate = predicates.active(lemma, (*particles, word), f"{past}", ontology)
        if word in NO_RELATION and not predicate[1]:
            continue
        for each in governed:
            yield subject, predicate, each, _sureness(lemma, predicate[1], 0.75)


def _transitive(
    verb: Token, subject: Token, objects: list[Token], ontology: Ontology
) -> Iterator[_Said]:
    lemma = verb.lemma_.lower()
    main = predicates.active(lemma, _particles(verb), _participle(verb), ontology)
    if is_decision(verb):
        main = predicates.choose([f"DECIDED_TO_{lemma.upper()}"], ontology)
    around = [*prepositions(verb), *(pair for each in objects for pair in prepositions(each))]
    for preposition, governed in around:
        word = preposition.lower_
        if word == "with" and lemma in ("replace", "swap"):
            pairs = [(new, old) for new in governed for old in objects]
            yield from (
                (new, predicates.choose(["REPLACES"], ontology), old, 0.75) for new, old in pairs
            )
            return
        if word == "as" and lemma == "use" and governed:
            phrase = " ".join(
                [
                    *(c.lower_ for c in governed[0].lefts if c.dep_ in ("amod", "compound")),
                    governed[0].lemma_,
                ]
            )
            as_ = predicates.choose([f"USES_{phrase.upper().replace(' ', '_')}", main[0]], ontology)
            main = as_ if as_[1] else main
    for each in objects:
        yield subject, main, each, _sureness(lemma, main[1], 0.75)
    for preposition, governed in around:
        yield from _beside(verb, subject, objects, preposition, governed, ontology)


def _beside(
    verb: Token,
    subject: Token,
    objects: list[Token],
    preposition: Token,
    governed: list[Token],
    ontology: Ontology,
) -> Iterator[_Said]:
    """What a verb with an object says besides: where, to whom, for what."""
    word, lemma = preposition.lower_, verb.lemma_.lower()
    if word == "for" and lemma in ("use", "choose", "adopt", "pick"):
        said = predicates.choose(["USED_FOR"], ontology)
        yield from ((each, said, purpose, 0.65) for each in objects for purpose in governed)
    if word in NO_RELATION or word == "for" or preposition.head is not verb:
        return
    if word in _OF_WHERE:
        said = predicates.passive(_participle(verb), (word,), ontology)
        pairs = [(each, place) for each in objects for place in governed]
    else:
        said = predicates.active(lemma, (word,), _participle(verb), ontology)
        pairs = [(subject, place) for place in governed]
    for about, place in pairs:
        yield about, said, place, _sureness(lemma, said[1], 0.65)


def _passive(verb: Token, subject: Token, ontology: Ontology) -> Iterator[_Said]:
    is_bare = True
    for preposition, governed in prepositions(verb):
        word = preposition.lower_
        said = predicates.passive(verb.lower_, (*_particles(verb), word), ontology)
        if word in NO_RELATION - {"by", "as"} or (word == "for" and verb.lemma_ != "use"):
            continue
        is_bare = False
        for each in governed:
            yield subject, said, each, 0.8 if preposition.dep_ == "agent" else 0.7
    if is_bare and verb.lower_ in STATES:
        yield subject, predicates.choose(["HAS_STATUS"], ontology), verb.lower_, 0.65


def _copula(verb: Token, subject: Token, ontology: Ontology) -> Iterator[_Said]:
    for child in verb.children:
        if child.dep_ == "attr" and child.pos_ in ("NOUN", "PROPN"):
            yield from _identity(subject, child, ontology)
        elif child.dep_ == "acomp" and child.lower_ in STATES:
            yield subject, predicates.choose(["HAS_STATUS"], ontology), child.lower_, 0.65
        elif child.dep_ == "acomp":
            for preposition, governed in prepositions(child):
                said = predicates.passive(child.lower_, (preposition.lower_,), ontology)
                yield from ((subject, said, each, 0.65) for each in governed)
        elif child.dep_ == "prep" and child.lower_ in ("in", "on", "behind", "under"):
            said = predicates.passive("is", (child.lower_,), ontology)
            governed = [each for each in child.children if each.dep_ == "pobj"]
            yield from ((subject, said, each, 0.55) for each in governed)


def _identity(subject: Token, attribute: Token, ontology: Ontology) -> Iterator[_Said]:
    """X is the owner of Y · the owner of X is Y · X is a service."""
    holders = [child for child in subject.children if child.dep_ == "poss"]
    of = [
        each
        for word, governed in prepositions(subject)
        if word.lower_ in ("of", "for")
        for each in governed
    ]
    if holder := next(iter([*of, *holders]), None):
        words = [c.lower_ for c in subject.lefts if c.dep_ in ("amod", "compound")]
        said = predicates.held(subject.lemma_.lower(), " ".join([*words, subject.lemma_]), ontology)
        yield from ((holder, said, each, 0.72) for each in with_conjuncts(attribute))
        return
    has_role = False
    for preposition, governed in prepositions(attribute):
        if preposition.lower_ in ("in", "on") and attribute.lemma_.lower() != "expert":
            continue
        has_role = True
        said = predicates.role(attribute.lemma_.lower(), preposition.lower_, ontology)
        yield from ((subject, said, each, 0.7) for each in governed)
    is_kind = any(child.lower_ in ("a", "an") for child in attribute.children)
    if is_kind and not has_role:
        yield subject, predicates.choose(["IS_A"], ontology), attribute, 0.62


def _sureness(lemma: str, is_known: bool, base: float) -> float:
    """A verb that says little is believed only where the ontology has a predicate for it."""
    return base if is_known or lemma not in EMPTY_VERBS else 0.4


def _participle(verb: Token) -> str:
    lemma = verb.lemma_.lower()
    if verb.tag_ == "VBN":
        return verb.lower_
    if lemma in _PARTICIPLES:
        return _PARTICIPLES[lemma]
    if lemma.endswith("y") and lemma[-2:-1] not in "aeiou":
        return f"{lemma[:-1]}ied"
    return f"{lemma}d" if lemma.endswith("e") else f"{lemma}ed"
