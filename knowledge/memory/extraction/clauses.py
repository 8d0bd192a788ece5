"""Which clauses of a sentence assert something: not what is asked, denied, planned or supposed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from spacy.tokens import Token

from knowledge.memory.extraction.word_lists import (
    BELIEFS,
    CIRCUMSTANCES,
    CONDITIONS,
    DECISIONS,
    DOUBTS,
    ENDS,
    INTENTIONS,
    NEGATIONS,
    TRANSPARENT,
)

_SUBJECTS: Final = ("nsubj", "nsubjpass")


def verbs(sentence: Iterator[Token]) -> Iterator[Token]:
    for token in sentence:
        if token.pos_ in ("VERB", "AUX") and token.dep_ not in ("aux", "auxpass"):
            yield token


def subjects(verb: Token) -> list[Token]:
    """Who or what does it, or has it done: also of the clause that this one hangs on."""
    own = [child for child in verb.children if child.dep_ in _SUBJECTS]
    if own:
        is_relative = verb.dep_ == "relcl" and own[0].tag_ in ("WDT", "WP")
        return with_conjuncts(verb.head) if is_relative else with_conjuncts(own[0])
    if verb.dep_ == "conj" and verb.head.pos_ in ("VERB", "AUX"):
        return subjects(verb.head)
    if verb.dep_ == "xcomp" and verb.head.lemma_ in DECISIONS | TRANSPARENT | ENDS | INTENTIONS:
        return subjects(verb.head)
    if verb.dep_ == "acl" and verb.tag_ == "VBN":
        return [verb.head]
    return []


def is_passive(verb: Token) -> bool:
    """``is owned``; ``a service written in Go``; the second of ``is built and owned``."""
    if any(child.dep_ in ("auxpass", "nsubjpass") for child in verb.children):
        return True
    if verb.tag_ != "VBN":
        return False
    has_own = any(child.dep_ in ("aux", *_SUBJECTS) for child in verb.children)
    return verb.dep_ == "acl" or (verb.dep_ == "conj" and not has_own and is_passive(verb.head))


def is_decision(verb: Token) -> bool:
    """``to use`` in "we decided to use"."""
    return verb.dep_ == "xcomp" and verb.head.lemma_ in DECISIONS


def why_not_asserted(verb: Token) -> str | None:
    """The reason why the clause says nothing that holds, None when it does."""
    if verb.sent[-1].text.startswith("?"):
        return "question"
    clause = verb
    while True:
        if _is_negated(clause):
            return "negation"
        if _is_supposed(clause):
            return "hypothetical"
        head = clause.head
        if head is clause or head.pos_ not in ("VERB", "AUX"):
            return None
        if clause.dep_ == "xcomp" and head.lemma_ in ENDS:
            return "negation"
        if clause.dep_ == "xcomp" and head.lemma_ in INTENTIONS:
            return "hypothetical"
        if clause.dep_ in ("ccomp", "xcomp") and head.lemma_ in BELIEFS:
            return "hypothetical"
        if clause.dep_ == "conj" and _has_own_subject(clause):
            return None
        if clause.dep_ not in ("xcomp", "ccomp", "conj"):
            return None
        clause = head


def with_conjuncts(token: Token) -> list[Token]:
    """``A, B and C``; "A or B" leaves open which."""
    if any(child.dep_ == "cc" and child.lower_ in ("or", "nor") for child in token.children):
        return []
    found = [token]
    for child in token.children:
        if child.dep_ == "conj" and child.pos_ in ("NOUN", "PROPN", "PRON"):
            found += with_conjuncts(child)
    return found


def _has_own_subject(verb: Token) -> bool:
    return any(child.dep_ in _SUBJECTS for child in verb.children)


def _is_negated(verb: Token) -> bool:
    for child in verb.children:
        if child.dep_ == "neg" or child.lower_ in NEGATIONS:
            return True
        if child.dep_ == "advmod" and any(each.lower_ in NEGATIONS for each in child.children):
            return True  # no longer, not yet
        if child.dep_ in ("dobj", "attr", "pobj", *_SUBJECTS) and any(
            each.lower_ in ("no", "neither") for each in child.children
        ):
            return True
    return False


def _is_supposed(verb: Token) -> bool:
    for child in verb.children:
        if child.dep_ == "aux" and child.tag_ == "MD":
            return True
        if child.dep_ in ("mark", "advmod") and child.lower_ in CONDITIONS | DOUBTS:
            return True
        if child.dep_ in ("mark", "advmod") and child.lower_ in CIRCUMSTANCES:
            return verb.dep_ == "advcl"
        if child.dep_ == "advcl" and any(
            each.dep_ in ("mark", "advmod") and each.lower_ in ("if", "unless")
            for each in child.children
        ):
            return True
    return False
