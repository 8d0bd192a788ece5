"""``knowledge up``, ``down``, ``status``, ``doctor``."""

from __future__ import annotations

import json
from typing import Any

import click

from knowledge.errors import DatabaseUnavailable
from knowledge.home import Home
from knowledge.settings import Settings, load_settings
from knowledge.stack.doctor import Finding, doctor
from knowledge.stack.lifecycle import down, up, up_detached
from knowledge.stack.servers import ServerAddresses
from knowledge.stack.status import StackStatus, status
from knowledge.storage.postgres.bootstrap import database_urls
from knowledge.storage.postgres.database import Database
from knowledge.storage.postgres.overview import collection_overview

PORT = click.IntRange(1, 65535)


@click.command("up")
@click.option("--detach", is_flag=True, help="Return when all parts are healthy.")
@click.option("--api-port", type=PORT, help="Port of the API (8080, or a free one).")
@click.option("--dagster-port", type=PORT, help="Port of the Dagster UI (3000, or a free one).")
def up_command(detach: bool, api_port: int | None, dagster_port: int | None) -> None:
    """Start the stack and keep it running until Ctrl-C (or `knowledge down`)."""
    home = Home.locate()
    ports = {
        name: port
        for name, port in (("api_port", api_port), ("dagster_port", dagster_port))
        if port is not None
    }
    settings = _with_ports(load_settings(home), ports)
    if detach:
        arguments = [
            text
            for name, port in ports.items()
            for text in (f"--{name.replace('_', '-')}", str(port))
        ]
        healthy = up_detached(home, settings, arguments, click.echo)
    else:
        healthy = up(home, settings, click.echo)
    _exit(healthy)


@click.command("down")
def down_command() -> None:
    """Stop the stack, or what is left of it after a crash."""
    home = Home.locate()
    down(home, load_settings(home), click.echo)


@click.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print the status as JSON.")
def status_command(as_json: bool) -> None:
    """Show what runs and whether it is well. Exit code 1 when a part is not."""
    home = Home.locate()
    found = status(home, load_settings(home), collections=lambda at: _collections(home, at))
    click.echo(json.dumps(found.to_json(), indent=2) if as_json else _shown(found))
    _exit(found.healthy)


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor_command(as_json: bool) -> None:
    """Check this machine and this installation. Exit code 1 when something must be mended."""
    home = Home.locate()
    findings = doctor(home, load_settings(home))
    if as_json:
        click.echo(json.dumps({"findings": [finding.to_json() for finding in findings]}, indent=2))
    else:
        click.echo("\n".join(_line(finding) for finding in findings))
    _exit(all(finding.level != "fail" for finding in findings))


def _with_ports(settings: Settings, ports: dict[str, Any]) -> Settings:
    return settings.model_copy(update={"stack": settings.stack.model_copy(update=ports)})


def _collections(home: Home, addresses: ServerAddresses) -> list[dict[str, Any]]:
    """How the collections stand; none before the database was prepared."""
    urls = database_urls(addresses.database_admin_url, home.database_key)
    database = Database(urls.owner_url, max_size=1)
    try:
        return collection_overview(database)
    except DatabaseUnavailable:
        return []
    finally:
        database.close()


def _shown(found: StackStatus) -> str:
    parts = _aligned(_part_rows(found))
    if not found.collections:
        return parts
    return f"{parts}\n\n{_aligned(_collection_rows(found))}"


def _collection_rows(found: StackStatus) -> list[tuple[str, ...]]:
    head: tuple[str, ...] = ("COLLECTION", "HEAD", "CHUNKS", "LAG", "WAITING", "DEAD", "PROFILE")
    return [head] + [
        (
            f"{entry['tenant']}.{entry['collection']}",
            str(entry["headRevision"]),
            str(entry["chunks"]),
            str(max(entry["lag"].values(), default=0)),
            f"{entry['pendingEvents']}" + (f" ({entry['error']})" if entry["error"] else ""),
            f"{entry['deadRowRatio']:.0%}",
            entry["embeddingProfileVersion"] or "none",
        )
        for entry in found.collections
    ]


def _part_rows(found: StackStatus) -> list[tuple[str, ...]]:
    head: tuple[str, ...] = ("PART", "STATE", "VERSION", "PID", "URL")
    return [head] + [
        (
            part.name,
            "healthy" if part.healthy else "down",
            part.version or "-",
            str(part.pid or "-"),
            part.url or "-",
        )
        for part in found.parts
    ]


def _aligned(rows: list[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _line(finding: Finding) -> str:
    remedy = f": {finding.remedy}" if finding.remedy else ""
    return f"{finding.level:<5} {finding.subject}: {finding.found}{remedy}"


def _exit(ok: bool) -> None:
    if not ok:
        click.get_current_context().exit(1)
