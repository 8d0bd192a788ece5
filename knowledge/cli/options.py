"""Options that several verbs share, and how their values are read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, get_args

import click

from knowledge.errors import InvalidInput
from knowledge.model.collection import CollectionKind
from knowledge.model.fact import parse_moment
from knowledge.model.scope import parse_acl

EVERYONE: Final = "everyone"
NOBODY: Final = "nobody"

NO_PROFILE: Final = "none"

tenant = click.option("--tenant", required=True, metavar="T", help="Tenant.")
project = click.option("--project", required=True, metavar="P", help="Project.")
collection = click.option("--collection", required=True, metavar="C", help="Collection.")
kind = click.option(
    "--kind",
    type=click.Choice(get_args(CollectionKind)),
    help="Of a new collection: documents, or turns of a conversation.  [default: documents]",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def named_profile(profile: str) -> str | None:
    """The embedding profile that ``--profile`` names; None for no model."""
    return None if profile == NO_PROFILE else profile


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
    return click.option("--wait", is_flag=True, help="Return when the new revision serves.")(
        command
    )


@dataclass(frozen=True, slots=True)
class ReadBy:
    """An ACL as it was given: ``entries`` is None for everyone, () for nobody."""

    entries: tuple[str, ...] | None


class AclType(click.ParamType[Any]):
    """``everyone``, ``nobody``, or entries ``group:x,user:y``; a `ReadBy`."""

    name = "acl"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> ReadBy:
        if value == EVERYONE:
            return ReadBy(None)
        if value == NOBODY:
            return ReadBy(())
        try:
            return ReadBy(parse_acl([entry.strip() for entry in value.split(",")]))
        except InvalidInput as error:
            self.fail(f"{error.message}, or everyone, or nobody", param, ctx)


acl = click.option(
    "--acl",
    required=True,
    type=AclType(),
    metavar="ACL",
    help="group:x,user:y | everyone | nobody.",
)


class NamesType(click.ParamType[Any]):
    """Names separated by commas; a tuple without blanks and repetitions."""

    name = "names"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        if not isinstance(value, str):
            return tuple(value)
        return tuple(dict.fromkeys(name for part in value.split(",") if (name := part.strip())))


class TimeType(click.ParamType[Any]):
    """A time as people write it: 2024, 2024-05, 2024-05-01, or with a time of day; in UTC."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            moment = parse_moment(value, "the time")
        except InvalidInput as error:
            self.fail(error.message, param, ctx)
        assert moment is not None
        return moment.at
