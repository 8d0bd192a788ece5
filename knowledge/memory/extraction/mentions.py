"""Names in a sentence: of code, of known entities, and of what its noun phrases speak of.

The pipeline was trained on news. So that it parses a sentence about ``OrderService.cancel()``,
each name of code, and each known name of several words, is one token that it knows as a name;
what really stands there is kept beside the tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from spacy.language import Language
from spacy.tokens import Doc, Token

from knowledge.memory.extraction.extractor import Spelling
from knowledge.memory.extraction.word_lists import (
    KINDS,
    LEFT_OUT,
    VAGUE,
)

STAND_IN: Final = "Google"
"""Of all words the one that the parser is surest to take for a name."""

_CODE_NAME: Final = re.compile(
    r"`(?P<quoted>[^`\n]{1,120})`"
    r"|(?<![\w@/.-])(?P<bare>"
    r"(?:~?/|\.{1,2}/)?(?:[\w.@-]+/)+[\w.@-]*\w"  # src/app.py, acme/orders
    r"|[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+(?:\(\))?"  # orders.api.cancel()
    r"|[A-Za-z_]\w*\(\)"
    r"|[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+"  # snake_case
    r"|[A-Z]{2,10}-\d{1,7}"  # ABC-123
    r"|[A-Za-z][a-z0-9]*[a-z0-9][A-Z][A-Za-z0-9]*|[A-Z]{2,}[a-z][A-Za-z0-9]*"  # CamelCase
    r"|[a-z][a-z0-9]*(?:-[a-z0-9]+)*-(?:service|api|db|worker|queue|gateway|svc|client|server|prod"
    r"|staging|dev|app|cluster|topic|bucket|cache|proxy|operator|bot|job|lib|sdk|cli|ui|web|\d[\w.]*)"
    r")(?![\w/@]|-\w)"
)
_WORD: Final = re.compile(r"\w(?:[\w./+#@-]*\w|[+#]*)")
_MODIFIERS: Final = frozenset(("compound", "amod", "nmod", "nummod"))
_NO_NAMES: Final = frozenset(
    ("DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL")
)


@dataclass(frozen=True, slots=True)
class Passage:
    """A parsed text: ``surfaces`` are what stands at each token; ``names`` which are names."""

    doc: Doc
    surfaces: Sequence[str]
    names: frozenset[int]

    def text(self, start: int, stop: int) -> str:
        written = (self.surfaces[i] + self.doc[i].whitespace_ for i in range(start, stop))
        return "".join(written).strip()


@dataclass(frozen=True, slots=True)
class Mention:
    """``is_named``: a name of code, a known or a proper name, not a common noun."""

    name: str
    is_named: bool


class KnownPhrases:
    """Known names of two words and more, found in a text from left to right, longest first."""

    def __init__(self, known_names: Sequence[str]) -> None:
        self._by_first: dict[str, list[tuple[list[str], str]]] = {}
        for name in known_names:
            words = _WORD.findall(name.casefold())
            if len(words) > 1:
                self._by_first.setdefault(words[0], []).append((words, name))
        for phrases in self._by_first.values():
            phrases.sort(key=lambda phrase: -len(phrase[0]))

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        found = [(m.start(), m.end(), m.group().casefold()) for m in _WORD.finditer(text)]
        position = 0
        while position < len(found):
            for words, name in self._by_first.get(found[position][2], ()):
                stop = position + len(words)
                if [word for _, _, word in found[position:stop]] == words:
                    yield found[position][0], found[stop - 1][1], name
                    position = stop - 1
                    break
            position += 1


def parse(nlp: Language, text: str, phrases: KnownPhrases) -> Passage:
    """Parse ``text`` with a stand-in for each name."""
    surfaces: list[str] = []
    words: list[str] = []
    spaces: list[bool] = []
    names: set[int] = set()
    position = 0
    for start, stop, name in _names(text, phrases):
        _add_plain(nlp, text[position:start], surfaces, words, spaces)
        names.add(len(words))
        surfaces.append(name)
        words.append(STAND_IN)
        spaces.append(text[stop : stop + 1].isspace())
        position = stop
    _add_plain(nlp, text[position:], surfaces, words, spaces)
    return Passage(nlp(Doc(nlp.vocab, words=words, spaces=spaces)), surfaces, frozenset(names))


def _names(text: str, phrases: KnownPhrases) -> Iterator[tuple[int, int, str]]:
    found = [
        (*match.span(), match["quoted"] or match["bare"]) for match in _CODE_NAME.finditer(text)
    ]
    position = 0
    for start, stop, name in sorted([*found, *phrases.find(text)], key=lambda s: (s[0], -s[1])):
        if start >= position:
            yield start, stop, name.strip()
            position = stop


def _add_plain(
    nlp: Language, text: str, surfaces: list[str], words: list[str], spaces: list[bool]
) -> None:
    for token in nlp.tokenizer(text):
        if token.text.isspace():
            continue
        surfaces.append(token.text)
        words.append(token.text)
        spaces.append(bool(token.whitespace_))


def mention(passage: Passage, head: Token, spelling: Spelling) -> Mention | str:
    """What the noun phrase of ``head`` names, or the reason why it names nothing."""
    if head.i in passage.names:
        return Mention(spelling.of(passage.surfaces[head.i]), True)
    if head.pos_ == "PRON" or head.tag_ in ("PRP", "WP", "WDT", "DT", "EX"):
        return "pronoun"
    if head.pos_ not in ("NOUN", "PROPN") or VAGUE & {head.lower_, head.lemma_.lower()}:
        return "not_a_name"
    if head.ent_type_ in _NO_NAMES or any(child.lower_ == "no" for child in head.children):
        return "not_a_name"
    inner = [child for child in head.lefts if child.i in passage.names]
    if len(inner) == 1 and head.lower_ in KINDS:  # the PaymentGateway service
        return Mention(spelling.of(passage.surfaces[inner[0].i]), True)
    start, stop = _bounds(head)
    name = spelling.of(passage.text(start, stop))
    is_named = head.pos_ == "PROPN" or bool(inner) or spelling.knows(name)
    return Mention(name, is_named)


def _bounds(head: Token) -> tuple[int, int]:
    """From the first modifier that belongs to the name to the last."""
    start, stop = head.i, head.i + 1
    for child in reversed(list(head.lefts)):
        is_noun_poss = child.dep_ == "poss" and child.pos_ in ("NOUN", "PROPN")
        if child.dep_ not in _MODIFIERS and not is_noun_poss and child.dep_ != "punct":
            break
        if child.lower_ in LEFT_OUT or child.lower_ in ('"', "'", "“", "("):
            break
        start = child.left_edge.i
    for child in head.rights:
        if child.i == stop and child.dep_ in ("nummod", "npadvmod") and child.like_num:
            stop = child.i + 1
        elif child.i == stop and child.lower_ == "of" and (inner := list(child.children)):
            stop = inner[-1].right_edge.i + 1 if len(list(inner[-1].subtree)) <= 4 else stop
    return start, stop
