"""``knowledge mcp``: one agent over standard input and output; ``install`` sets up its program."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import click

from knowledge.cli.mcp.install import install_command

SERVER: Final = (sys.executable, "-P", "-m", "mcp_server")
"""``-P``: agents start it in folders of theirs, whose modules must not take the place of ours."""


@click.group("mcp", invoke_without_command=True)
@click.option("--url", metavar="URL", help="The API (KNOWLEDGE_URL, else this home's stack).")
@click.option(
    "--key-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File with the API key (else KNOWLEDGE_API_KEY).",
)
@click.option("--tools", metavar="T1,T2", help="Offer these tools only.")
@click.option("--read-only", is_flag=True, help="Offer no tool that writes.")
@click.pass_context
def mcp_command(
    ctx: click.Context,
    url: str | None,
    key_file: Path | None,
    tools: str | None,
    read_only: bool,
) -> None:
    """Serve one agent over MCP on standard input and output.

    Agents over HTTP connect to /mcp of the API instead.
    """
    if ctx.invoked_subcommand is not None:
        return
    given = {"--url": url, "--key-file": key_file, "--tools": tools}
    arguments = [f"{name}={value}" for name, value in given.items() if value is not None]
    if read_only:
        arguments.append("--read-only")
    os.execv(SERVER[0], [*SERVER, *arguments])


mcp_command.add_command(install_command)
