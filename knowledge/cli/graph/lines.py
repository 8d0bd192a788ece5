"""A file of facts, one JSON object a line: read strictly, and as often as wanted."""

from __future__ import annotations

import json
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import fstat
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

from knowledge.errors import InvalidFact
from knowledge.graph.reading import Teller, read_fact
from knowledge.model.fact import Statement

MAX_LINE_BYTES: Final = 1_000_000
STDIN: Final = "-"
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Line:
    """A line that is not blank. ``text`` is None for one longer than `MAX_LINE_BYTES`."""

    number: int
    text: bytes | None


@dataclass(frozen=True, slots=True)
class FactFile:
    """An opened file of facts; ``name`` is how errors call it."""

    name: str
    file: BinaryIO

    def lines(self) -> Iterator[Line]:
        """Every line that is not blank, from the beginning; holds one at a time."""
        self.file.seek(0)
        number = 0
        while text := self.file.readline(MAX_LINE_BYTES + 1):
            number += 1
            if number == 1:
                text = text.removeprefix(_BOM)
            if len(text) > MAX_LINE_BYTES and not text.endswith(b"\n"):
                self._skip_rest()
                yield Line(number, None)
            elif not text.isspace() and text:
                yield Line(number, text)

    def _skip_rest(self) -> None:
        while (rest := self.file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
            pass


@contextmanager
def opened_facts(path: Path) -> Iterator[FactFile]:
    """The file for the length of the block; what can be read only once is copied first."""
    if str(path) == STDIN:
        with _copied(sys.stdin.buffer) as file:
            yield FactFile("standard input", file)
        return
    with path.open("rb") as file:
        if stat.S_ISREG(fstat(file.fileno()).st_mode):
            yield FactFile(str(path), file)
            return
        with _copied(file) as copy:
            yield FactFile(str(path), copy)


@contextmanager
def _copied(source: BinaryIO) -> Iterator[BinaryIO]:
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(source, copy, 1 << 20)
        yield copy


def read_line(line: Line, teller: Teller) -> Statement:
    """Raises `InvalidFact`."""
    if line.text is None:
        raise InvalidFact(f"longer than {MAX_LINE_BYTES:,} bytes")
    try:
        given = _DECODER.decode(line.text.decode())
        if b"\\u" in line.text:
            json.dumps(given, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise InvalidFact("not UTF-8") from error
    except UnicodeEncodeError as error:
        raise InvalidFact("an escape \\uD800 to \\uDFFF without its other half") from error
    except json.JSONDecodeError as error:
        raise InvalidFact(f"not valid JSON: {error.msg} at column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidFact(f"not valid JSON: {str(error).splitlines()[0][:100]}") from error
    return read_fact(given, teller)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    given = dict(pairs)
    if len(given) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidFact(f"field {twice[:80]!r} is given twice")
    return given


def _refuse(constant: str) -> NoReturn:
    raise InvalidFact(f"{constant} is not a number in JSON")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse)
