"""``knowledge graph ontology show|check|set|versions``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click

from knowledge.cli import options
from knowledge.cli.graph.text import instant, remark_lines
from knowledge.cli.output import one_line, plural, print_json, table
from knowledge.cli.session import opened
from knowledge.errors import InvalidOntology
from knowledge.graph.ontologies import (
    Revalidated,
    put_in_force,
    read_ontology,
    revalidate,
    tenant_ontology,
)
from knowledge.graph.ontology.model import Ontology
from knowledge.graph.ontology.writing import format_ontology
from knowledge.model.identity import require_slug
from knowledge.retrieval.wire import time_to_wire
from knowledge.storage.postgres.database import Database
from knowledge.storage.postgres.facts import ontologies as stored
from knowledge.storage.postgres.facts.places import projects_with_facts
from knowledge.storage.postgres.facts.sources import require_tenant

REMARKS_SHOWN: Final = 50
PROJECTS_SHOWN: Final = 5
OPERATOR: Final = "operator"
_file = click.argument("file", type=click.Path(path_type=Path), metavar="FILE.yaml")


@click.group("ontology", short_help="Show, check and set what predicates mean.")
def ontology_command() -> None:
    """What predicates mean for a tenant: show, check and set its ontology."""


@ontology_command.command("show", short_help="The ontology in force.")
@options.tenant
@options.as_json
def show(tenant: str, as_json: bool) -> None:
    """Print the ontology in force as a document that stands alone."""
    with opened() as runtime:
        ontology = tenant_ontology(runtime.app, require_slug(tenant, "tenant"))
    document = format_ontology(ontology)
    if as_json:
        print_json({**_wire(ontology), "document": document})
    else:
        click.echo(document, nl=False)


@ontology_command.command("check", short_help="What a new version would change.")
@_file
@options.tenant
@options.as_json
def check(file: Path, tenant: str, as_json: bool) -> None:
    """Say what FILE.yaml would change, and which stored facts it speaks against. Writes nothing."""
    wanted = _read(file)
    with opened() as runtime:
        old = tenant_ontology(runtime.app, require_slug(tenant, "tenant"))
        found = revalidate(runtime.app, tenant, wanted)
    if as_json:
        print_json(_report(found, old, is_set=False))
        return
    click.echo(f"{wanted.identity} instead of {old.identity}, which is in force for {tenant}:")
    click.echo(_text(found))
    click.echo(
        f"Put it in force with: knowledge graph ontology set {file} --tenant {tenant}"
        " (this check changed nothing)"
    )


@ontology_command.command("set", short_help="Put a new version in force.")
@_file
@options.tenant
@options.as_json
def set_(file: Path, tenant: str, as_json: bool) -> None:
    """Put FILE.yaml in force for what is asserted from now on; facts stay as they were told."""
    wanted = _read(file)
    with opened() as runtime:
        require_tenant(runtime.app, require_slug(tenant, "tenant"))
        old = tenant_ontology(runtime.app, tenant)
        is_known = _is_known(runtime.app, tenant, old, wanted)
        found = (
            revalidate(runtime.app, tenant, wanted)
            if is_known
            else put_in_force(runtime.app, tenant, wanted, by=OPERATOR)
        )
        projects = projects_with_facts(runtime.app, tenant)
    if as_json:
        print_json(_report(found, old, is_set=True))
        return
    if is_known:
        click.echo(f"{wanted.identity} is in force for {tenant} already: nothing was changed.")
        return
    click.echo(f"{wanted.identity} is in force for {tenant}, in the place of {old.identity}:")
    click.echo(_text(found))
    for line in _inferring(tenant, projects):
        click.echo(line)


@ontology_command.command("versions", short_help="Every version that was put in force.")
@options.tenant
@options.as_json
def versions(tenant: str, as_json: bool) -> None:
    """Every version that was put in force for the tenant, oldest first."""
    with opened() as runtime:
        rows = stored.versions(runtime.app, require_slug(tenant, "tenant"))
        ontology = tenant_ontology(runtime.app, tenant)
    if as_json:
        entries = [
            {
                "version": row["version"],
                "appliedBy": row["applied_by"],
                "appliedAt": time_to_wire(row["applied_at"]),
            }
            for row in rows
        ]
        print_json({"inForce": ontology.identity, "versions": entries})
    elif rows:
        shown = [
            (str(row["version"]), instant(row["applied_at"]), one_line(row["applied_by"], 60))
            for row in rows
        ]
        click.echo(table(("VERSION", "SINCE", "PUT IN FORCE BY"), shown))
    else:
        click.echo(f"{tenant} has no ontology of its own: {ontology.identity} is in force.")


def _read(file: Path) -> Ontology:
    try:
        text = file.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise InvalidOntology(f"{file} is not UTF-8") from error
    return read_ontology(text, where=str(file))


def _is_known(app: Database, tenant: str, old: Ontology, wanted: Ontology) -> bool:
    """Whether the tenant put this very document in force, and no other since."""
    is_same = format_ontology(old) == format_ontology(wanted)
    return is_same and bool(stored.versions(app, tenant))


def _inferring(tenant: str, projects: Sequence[str]) -> Iterator[str]:
    """How to apply new rules to known facts, where there are any."""
    if not projects:
        return
    yield "Its rules apply to what is told from now on. To apply them to known facts too:"
    for project in projects[:PROJECTS_SHOWN]:
        yield f"  knowledge graph infer --tenant {tenant} --project {project}"
    hidden = len(projects) - PROJECTS_SHOWN
    if hidden > 0:
        yield f"  and likewise for {plural(hidden, 'other project')} of {tenant}"


def _text(found: Revalidated) -> str:
    changes = [f"    {one_line(change, 200)}" for change in found.changes]
    lines = ["  changes", *(changes or ["    none"])]
    if found.against:
        lines.append("  against facts that are believed, which stay as they are")
        lines += remark_lines(found.against.items(), "    ", REMARKS_SHOWN)
    else:
        lines.append("  nothing against the facts that are believed")
    return "\n".join(lines)


def _wire(ontology: Ontology) -> dict[str, Any]:
    return {"name": ontology.name, "version": ontology.version, "closed": ontology.closed}


def _report(found: Revalidated, old: Ontology, *, is_set: bool) -> dict[str, Any]:
    return {
        **_wire(found.ontology),
        "before": _wire(old),
        "inForce": is_set,
        "changes": list(found.changes),
        "violations": [
            {"message": line, "facts": times} for line, times in sorted(found.against.items())
        ],
    }
