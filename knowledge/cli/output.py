"""How results look: tables and blocks for people, one JSON value for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import click

from knowledge.text.lines import one_line as one_line


def print_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: int = 0) -> str:
    """Columns of equal width, the last ``numbers`` of them aligned to the right."""
    lines = [tuple(header), *map(tuple, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    first_number = len(header) - numbers
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column >= first_number else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def block(fields: Iterable[tuple[str, str]]) -> str:
    """Names and values, one a line; empty values are left out."""
    shown = [(name, value) for name, value in fields if value]
    width = max((len(name) for name, _ in shown), default=0)
    return "\n".join(f"  {name.ljust(width)}  {value}" for name, value in shown)


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def acl_words(acl: Sequence[str] | None) -> str:
    if acl is None:
        return "everyone"
    return ",".join(acl) or "nobody"


def short_version(version: str | None) -> str:
    """A commit or content hash as people quote it: its first 12 digits, and what is changed."""
    if not version:
        return "-"
    prefix, _, digits = version.rpartition("sha256:")
    commit, plus, changed = digits.partition("+")
    return f"{'sha256:' if prefix or version.startswith('sha256:') else ''}{commit[:12]}{plus}{changed}"
