"""Telling source code from prose, for a document of a feed whose kind nobody stated."""

from __future__ import annotations

import re
from typing import Final

_MAX_CHARS: Final = 20_000
_MAX_LINES: Final = 200
_MAX_LINE_CHARS: Final = 300
_LEAST_CODE_LINES: Final = 3
_LEAST_CODE_SHARE: Final = 0.6
_SHARE_BEFORE_DEFINITION: Final = 0.7

_MODULE_DOCSTRING: Final = re.compile(
    r"(?:\s*#[^\n]*\n)*\s*[rRuU]?(?P<quote>\"{3}|'{3}).*?(?P=quote)", re.DOTALL
)
_COMMENT: Final = re.compile(r"\s*(?:#(?!\s*include)|//|/\*|\*/|\*\s)")
_FENCE: Final = re.compile(r"^\s*(?:```|~~~)", re.MULTILINE)

_DEFINITION: Final = re.compile(
    r"""^\s*(?:
      (?:async\s+)?def\s+\w+\s*[(\[]                                    # Python
    | (?P<ruby>def\s+(?:self\.)?\w+[?!=]?\s*(?:\(.*\))?\s*$)
    | class\s+\w+\s*(?:\(.*\))?\s*:                                     # Python
    | (?:export\s+(?:default\s+)?)?(?:abstract\s+)?class\s+\w+[^.;]*\{  # JavaScript and kin
    | (?:export\s+(?:default\s+)?)?(?:async\s+)?function\b\s*\*?\s*\w*\s*(?:<[^>]*>)?\(
    | (?:export\s+)?(?:const|let|var)\s+\w+\s*(?::[^=]+)?=\s*(?:async\s*)?
        (?:\([^)]*\)?|\w+\s*=>|function\b)
    | func\s+(?:\([^)]*\)\s*)?\w+\s*(?:\[[^\]]*\])?\(                   # Go
    | (?:pub(?:\([^)]*\))?\s+)?(?:async\s+|unsafe\s+|const\s+)*fn\s+\w+\s*[(<]   # Rust
    | (?:pub\s+)?(?:impl|trait|struct|enum|mod)\b[^.;]*\{\s*$
    | (?:(?:public|private|protected|internal|static|final|abstract|virtual|override|async
        |synchronized|sealed|partial)\s+)+[\w<>\[\],.?\s]+(?:(?<=\w)\(|\{)   # Java, C#
    | (?!(?:return|else|and|or|in|of|the|a)\b)
        [A-Za-z_][\w:<>,*&\s]*[\s*&]~?[\w:]+\s*\([^;.]*\)\s*(?:const\s*)?\{   # C, C++
    | (?:package|namespace)\s+[\w.:]+\s*[;{]?\s*$
    | \#include\s*[<"]
    )""",
    re.VERBOSE,
)
_CODE_LINE: Final = re.compile(
    r"""^\s*(?:
      .*[;{}]\s*(?://.*|/\*.*)?$
    | (?:return|raise|yield|throw|assert|del|await)\b.*[\w)\]}"']$
    | (?:import\s+[\w.{*"'(]+|from\s+[\w.]+\s+import\b|using\s+[\w.]+|use\s+[\w:]+|require\b).*
    | (?:if|elif|for|while|with|except|try|else|finally|switch|case)\b.*[:{]\s*(?:\#.*)?$
    | (?:pass|break|continue|end|else|do|begin)$
    | @\w[\w.]*(?:\(.*)?$
    | [\w.\[\]"'*&()>-]+(?:\s*:\s*[\w.\[\], |]+)?\s*(?:=|:=|\+=|-=|\*=|/=|\|=|<<|<-)\s*\S.*
    | [\w.]+\(.*\)?[,)]?$
    | [\w."']+,$
    | [)\]}]+[,;:)]*\s*$
    )""",
    re.VERBOSE,
)


def looks_like_code(text: str) -> bool:
    """Whether ``text`` is source code rather than prose, judged by its first 200 lines.

    True for a text that has the head of a function, class or method with code before it, and
    for one whose lines are mostly statements. A single line is code only when it defines
    something. Comments do not count, nor does prose that merely quotes a statement or a
    fenced block.
    """
    text = text[:_MAX_CHARS]
    if opening := _MODULE_DOCSTRING.match(text):
        text = text[opening.end() :]
    lines = [
        line[:_MAX_LINE_CHARS]
        for line in text.split("\n")[:_MAX_LINES]
        if line.strip() and not _COMMENT.match(line)
    ]
    is_code = [_CODE_LINE.match(line) is not None for line in lines]
    has_end = any(line.strip() == "end" for line in lines)
    defines = next((n for n, line in enumerate(lines) if _is_definition(line, has_end)), None)
    if defines is not None and sum(is_code[:defines]) >= _SHARE_BEFORE_DEFINITION * defines:
        return True
    if _FENCE.search(text):
        return False
    code = sum(is_code)
    return code >= _LEAST_CODE_LINES and code >= _LEAST_CODE_SHARE * len(lines)


def _is_definition(line: str, has_end: bool) -> bool:
    """Ruby's ``def name`` could begin a sentence, so it needs its ``end``."""
    found = _DEFINITION.match(line)
    return found is not None and (has_end or found["ruby"] is None)
