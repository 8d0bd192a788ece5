"""``knowledge clients create|list|revoke|set``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from knowledge.cli import options
from knowledge.cli.output import block, print_json, table
from knowledge.cli.session import opened
from knowledge.model.scope import ADMIN, READ, WRITE
from knowledge.storage.postgres import catalogue

SHORT_SCOPES: Final = {"read": READ, "write": WRITE, "admin": ADMIN}
SHORT_NAMES: Final = {full: short for short, full in SHORT_SCOPES.items()}


@click.group("clients")
def clients_command() -> None:
    """Create, list, change and revoke the clients that may ask."""


@clients_command.command("create")
@options.tenant
@click.option("--projects", required=True, type=options.NamesType(), metavar="P1,P2")
@click.option("--groups", type=options.NamesType(), default=(), metavar="G1,G2")
@click.option(
    "--scopes",
    type=options.NamesType(),
    default=("read",),
    metavar="read,write,admin",
    help="What it may do (read).",
)
@options.as_json
def create(
    tenant: str,
    projects: tuple[str, ...],
    groups: tuple[str, ...],
    scopes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Create a client; its secret is shown only now."""
    full = tuple(SHORT_SCOPES.get(scope, scope) for scope in scopes)
    with opened(create=True) as runtime:
        client_id, secret = catalogue.create_client(
            runtime.owner, tenant, projects=projects, groups=groups, scopes=full
        )
    if as_json:
        print_json({"clientId": client_id, "clientSecret": secret})
        return
    lines = block(
        [
            ("client", client_id),
            ("secret", f"{secret}  (shown only now)"),
            ("tenant", tenant),
            ("projects", ", ".join(projects)),
            ("groups", ", ".join(groups) or "none"),
            ("scopes", ", ".join(full)),
        ]
    )
    click.echo(f"Created a client\n{lines}")


@clients_command.command("list", short_help="List the clients of a tenant.")
@options.tenant
@options.as_json
def list_(tenant: str, as_json: bool) -> None:
    """List the clients of a tenant; secrets are not kept and cannot be shown."""
    with opened() as runtime:
        clients = catalogue.list_clients(runtime.owner, tenant)
    if as_json:
        print_json({"clients": [_wire(client) for client in clients]})
    elif clients:
        rows = [_row(client) for client in clients]
        click.echo(table(("CLIENT", "PROJECTS", "GROUPS", "SCOPES", "STATE", "CREATED"), rows))
    else:
        click.echo(f"Tenant {tenant} has no client: knowledge clients create --tenant {tenant} …")


@clients_command.command("revoke")
@click.argument("client")
@options.as_json
def revoke(client: str, as_json: bool) -> None:
    """Revoke CLIENT for good; acts on its next request."""
    with opened() as runtime:
        catalogue.revoke_client(runtime.owner, client)
    if as_json:
        print_json({"clientId": client, "revoked": True})
    else:
        click.echo(f"Client {client} is revoked, from its next request on.")


@clients_command.command("set", short_help="Replace projects or groups of a client.")
@click.argument("client")
@click.option("--projects", type=options.NamesType(), metavar="P1,P2")
@click.option("--groups", type=options.NamesType(), metavar="G1,G2", help="Empty: no group.")
@options.as_json
def set_(
    client: str,
    projects: tuple[str, ...] | None,
    groups: tuple[str, ...] | None,
    as_json: bool,
) -> None:
    """Replace the projects or groups of CLIENT; acts on its next request."""
    if projects is None and groups is None:
        raise click.UsageError("say what to set: --groups G1,G2 or --projects P1,P2")
    with opened() as runtime:
        changed = catalogue.change_client(runtime.owner, client, groups=groups, projects=projects)
    if as_json:
        print_json(_wire(changed))
    else:
        groups_now = ", ".join(changed["groups"]) or "none"
        click.echo(
            f"Client {client}: projects {', '.join(changed['projects'])}; groups {groups_now};"
            " from its next request on."
        )


def _row(client: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        client["client_id"],
        ",".join(client["projects"]),
        ",".join(client["groups"]) or "-",
        ",".join(SHORT_NAMES.get(scope, scope) for scope in client["scopes"]),
        "revoked" if client["revoked_at"] else "active",
        f"{client['created_at']:%Y-%m-%d %H:%M}",
    )


def _wire(client: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "clientId": client["client_id"],
        "tenantId": client["tenant_id"],
        "projects": list(client["projects"]),
        "groups": list(client["groups"]),
        "scopes": list(client["scopes"]),
        "createdAt": client["created_at"].isoformat(),
        "revokedAt": client["revoked_at"].isoformat() if client["revoked_at"] else None,
    }
