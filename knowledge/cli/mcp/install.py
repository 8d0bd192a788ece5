"""``knowledge mcp install``: what an agent's program needs to know of this server."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final, cast
from urllib.parse import urlsplit

import click

from knowledge.cli.mcp.config_files import merge, written
from knowledge.cli.mcp.programs import NAME, PROGRAMS, VARIABLE, Launch, Program, Scope
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
@click.option("--scope", type=click.Choice(["project", "user"]), help="Whose file it is.")
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
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise click.UsageError(f"{url} is no address: write http://HOST:PORT")
        place = url.rstrip("/")
        return Launch(place if parts.path.rstrip("/") else place + PATH, "", (), {})
    home = Home.locate().root
    # Agents start it in the project's folder, where it looks for the home of that project.
    is_found = scope == "project" and home == (Path.cwd() / DEFAULT_HOME).resolve()
    return Launch(None, _command(), ("mcp",), {} if is_found else {"KNOWLEDGE_HOME": str(home)})


def _command() -> str:
    """The command as it is found by its name, else this installation's own file."""
    if shutil.which(NAME) is not None:
        return NAME
    return str(Path(sys.executable).with_name(NAME))
