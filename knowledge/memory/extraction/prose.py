"""The prose of a message: without code, stack traces, logs, tables, quotations and mark-up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

MAX_TURN_CHARS: Final = 20_000
"""What is read of one message; the rest is left out, counted."""

MAX_PASSAGE_CHARS: Final = 600
"""Parsed at once: short enough that the event loop gets its turn within milliseconds."""

_FENCE: Final = re.compile(r"^\s{0,3}(?:```|~~~)")
_NOT_PROSE: Final = re.compile(
    r"^(?:\s{4,}|\t|\s*(?:>|\||\$ |>>> |\.\.\. |[#]!|//|/\*|\* @|@@|[+-]{3} |diff --git))"
    r"|^\s*(?:at\s+[\w.$<>]+[(\[]|File \"|Traceback |Caused by:|goroutine \d|\w+(?:Error|Exception)\b:?)"
    r"|^\s*(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:|\d\d:\d\d:\d\d|(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b)"
    r"|[;{}]\s*$|^\s*[\w.\[\]\"']+\s*[-+*/|]?=\s*\S|^\s*(?:def|class|import|from|return|public|private|const|let|var|func|SELECT|INSERT)\s.*[:;(){}=*]"
)
_MARK_UP: Final = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)]|#{1,6})\s+|\*\*|__|~~")
_LINK: Final = re.compile(r"!?\[([^\]\n]{1,200})\]\([^)\s]{1,500}\)")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+(?=[\"'`(]?[A-Z`])")


def passages(content: str) -> Iterator[str]:
    """Pieces of prose of at most `MAX_PASSAGE_CHARS`, in order, blanks collapsed."""
    for line in _lines(content[:MAX_TURN_CHARS]):
        passage = ""
        for sentence in _SENTENCE_END.split(line):
            if passage and len(passage) + len(sentence) >= MAX_PASSAGE_CHARS:
                yield passage
                passage = ""
            passage = f"{passage} {sentence}".strip()
            if len(passage) > MAX_PASSAGE_CHARS:  # no sentence that anybody wrote to be read
                passage = ""
        if passage:
            yield passage


def _lines(content: str) -> Iterator[str]:
    """Paragraphs, as one line each; an item of a list is a paragraph of its own."""
    paragraph: list[str] = []
    is_code = False
    for line in content.splitlines():
        if _FENCE.match(line):
            is_code = not is_code
        is_prose = not is_code and not _FENCE.match(line) and not _NOT_PROSE.search(line)
        starts_anew = _MARK_UP.match(line) is not None
        if paragraph and (not is_prose or not line.strip() or starts_anew):
            yield " ".join(" ".join(paragraph).split())
            paragraph = []
        if is_prose and line.strip():
            paragraph.append(_LINK.sub(r"\1", _MARK_UP.sub("", line)))
    if paragraph:
        yield " ".join(" ".join(paragraph).split())
