"""Secrets told by the word beside them: ``password=…``, ``api_key: …``, "the token is …"."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from knowledge.security.scanning import matches

MIN_ENTROPY_BITS: Final = 3.0
"""Shannon entropy a character below which a long word is taken for a name."""

_LONG: Final = r"pass(?:word|wd|phrase|wort)|contrase(?:ñ|n)a|secret|mot\sde\spasse|kennwort"
_STRONG: Final = rf"{_LONG}|pass|pwd"
_OWNERS: Final = ("db", "pg", "my", "sql", "user", "usr", "admin", "root", "login", "smtp", "mail", "ftp", "ssh", "key", "store")  # fmt: skip


def _short(word: str) -> str:
    """``pass`` where a word begins, or after its owner: bypass and compass are other words."""
    owned = "|".join(f"(?<={owner}{word})" for owner in _OWNERS)
    return rf"{word}(?:(?<![^\W\d_]{word})|{owned}|(?-i:(?<=[a-z]{word.title()})))"


_WEAK: Final = (
    r"(?:api|access|secret|private|auth|account|signing|encryption|master|client|service|license)"
    r"[_\-\s]?key|key|token|credentials?|client[_-]?id[_-]?secret|auth|cookie|session[_-]?id"
)
_AFTER: Final = r"(?:[_-]?(?:key|hash|value|string|env|prod|dev|staging|test|[0-9]{1,3}))?"
_ASSIGNED: Final = r"[\"'`\]]{0,2}\s{0,3}(?::=|=>|==?|:|,(?=\s?[\"']))\s{0,3}"
_VALUE: Final = (
    r"(?:\"(?P<double>[^\"\n]{3,512})\"|'(?P<single>[^'\n]{3,512})'|`(?P<tick>[^`\n]{3,512})`"
    r"|(?P<bare>[^\s\"'`,;&<>(){}\[\]|]{3,512}[^\s\"'`,;<>]{0,64}))"
)
_ASSIGNMENT: Final = re.compile(
    rf"(?i)(?:(?P<strong>{_LONG}|{_short('pass')}|{_short('pwd')})|(?:\b|[_-]|(?<=[a-z]))(?:{_WEAK})){_AFTER}{_ASSIGNED}{_VALUE}"
)
_FLAG: Final = re.compile(
    r"(?i)(?<!\S)--?(?:password|passwd|pwd|token|secret|api-key)[ =](?P<bare>[^\s-][^\s]{3,255})"
)
_ABOUT_IT: Final = (  # of a "password policy" something else is said than what the password is
    r"(?:polic(?:y|ies)|rules?|requirements?|length|strength|complexity|format|managers?)\b"
)
_SPOKEN: Final = re.compile(
    rf"(?i)\b(?P<strong>{_STRONG})\b(?:\s{{1,3}}(?!{_ABOUT_IT})[a-z]{{1,12}}){{0,4}}?"
    r"\s{1,3}(?:is|was|to|=|ist|:)"
    r"\s{1,3}[\"'`]?(?P<bare>[^\s\"'`,]{4,128})"
)
_NEAR: Final = re.compile(
    rf"(?i)\b(?:{_STRONG}|{_WEAK})s?\b[^\n]{{0,40}}?(?<![A-Za-z0-9+/_.@:-])"
    r"(?P<bare>(?=[A-Za-z+/_=-]{0,255}[0-9])[A-Za-z0-9+/_=-]{20,256})(?![A-Za-z0-9+/_@:])"
)
_PLAIN_KEY: Final = re.compile(r"(?i)[_-]?key\b")
KEYWORD: Final = re.compile(
    r"(?i)pass|pwd|secret|contrase|mot de|kennwort|key|token|credential|auth|cookie|session"
)
"""A text without one of these words holds nothing that is found here."""

_NOT_A_SECRET: Final = re.compile(
    r"(?i)(?:none|null|nil|true|false|undefined|required|optional|redacted|changeme\b.*|str|string"
    r"|int|bool|bytes|text|varchar.*|any|optional\[.*|secretstr|missing|empty|invalid|wrong|expired"
    r"|hidden|unset|not|yes|no|reset|rotated|leaked|hashed|encrypted|stored|password|secret|token"
    r"|bearer|basic|oauth2?|jwt|self|this|that|the|an?|in|on|for|from|to|env|environ"
    r"|[*•x.…-]+|\$.*|%.*%|<.*>?|\{.*|//.*|/.*|\.{1,2}/.*|@.*"
    r"|(?:os|process|settings|config|self|env|vault|secrets|request|args|options|user)\..*"
    r"|.*\(.*|\\.*|https?:.*|sha(?:1|256|512):.*)[.,;:!?]*"
)
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z_]*(?:[.-][A-Za-z_]+)*[.,;:!?]*")
_HEX_OR_UUID: Final = re.compile(
    r"(?i)[0-9a-f]{7,40}|[0-9a-f]{64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)
_DATED_OR_NUMBER: Final = re.compile(
    r"[0-9][0-9.,:_-]{0,40}(?:[TZ][0-9:.+-]*Z?)?|v?[0-9]+(?:\.[0-9]+)+\S*"
)

Span = tuple[int, int, str]


def keyword_secrets(text: str) -> Iterator[Span]:
    """``(start, stop, kind)`` of what is a secret for its neighbourhood; may overlap."""
    for match in matches(_ASSIGNMENT, text):
        group = match.lastgroup or "bare"
        value = match[group]
        is_strong = match["strong"] is not None
        if _NOT_A_SECRET.fullmatch(value):
            continue
        if is_strong and (group != "bare" or _is_password(value)):
            yield *match.span(group), "password"
        elif not is_strong and _is_random(value, 12) and _stands_beside(match[0], value):
            yield *match.span(group), "secret"
    for match in matches(_FLAG, text):
        if not _NOT_A_SECRET.fullmatch(match["bare"]):
            yield *match.span("bare"), "password"
    for match in matches(_SPOKEN, text):
        value = match["bare"].rstrip(".!?)")
        if _has_digit_or_symbol(value) and not _NOT_A_SECRET.fullmatch(value):
            yield match.start("bare"), match.start("bare") + len(value), "password"
    for match in matches(_NEAR, text):
        value = match["bare"]
        if not _HEX_OR_UUID.fullmatch(value) and _is_mixed(value) and _is_random(value, 20):
            yield *match.span("bare"), "secret"


def _stands_beside(assignment: str, value: str) -> bool:
    """A hash may be the key of a map (``cache key: 9fceb02…``), but is no other key."""
    if _HEX_OR_UUID.fullmatch(value):
        return _PLAIN_KEY.match(assignment) is None
    return _is_mixed(value)


def _is_password(value: str) -> bool:
    """An unquoted value: anything but a number, or a name that code would put there."""
    return not (_DATED_OR_NUMBER.fullmatch(value) and len(value) < 6)


def _has_digit_or_symbol(value: str) -> bool:
    if _DATED_OR_NUMBER.fullmatch(value) or _HEX_OR_UUID.fullmatch(value):
        return False
    return not _IDENTIFIER.fullmatch(value) and not value.isalpha()


def _is_mixed(value: str) -> bool:
    """Drawn from an alphabet, not written by a person: digits among letters of both cases, or
    among many letters without a word boundary."""
    digits = sum(character.isdigit() for character in value)
    has_both_cases = value.lower() != value and value.upper() != value
    changes = sum(a.isdigit() != b.isdigit() for a, b in pairwise(value))
    return digits >= 2 and changes >= 4 and (has_both_cases or changes >= len(value) // 4)


def _is_random(value: str, length: int) -> bool:
    if len(value) < length or _DATED_OR_NUMBER.fullmatch(value) or "/" in value[:2]:
        return False
    if not any(map(str.isdigit, value)) or value.count("/") > 4 or ":" in value:
        return False
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts) >= MIN_ENTROPY_BITS
