"""``knowledge migrate``."""

from __future__ import annotations

import click

from knowledge.cli import options
from knowledge.cli.output import print_json
from knowledge.cli.session import progress
from knowledge.errors import NotFound
from knowledge.home import LAYOUT_VERSION, Home
from knowledge.settings import load_settings
from knowledge.stack.servers import running_servers
from knowledge.storage.postgres.bootstrap import prepare_database
from knowledge.storage.postgres.migrations import HEAD


@click.command("migrate")
@options.as_json
def migrate_command(as_json: bool) -> None:
    """Bring the home's layout and the database's schema to this program's versions.

    Stop the stack first: programs of the old version do not work with the new schema.
    """
    home = Home.locate()
    if not home.exists():
        raise NotFound(f"there is no installation in {home.root}: set KNOWLEDGE_HOME")
    home.require_version()
    settings = load_settings(home)
    with running_servers(home, settings, progress()) as servers:
        found = prepare_database(
            servers.database_admin_url, home.database_key, upgrade=True
        ).found_schema
    if as_json:
        print_json({"layoutVersion": LAYOUT_VERSION, "schemaVersion": HEAD, "schemaBefore": found})
    elif found == HEAD:
        click.echo(f"Nothing to do: layout {LAYOUT_VERSION}, schema {HEAD}.")
    else:
        click.echo(f"Layout {LAYOUT_VERSION}, schema {found or 'none'} → {HEAD}.")
