"""``knowledge memory upsert|export|import``: facts of a memory as lines of JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from knowledge.cli import options
from knowledge.cli.graph.lines import FactFile, Line, opened_facts, parse_line
from knowledge.cli.memory.place import MemoryPlace, of_memory, opened_memory, place_to_wire
from knowledge.cli.output import block, one_line, plural, print_json
from knowledge.errors import InvalidFact
from knowledge.memory.moving import export_memory, import_memory, read_line
from knowledge.memory.writing import MAX_TRIPLES, Told, upsert

SHOWN: Final = 10
Item = TypeVar("Item")


@dataclass(slots=True)
class Moved:
    """What all calls did together; ``refused`` are line numbers with reasons."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: list[tuple[int, str]] = field(default_factory=list)
    open: dict[str, int] = field(default_factory=dict)

    def to_wire(self, memory: MemoryPlace) -> dict[str, Any]:
        return {
            **place_to_wire(memory),
            "counts": {**self.counts, "refused": len(self.refused)},
            "refused": [{"line": line, "reason": reason} for line, reason in self.refused],
            "open": self.open,
        }


@click.command("upsert", short_help="Tell facts of a .jsonl to a memory.")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.jsonl")
@of_memory
@click.option("--session", required=True, metavar="S", help="Session that the facts are of.")
@click.option("--of-session", is_flag=True, help="Only questions naming the session recall them.")
@options.as_json
def upsert_command(
    file: Path, tenant: str, project: str, graph: str, session: str, of_session: bool, as_json: bool
) -> None:
    """Tell the triples of FILE.jsonl ('-': standard input): subject, predicate and object a line, and
    as wanted subjectType, objectType, validFrom, validTo, observedAt, confidence.

    A line that is refused says why; the others are written, and the exit code is 1. The same file
    again changes nothing.
    """
    moved = Moved()
    with (
        opened_facts(file) as facts,
        opened_memory(tenant, project, graph, create=True) as memory,
    ):
        for lines in _batches(_parsed(facts, moved, parse_line), MAX_TRIPLES):
            told = Told(
                memory.namespace,
                [given for _, given in lines],
                client="knowledge",
                session_id=session,
                is_of_session=of_session,
            )
            answer = upsert(memory.runtime.app, memory.sender, told)
            moved.counts.update({n: c for n, c in answer["counts"].items() if n != "refused"})
            moved.refused += [(lines[r["index"]][0], r["reason"]) for r in answer["refused"]]
            moved.open = answer["open"]
    _show(moved, memory, as_json)


@click.command("export", short_help="Write what a memory holds as a .jsonl.")
@of_memory
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="[default: standard output]"
)
def export_command(tenant: str, project: str, graph: str, output: Path | None) -> None:
    """Write every fact that is believed, with its id and who told it, one JSON object a line."""
    with opened_memory(tenant, project, graph) as memory:
        lines = (
            json.dumps(line, ensure_ascii=False)
            for line in export_memory(memory.runtime.app, memory.sender, memory.namespace)
        )
        count = _write(lines, output)
    click.echo(f"{plural(count, 'fact')} of {memory}", err=True)


@click.command("import", short_help="Take an exported .jsonl into a memory.")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.jsonl")
@of_memory
@options.as_json
def import_command(file: Path, tenant: str, project: str, graph: str, as_json: bool) -> None:
    """Take the lines of an export into a memory, each as told by who told it.

    A fact stays as trusted as it was, and gets an id of its new place. A line that is refused says
    why; the others are written, and the exit code is 1. The same file again changes nothing.
    """
    moved = Moved()
    with (
        opened_facts(file) as facts,
        opened_memory(tenant, project, graph, create=True) as memory,
    ):

        def read(line: Line) -> Any:
            return read_line(parse_line(line), memory.namespace, memory.sender)

        for lines in _batches(_parsed(facts, moved, read), MAX_TRIPLES):
            statements = [said for _, said in lines]
            done = import_memory(memory.runtime.app, memory.sender, memory.namespace, statements)
            moved.counts.update(state for _, _, state in done.facts)
            moved.counts["closed"] += len(done.closed)
            moved.refused += [(lines[r.index][0], r.reason) for r in done.refused]
            moved.open = {"facts": done.open_facts, "entities": done.entities}
    _show(moved, memory, as_json)


def _parsed(
    facts: FactFile, moved: Moved, read: Callable[[Line], Any]
) -> Iterator[tuple[int, Any]]:
    """The lines that can be read, with their numbers; the others are noted as refused."""
    for line in facts.lines():
        try:
            yield line.number, read(line)
        except InvalidFact as error:
            moved.refused.append((line.number, error.message))


def _batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch


def _write(lines: Iterable[str], output: Path | None) -> int:
    count = 0
    if output is None:
        for count, line in enumerate(lines, start=1):  # noqa: B007
            click.echo(line)
        return count
    with output.open("w", encoding="utf-8") as file:
        for count, line in enumerate(lines, start=1):  # noqa: B007
            file.write(line + "\n")
    return count


def _show(moved: Moved, memory: MemoryPlace, as_json: bool) -> None:
    """Print what was done; ends with exit code 1 where a line was refused."""
    moved.refused.sort()
    if as_json:
        print_json(moved.to_wire(memory))
    else:
        click.echo(_text(moved, memory))
    if not moved.refused:
        return
    if not as_json:
        for line in _refusals(moved.refused):
            click.echo(line, err=True)
    raise click.exceptions.Exit(1)


def _text(moved: Moved, memory: MemoryPlace) -> str:
    names = ("added", "restated", "unchanged", "closed", "redacted")
    counts = [(name, f"{moved.counts[name]:,}") for name in names if moved.counts[name]]
    held = moved.open
    holds = f"{held['facts']:,} facts, {held['entities']:,} entities" if held else ""
    refused = f"{len(moved.refused):,}" if moved.refused else ""
    return f"Memory {memory}\n" + block([*counts, ("refused", refused), ("holds", holds)])


def _refusals(refused: Sequence[tuple[int, str]]) -> Iterator[str]:
    for number, reason in refused[:SHOWN]:
        yield f"  line {number}: {one_line(reason, limit=200)}"
    if len(refused) > SHOWN:
        yield f"  and {len(refused) - SHOWN:,} more"
