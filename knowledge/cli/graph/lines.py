"""A file of facts, one JSON object a line: read strictly, and as often as wanted."""

from __future__ import annotations

import json
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import fstat
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

from knowledge.errors import InvalidFact
from knowledge.graph.reading import FIELDS, Teller, read_fact
from knowledge.model.fact import Domain, Statement

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
    given = parse_line(line)
    if isinstance(given, dict):
        _require_complete(given, teller)
    return read_fact(given, teller)


def parse_line(line: Line) -> Any:
    """The JSON value of a line. Raises `InvalidFact`."""
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
    return given


def _require_complete(given: Mapping[str, Any], teller: Teller) -> None:
    """Raises `InvalidFact` where several fields are missing, with all of them: one that is alone is
    `read_fact`'s to name."""
    missing = [name for name in ("subject", "predicate", "object") if given.get(name) is None]
    if _needs_domain(given, teller):
        missing.append("domain")
    if given.get("sourceId") is not None:
        provenance: tuple[str, ...] = ("sourceVersion",)
    elif given.get("client") is not None or given.get("sessionId") is not None:
        provenance = ("client", "sessionId")
    else:
        provenance = ("sourceId", "sourceVersion")
    missing += [name for name in provenance if given.get(name) is None]
    known = given.keys() <= FIELDS
    if known and len(missing) > 1 and missing != ["sourceId", "sourceVersion"]:
        domains = f" (domain is one of {', '.join(Domain)})" if "domain" in missing else ""
        raise InvalidFact(f"{', '.join(missing[:-1])} and {missing[-1]} are missing{domains}")


def _needs_domain(given: Mapping[str, Any], teller: Teller) -> bool:
    """Whether neither the fact, nor the teller, nor the ontology says its domain."""
    predicate = given.get("predicate")
    if given.get("domain") is not None or teller.domain is not None:
        return False
    known = teller.ontology.find(predicate) if isinstance(predicate, str) else None
    return predicate is not None and (known is None or known.domain is None)


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
