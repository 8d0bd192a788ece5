"""Telephone numbers of many countries among other numbers, told apart by their written form.

What looks like one is checked against the numbering plans of the `phonenumbers` package. A
number that names its country (``+49 …``, ``0049 …``) is looked for in all plans; one that does
not is looked for in those of `REGIONS`, and only where its form or a word beside it says that it
is a telephone number: bare digits are ids and timestamps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import phonenumbers

from knowledge.security.scanning import matches

REGIONS: Final = ("US", "GB", "DE", "FR", "IT", "ES", "NL", "BE", "CH", "AT", "SE", "PL", "AU", "IN", "JP", "BR")  # fmt: skip

_CANDIDATE: Final = re.compile(
    r"(?<![\w.:/#@=+-])(?P<number>(?:\+|00)?\(?[0-9](?:[ \t\u00a0.()/–-]{0,3}[0-9]){6,16})(?![\w@:/=-]|\.\w)"
)
_KEYWORD: Final = re.compile(
    r"(?i)(?:\b(?:tel|phone|telephone|telefon|t[ée]l[ée]phone|tel[ée]fono|mobile|mobil|cell|handy|fax|call|ring|whatsapp|sms|dial|reach)\b|☎|📞)[^\n\d]{0,24}$"
)
_NUMBERED: Final = re.compile(
    r"(?i)\b(?:sku|part|article|invoice|ticket|serial|batch|lot|model)(?:\s(?:no|nr|number)\b)?[\s.:#]{1,3}$"
)
_DOTTED_QUAD: Final = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}(?:[/:]\d+)?")
_DATE: Final = re.compile(
    r"(?:19|20)\d\d[-./ ]?[01]?\d[-./ ]?[0-3]?\d(?:[ -]+\d{1,2}(?:[.-]?\d\d){0,2})?"
    r"|[0-3]?\d[-./ ][01]?\d[-./ ](?:19|20)\d\d"
)
_NORTH_AMERICAN: Final = re.compile(r"(?:1[ .-])?\(?[2-9]\d\d\)?[ .-]{1,2}[2-9]\d\d[ .-]\d{4}")
_GROUPED: Final = re.compile(r"\(?0\d+\)?(?:[ ./–-]{1,3}\d{2,})+")

Span = tuple[int, int, str]


def phone_numbers(text: str) -> Iterator[Span]:
    """``(start, stop, "phone")`` of each, in order."""
    for match in matches(_CANDIDATE, text):
        start, stop = match.span("number")
        before = text[max(0, start - 40) : start]
        if _is_phone_number(match["number"], before):
            yield start, stop, "phone"


def _is_phone_number(written: str, before: str) -> bool:
    if written.startswith("+"):
        return _is_valid(written, None)
    if _NUMBERED.search(before):
        return False
    if written.startswith("00") and _is_valid("+" + written[2:], None):
        return True
    if _DOTTED_QUAD.fullmatch(written) or _DATE.fullmatch(written):
        return False
    is_named = _KEYWORD.search(before) is not None
    if _NORTH_AMERICAN.fullmatch(written):
        return is_named or _is_valid(written, "US")
    digits = sum(character.isdigit() for character in written)
    if not is_named and not (digits >= 9 and _GROUPED.fullmatch(written)):
        return False
    return any(_is_valid(written, region) for region in REGIONS)


def _is_valid(written: str, region: str | None) -> bool:
    try:
        number = phonenumbers.parse(written, region)
    except phonenumbers.NumberParseException:
        return False
    # 555 numbers and others that no plan has handed out are possible, and may be real tomorrow
    return phonenumbers.is_valid_number(number) or (
        region in (None, "US") and phonenumbers.is_possible_number(number)
    )
