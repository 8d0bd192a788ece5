"""``knowledge graph assert``: a file of facts, checked as a whole and then written in batches."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click

from knowledge.cli import options
from knowledge.cli.graph.lines import FactFile, Line, opened_facts, read_line
from knowledge.cli.graph.text import remark_lines
from knowledge.cli.output import block, one_line, plural, print_json
from knowledge.cli.session import opened, progress
from knowledge.errors import Forbidden, InvalidFact, InvalidInput, NotFound
from knowledge.graph.asserting import Batch, assert_facts
from knowledge.graph.ontologies import tenant_ontology
from knowledge.graph.reading import Teller
from knowledge.graph.session import Writer, Written
from knowledge.model.fact import Domain
from knowledge.model.identity import require_slug
from knowledge.runtime import Runtime
from knowledge.storage.postgres import catalogue
from knowledge.storage.postgres.facts.chunks import collection_ids

BATCH: Final = 2_000
REPORTED_EVERY: Final = 50_000
ERRORS_SHOWN: Final = 10
REMARKS_SHOWN: Final = 20
MAX_REMARKS: Final = 10_000
OTHER_REMARKS: Final = "other remarks, too many to tell apart"
OPERATOR: Final = Writer("operator")

Progress = Callable[[str], None]


@dataclass(slots=True)
class Asserted:
    """What all batches did together; see `Written`."""

    facts: int = 0
    added: int = 0
    restated: int = 0
    outdated: int = 0
    unchanged: int = 0
    ended: int = 0
    closed: Counter[str] = field(default_factory=Counter)
    suggested: int = 0
    is_inference_cut: bool = False
    remarks: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def add(self, written: Written) -> None:
        self.facts += len(written.fact_ids)
        self.added += written.added
        self.restated += written.restated
        self.outdated += written.outdated
        self.unchanged += written.unchanged
        self.ended += written.ended
        self.closed.update(reason for _, reason in written.closed)
        self.suggested += written.suggested
        self.is_inference_cut |= written.is_inference_cut
        for line, times in written.violations.items():
            is_kept = line in self.remarks or len(self.remarks) < MAX_REMARKS
            self.remarks[line if is_kept else OTHER_REMARKS] += times

    @property
    def rate(self) -> float:
        """Facts a second, checking included."""
        return self.facts / self.seconds if self.seconds else 0.0


@click.command("assert", short_help="Tell the facts of a .jsonl file.")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.jsonl")
@options.tenant
@options.project
@click.option(
    "--domain",
    type=click.Choice([domain.value for domain in Domain]),
    metavar="D",
    help=f"Of facts that name none: {', '.join(Domain)}.",
)
@options.as_json
def assert_command(
    file: Path, tenant: str, project: str, domain: str | None, as_json: bool
) -> None:
    """Tell the facts of FILE.jsonl ('-': standard input), one JSON object a line.

    Required: subject, predicate, object, and sourceId with sourceVersion, or client with
    sessionId. All lines are checked before any is written. The same file again changes nothing.
    Tenant and project are created where they are new.
    """
    require_slug(project, "project")
    with opened_facts(file) as facts, opened(create=True) as runtime:
        started = time.monotonic()
        ontology = tenant_ontology(runtime.app, require_slug(tenant, "tenant"))
        teller = Teller(
            principal=OPERATOR.principal,
            ontology=ontology,
            domain=None if domain is None else Domain(domain),
            collections=_collections(runtime, tenant, project),
        )
        count = _require_valid(facts, teller, progress())
        catalogue.ensure_project(runtime.owner, tenant, project)
        done = _assert(runtime, tenant, project, facts, teller, count, progress())
        done.seconds = time.monotonic() - started
    if as_json:
        print_json(_wire(tenant, project, ontology.identity, done))
    else:
        click.echo(_text(tenant, project, ontology.identity, done))


def _collections(
    runtime: Runtime, tenant_id: str, project_id: str
) -> Callable[[str], uuid.UUID | None]:
    """Finds collections by name or id; they are read when the first fact names one."""

    @cache
    def known() -> dict[str, uuid.UUID]:
        with runtime.app.tenant(tenant_id) as connection:
            return collection_ids(connection, project_id)

    return lambda name: known().get(name)


def _require_valid(facts: FactFile, teller: Teller, show: Progress) -> int:
    """The number of facts, when every line is one. Raises `InvalidFact`; of several wrong lines
    the first are named on standard error."""
    count, wrong = 0, 0
    first: list[str] = []
    for count, line in enumerate(facts.lines(), start=1):
        try:
            read_line(line, teller)
        except InvalidFact as error:
            wrong += 1
            if wrong <= ERRORS_SHOWN:
                first.append(f"{facts.name}:{line.number}: {one_line(error.message, 300)}")
        if count % REPORTED_EVERY == 0:
            show(f"checked {count:,} lines")
    if wrong == 1:
        raise InvalidFact(f"{first[0]} (nothing was written)")
    if wrong:
        click.echo("\n".join(first), err=True)
        hidden = f", the first {ERRORS_SHOWN} are shown" if wrong > ERRORS_SHOWN else ""
        raise InvalidFact(
            f"{wrong:,} of {plural(count, 'line')} are not valid{hidden}: nothing was written"
        )
    if not count:
        raise InvalidInput(f"{facts.name} holds no fact")
    return count


def _assert(
    runtime: Runtime,
    tenant_id: str,
    project_id: str,
    facts: FactFile,
    teller: Teller,
    count: int,
    show: Progress,
) -> Asserted:
    done = Asserted()
    for lines in _batches(facts.lines()):
        try:
            written = assert_facts(
                runtime.app,
                tenant_id,
                project_id,
                Batch([read_line(line, teller) for line in lines]),
                writer=OPERATOR,
                ontology=teller.ontology,
            )
        except (InvalidInput, NotFound, Forbidden) as error:
            raise type(error)(
                f"{facts.name}, {_place(lines)}:"
                f" {error.message} (before them {plural(done.facts, 'fact')} were written)"
            ) from error
        done.add(written)
        if done.facts // REPORTED_EVERY > (done.facts - len(lines)) // REPORTED_EVERY:
            show(f"asserted {done.facts:,} of {count:,} facts")
    return done


def _place(lines: Sequence[Line]) -> str:
    first, last = lines[0].number, lines[-1].number
    return f"line {first:,}" if first == last else f"lines {first:,} to {last:,}"


def _batches(lines: Iterator[Line]) -> Iterator[list[Line]]:
    while batch := list(islice(lines, BATCH)):
        yield batch


def _text(tenant_id: str, project_id: str, ontology: str, done: Asserted) -> str:
    reasons = ", ".join(f"{times:,} {reason}" for reason, times in done.closed.most_common())
    more = f"knowledge graph infer --tenant {tenant_id} --project {project_id}"
    suggested = f"{done.suggested:,}" + (
        f" (more could be: {more})" if done.is_inference_cut else ""
    )
    remarks = plural(len(done.remarks), "remark") if done.remarks else "no remark"
    lines = block(
        [
            ("added", f"{done.added:,}"),
            ("restated", f"{done.restated:,}" if done.restated else ""),
            ("outdated", f"{done.outdated:,} (a later telling is known)" if done.outdated else ""),
            ("unchanged", _unchanged(done)),
            ("closed", f"{done.closed.total():,} ({reasons})" if done.closed else ""),
            ("suggested", suggested if done.suggested else ""),
            ("ontology", f"{ontology}: {remarks}"),
        ]
    )
    heading = (
        f"Asserted {plural(done.facts, 'fact')} in {tenant_id}/{project_id}:"
        f" {done.seconds:.1f} s, {done.rate:,.0f} facts/s"
    )
    shown = remark_lines(done.remarks.items(), " " * 4, REMARKS_SHOWN)
    return "\n".join([heading, lines, *shown])


def _unchanged(done: Asserted) -> str:
    """With a hint where what is repeated is believed no longer."""
    if not done.ended:
        return f"{done.unchanged:,}" if done.unchanged else ""
    were = "was" if done.ended == 1 else "were"
    return (
        f"{done.unchanged:,} ({done.ended:,} of them {were} retracted or corrected since:"
        " to say it again, give observedAt or a newer sourceVersion)"
    )


def _wire(tenant_id: str, project_id: str, ontology: str, done: Asserted) -> dict[str, Any]:
    return {
        "tenantId": tenant_id,
        "projectId": project_id,
        "facts": done.facts,
        "added": done.added,
        "restated": done.restated,
        "outdated": done.outdated,
        "unchanged": done.unchanged,
        "ended": done.ended,
        "closed": dict(sorted(done.closed.items())),
        "suggested": done.suggested,
        "inferenceTruncated": done.is_inference_cut,
        "ontology": ontology,
        "violations": [
            {"message": line, "facts": times} for line, times in sorted(done.remarks.items())
        ],
        "seconds": round(done.seconds, 3),
        "factsPerSecond": round(done.rate, 1),
    }
