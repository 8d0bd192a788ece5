"""``knowledge keys create|list|revoke``: personal API keys for agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from knowledge.cli import options
from knowledge.cli.clients import SHORT_NAMES, SHORT_SCOPES
from knowledge.cli.output import block, one_line, print_json, table
from knowledge.cli.session import opened
from knowledge.security.keys import PREFIX, shown_prefix
from knowledge.storage.postgres import keys


@click.group("keys")
def keys_command() -> None:
    """Create, list and revoke personal API keys, for agents over MCP or HTTP."""


@keys_command.command("create")
@options.tenant
@options.project
@click.option("--name", required=True, metavar="N", help="Whose, and for what.")
@click.option(
    "--scopes",
    type=options.NamesType(),
    default=("read", "write"),
    metavar="read,write,admin",
    help="What it may do (read,write).",
)
@click.option("--groups", type=options.NamesType(), default=(), metavar="G1,G2")
@click.option("--days", type=int, metavar="N", help="Valid for N days (until it is revoked).")
@options.as_json
def create(
    tenant: str,
    project: str,
    name: str,
    scopes: tuple[str, ...],
    groups: tuple[str, ...],
    days: int | None,
    as_json: bool,
) -> None:
    """Create a key of one project; it is shown only now."""
    full = tuple(SHORT_SCOPES.get(scope, scope) for scope in scopes)
    with opened(create=True) as runtime:
        key, expires_at = keys.create_key(
            runtime.owner, tenant, project, name=name, scopes=full, groups=groups, days=days
        )
    expires = expires_at.isoformat() if expires_at else None
    if as_json:
        prefix = shown_prefix(key.client_id)
        print_json({"key": key.text, "prefix": prefix, "name": name, "expiresAt": expires})
        return
    lines = block(
        [
            ("key", f"{key.text}  (shown only now)"),
            ("name", name),
            ("tenant", tenant),
            ("project", project),
            ("groups", ", ".join(groups) or "none"),
            ("scopes", ", ".join(full)),
            ("expires", expires or "never"),
        ]
    )
    click.echo(
        f"Created a key\n{lines}\n"
        "An agent takes it from KNOWLEDGE_API_KEY: see `knowledge mcp install --help`."
    )


@keys_command.command("list", short_help="List the keys of a tenant.")
@options.tenant
@options.as_json
def list_(tenant: str, as_json: bool) -> None:
    """List the keys of a tenant; the keys themselves are not kept and cannot be shown."""
    with opened() as runtime:
        found = keys.list_keys(runtime.owner, tenant)
    if as_json:
        print_json({"keys": [_wire(key) for key in found]})
    elif found:
        header = ("NAME", "KEY", "PROJECT", "GROUPS", "SCOPES", "STATE", "EXPIRES")
        click.echo(table(header, [_row(key) for key in found]))
    else:
        click.echo(f"Tenant {tenant} has no key: knowledge keys create --tenant {tenant} …")


@keys_command.command("revoke")
@click.argument("key", metavar="PREFIX")
@options.as_json
def revoke(key: str, as_json: bool) -> None:
    """Revoke the key that is listed as PREFIX, for good; acts on its next request. The whole key
    does as well."""
    named = _without_secret(key)
    with opened() as runtime:
        prefix, was_revoked = keys.revoke_key(runtime.owner, named)
    if as_json:
        print_json({"prefix": prefix, "revoked": True, "wasRevoked": was_revoked})
    elif was_revoked:
        click.echo(f"Key {prefix} was revoked already.")
    else:
        click.echo(f"Key {prefix} is revoked, from its next request on.")


def _without_secret(key: str) -> str:
    """The prefix of a key or of what looks like one: a secret must not come back in a message."""
    start = PREFIX if key.startswith(PREFIX) else ""
    return start + key.removeprefix(PREFIX).partition("_")[0]


def _state(key: Mapping[str, Any]) -> str:
    if key["revoked_at"]:
        return "revoked"
    return "expired" if key["is_expired"] else "active"


def _row(key: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        one_line(key["name"], 40),
        shown_prefix(key["client_id"]),
        ",".join(key["projects"]),
        ",".join(key["groups"]) or "-",
        ",".join(SHORT_NAMES.get(scope, scope) for scope in key["scopes"]),
        _state(key),
        f"{key['expires_at']:%Y-%m-%d}" if key["expires_at"] else "never",
    )


def _wire(key: Mapping[str, Any]) -> dict[str, Any]:
    moments = {"createdAt": "created_at", "expiresAt": "expires_at", "revokedAt": "revoked_at"}
    return {
        "prefix": shown_prefix(key["client_id"]),
        "name": key["name"],
        "tenantId": key["tenant_id"],
        "projectId": key["projects"][0],
        "groups": list(key["groups"]),
        "scopes": list(key["scopes"]),
        "state": _state(key),
        **{name: key[column] and key[column].isoformat() for name, column in moments.items()},
    }
