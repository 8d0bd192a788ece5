"""Options that several verbs share, and how their values are read."""

from __future__ import annotations

from typing import Any, Final

import click

from knowledge.errors import InvalidInput
from knowledge.model.scope import parse_acl

EVERYONE: Final = "everyone"
NOBODY: Final = "nobody"

tenant = click.option("--tenant", required=True, metavar="T", help="Tenant.")
project = click.option("--project", required=True, metavar="P", help="Project.")
collection = click.option("--collection", required=True, metavar="C", help="Collection.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def waiting(command: Any) -> Any:
    """``--wait`` and ``--timeout``: return only when the new revision serves."""
    command = click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=1),
        default=600.0,
        show_default=True,
        metavar="S",
        help="Seconds that --wait waits at most.",
    )(command)
    return click.option("--wait", is_flag=True, help="Return when the new revision serves.")(command)


class AclType(click.ParamType):
    """``everyone``, ``nobody``, or entries ``group:x,user:y``; a tuple of the entries or None."""

    name = "acl"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...] | None:
        if value == EVERYONE:
            return None
        if value == NOBODY:
            return ()
        try:
            return parse_acl([entry.strip() for entry in value.split(",")])
        except InvalidInput as error:
            self.fail(f"{error.message}, or everyone, or nobody", param, ctx)


class NamesType(click.ParamType):
    """Names separated by commas; a tuple without blanks and repetitions."""

    name = "names"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        if not isinstance(value, str):
            return tuple(value)
        return tuple(dict.fromkeys(name for part in value.split(",") if (name := part.strip())))
