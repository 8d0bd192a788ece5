"""``knowledge mcp install``: what an agent's program needs to know of this server."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final, cast
from urllib.parse import urlsplit

import click

from knowledge.cli.mcp.config_files import merge, written
from knowledge.cli.mcp.programs import (
    NAME,
    PROGRAMS,
    VARIABLE,
    Launch,
    Program,
    Scope,
    default_scopes,
)
from knowledge.home import DEFAULT_HOME, Home

PATH: Final = "/mcp"


@click.command("install")
@click.option("--client", "client", required=True, type=click.Choice(list(PROGRAMS)))
@click.option("--write", is_flag=True, help="Put it into the program's file; a backup is kept.")
@click.option(
    "--url", metavar="URL", help="Connect over HTTP to the API at URL (else start a process)."
)
@click.option(
    "--stdio", is_flag=True, help="Start `knowledge mcp`, which asks the API (the default)."
)
@click.option(
    "--scope",
    type=click.Choice(["project", "user"]),
    help=f"Whose file it is [{default_scopes()}].",
)
def install_command(
    client: str, write: bool, url: str | None, stdio: bool, scope: str | None
) -> None:
    """Show the configuration of an agent's program, or write it.

    The API key is never part of it: the program takes it from the variable KNOWLEDGE_API_KEY.
    """
    if url is not None and stdio:
        raise click.UsageError("--url and --stdio exclude each other")
    program = PROGRAMS[client]
    chosen = _scope(client, program, scope)
    path = program.path(chosen, Path.cwd())
    entry = program.entry(_launch(url, chosen))
    if not write:
        click.echo(f"# {path}", err=True)
        click.echo(written(path, program.section, NAME, entry), nl=False)
        return
    backup = merge(path, program.section, NAME, entry)
    kept = f" (the file as it was: {backup})" if backup else ""
    click.echo(f"{path} has the server {NAME}{kept}.")
    click.echo(
        f"Set {VARIABLE} where {client} is started: knowledge keys create makes a key.", err=True
    )


def _scope(client: str, program: Program, scope: str | None) -> Scope:
    chosen = cast(Scope, scope) if scope else program.default_scope
    if chosen not in program.files:
        raise click.UsageError(
            f"{client} has no file of scope {chosen}: use {program.default_scope}"
        )
    return chosen


def _launch(url: str | None, scope: Scope) -> Launch:
    if url is not None:
        place = _address(url)
        return Launch(place if urlsplit(place).path else place + PATH, "", (), {})
    return Launch(None, _command(), ("mcp",), _environment(scope))


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise click.UsageError(f"{url} is no address: write http://HOST:PORT")
    return url.rstrip("/")


def _environment(scope: Scope) -> dict[str, str]:
    """What the process needs to find the API: the address that is set here, and this home.

    Warns where it would find none.
    """
    url = os.environ.get("KNOWLEDGE_URL")
    found = {"KNOWLEDGE_URL": _address(url)} if url else {}
    home = Home.locate()
    if not home.exists() and url:
        return found
    if not home.exists():
        click.echo(
            f"There is no installation at {home.root}: set KNOWLEDGE_HOME to the folder of yours, or"
            " KNOWLEDGE_URL to the address of its API, and install again.",
            err=True,
        )
        if not os.environ.get("KNOWLEDGE_HOME"):
            return found
    # Agents start it in the project's folder, where it looks for the home of that project.
    if scope == "project" and home.root == (Path.cwd() / DEFAULT_HOME).resolve():
        return found
    return {**found, "KNOWLEDGE_HOME": str(home.root)}


def _command() -> str:
    """The whole path of this installation's command: an agent's program has a PATH of its own."""
    own = Path(sys.executable).with_name(NAME)
    named = None if own.exists() else shutil.which(NAME)
    return str((Path(named) if named else own).absolute())
