"""Which language a file is written in, by its name."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

_SUFFIXES: Final[dict[str, str]] = {
    ".py": "python",
    ".pyi": "python",
    ".js": "javascript",
    ".jsx": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "typescript",
    ".go": "go",
    ".java": "java",
    ".rs": "rust",
    ".c": "c",
    ".h": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cxx": "cpp",
    ".hh": "cpp",
    ".hpp": "cpp",
    ".hxx": "cpp",
    ".cs": "csharp",
    ".rb": "ruby",
    ".rake": "ruby",
    # without a grammar: chunked by paragraph
    ".bash": "bash",
    ".clj": "clojure",
    ".dart": "dart",
    ".ex": "elixir",
    ".exs": "elixir",
    ".erl": "erlang",
    ".fs": "fsharp",
    ".groovy": "groovy",
    ".hs": "haskell",
    ".jl": "julia",
    ".kt": "kotlin",
    ".kts": "kotlin",
    ".lua": "lua",
    ".m": "objective-c",
    ".ml": "ocaml",
    ".php": "php",
    ".pl": "perl",
    ".pm": "perl",
    ".ps1": "powershell",
    ".r": "r",
    ".scala": "scala",
    ".sh": "bash",
    ".sql": "sql",
    ".swift": "swift",
    ".zig": "zig",
}
_INTERPRETERS: Final[dict[str, str]] = {
    "python": "python",
    "python3": "python",
    "node": "javascript",
    "ruby": "ruby",
    "sh": "bash",
    "bash": "bash",
    "zsh": "bash",
    "perl": "perl",
    "php": "php",
}
_SHEBANG: Final = re.compile(r"#!\s*\S*?(?:/env\s+(?:-S\s+)?)?([a-z0-9]+)(?:[.\d]*)(?:\s|$)")
_CPP_HEADER: Final = re.compile(r"^\s*(?:class|namespace|template|using)\b|std::", re.MULTILINE)

PROGRAMMING_LANGUAGES: Final = frozenset(_SUFFIXES.values())
"""Names of the programming languages that are told apart, in lower case."""


def language_of(path: str, text: str = "") -> str | None:
    """The programming language of a file, None for any other text.

    The suffix decides; a file without one is judged by the interpreter its first line names.
    """
    suffix = PurePosixPath(path).suffix.lower()
    if not suffix:
        shebang = _SHEBANG.match(text[:200])
        return _INTERPRETERS.get(shebang[1]) if shebang else None
    language = _SUFFIXES.get(suffix)
    if suffix == ".h" and _CPP_HEADER.search(text):
        return "cpp"
    return language
