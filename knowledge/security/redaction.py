"""Secrets, e-mail addresses and telephone numbers are taken out of what is kept or sent on.

Offline and in-process: nothing is verified anywhere. Names of engineering stay: hashes, UUIDs,
versions, dates, addresses of hosts, paths, digests.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from knowledge.security.keyword_secrets import KEYWORD, Span, keyword_secrets
from knowledge.security.phone_numbers import phone_numbers
from knowledge.security.scanning import has_match, matches
from knowledge.security.secret_patterns import MAY_HOLD_SECRET, PATTERNS

MAX_ROUNDS: Final = 8
"""What is found only once its neighbour is gone is looked for this often; then the rest goes."""

_PLACEHOLDER: Final = re.compile(r"(\[redacted:[a-z]{1,16}(?:-[a-z]{1,16})?\])")
_EMAIL: Final = re.compile(
    r"(?<![\w.%+'-])(?!git@)[\w%+'-](?:[\w.%+'-]{0,62}[\w%+'-])?(?:[@＠]|%40|\s?[\[(](?:at|AT)[\])]\s?)"
    r"(?!\d+\.\d+\.)(?:[\w](?:[\w-]{0,61}\w)?(?:\.|\s?[\[(](?:dot|DOT)[\])]\s?)){1,6}"
    r"(?:xn--[a-z0-9-]{2,40}|[^\W\d_]{2,24})(?![\w@]|-\w)"
)
_MAY_BE_EMAIL: Final = re.compile(r"[@＠]|%40|[\[(](?:at|AT)[\])]")
_KEY_BEGIN: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d"
)
_KEY_END: Final = re.compile(
    r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|Private-MAC: [0-9a-f]{1,64}"
)
_KEY_REST: Final = re.compile(  # possessive: a way back from each blank is remembered otherwise
    r"(?:[A-Za-z0-9+/=]{16,}+|\s++|\\n|(?:Proc-Type|DEK-Info):[^\n]*+)*+[A-Za-z0-9+/=]*+"
)


@dataclass(frozen=True, slots=True)
class Redacted:
    """``text`` with ``[redacted:kind]`` for each thing found, and how many of each kind."""

    text: str
    found: Counter[str] = field(default_factory=Counter)


def redact(text: str) -> Redacted:
    """Take out what must not be kept. Redacting again changes nothing.

    Kinds: api-key, cloud-key, email, jwt, password, phone, private-key, secret, token. A name of
    40 characters with nothing suspicious costs some microseconds; time grows with the length.
    """
    if not _is_suspicious(text):
        return Redacted(text)
    found: Counter[str] = Counter()
    # A placeholder is never read again: what stands between two is read on its own.
    parts = _PLACEHOLDER.split(text)
    parts[::2] = [_redact_part(part, found, 0) for part in parts[::2]]
    return Redacted("".join(parts), found)


def redact_line(text: str) -> Redacted:
    """`redact` for a name, which is kept on one line with single blanks.

    What is a secret only in its compatibility form (``ＡＫＩＡ…``), or without characters that nobody
    sees, is taken out of that form.
    """
    safe = redact(" ".join(text.split()))
    if safe.text.isascii():
        return safe
    seen = "".join(each for each in safe.text if unicodedata.category(each) not in _UNSEEN)
    plain = redact(" ".join(unicodedata.normalize("NFKC", seen).split()))
    return Redacted(plain.text, safe.found + plain.found) if plain.found else safe


_UNSEEN: Final = ("Cf", "Mn")


def _is_suspicious(text: str) -> bool:
    return bool(
        has_match(MAY_HOLD_SECRET, text)
        or has_match(KEYWORD, text)
        or has_match(_MAY_BE_EMAIL, text)
        or "PRIVATE KEY" in text
        or "PuTTY" in text
        or _has_digits(text)
    )


def _has_digits(text: str) -> bool:
    """Seven or more: no telephone number is shorter."""
    return sum(1 for _ in islice(matches(_DIGIT, text), 7)) == 7


_DIGIT: Final = re.compile(r"\d")


def _redact_part(text: str, found: Counter[str], rounds: int) -> str:
    spans = _merged(_spans(text))
    if not spans:
        return text
    if rounds == MAX_ROUNDS:
        found["secret"] += 1
        return "[redacted:secret]"
    written: list[str] = []
    position = 0
    for start, stop, kind in spans:
        found[kind] += 1
        written += (_redact_part(text[position:start], found, rounds + 1), f"[redacted:{kind}]")
        position = stop
    written.append(_redact_part(text[position:], found, rounds + 1))
    return "".join(written)


def _spans(text: str) -> Iterator[Span]:
    if "PRIVATE KEY" in text or "PuTTY" in text:
        yield from _private_keys(text)
    if has_match(MAY_HOLD_SECRET, text):
        for kind, pattern in PATTERNS:
            for match in matches(pattern, text):
                yield *match.span("secret" if "secret" in pattern.groupindex else 0), kind
    if has_match(KEYWORD, text):
        yield from keyword_secrets(text)
    if has_match(_MAY_BE_EMAIL, text):
        for match in matches(_EMAIL, text):
            yield *match.span(), "email"
    if _has_digits(text):
        yield from phone_numbers(text)


def _private_keys(text: str) -> Iterator[Span]:
    """From BEGIN to END; of a key that is cut off, the lines that can be one."""
    ends = deque(match.end() for match in matches(_KEY_END, text))
    position = 0
    for begin in matches(_KEY_BEGIN, text):
        if begin.start() < position:
            continue
        while ends and ends[0] <= begin.end():
            ends.popleft()
        rest = _KEY_REST.match(text, begin.end())
        position = ends[0] if ends else rest.end() if rest else begin.end()
        yield begin.start(), position, "private-key"


def _merged(spans: Iterator[Span]) -> list[Span]:
    """In order and disjoint: spans that overlap go as one, of the kind of the first or longest."""
    merged: list[Span] = []
    for start, stop, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if merged and start < merged[-1][1]:
            first, last, first_kind = merged[-1]
            merged[-1] = (first, max(last, stop), first_kind)
        else:
            merged.append((start, stop, kind))
    return merged
