"""What the verbs that ask for facts share: options, the caller, and a reader."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, TypeVar

import click

from knowledge.cli import options
from knowledge.cli.searching import require_caller
from knowledge.cli.session import opened
from knowledge.errors import InvalidInput
from knowledge.graph.querying import FactReader
from knowledge.graph.questions import Sieve
from knowledge.model.fact import Domain
from knowledge.model.scope import Caller, TrustTier
from knowledge.storage.postgres.database import AsyncDatabase

T = TypeVar("T")
Command = Callable[..., Any]


as_client = click.option("--as", "client", metavar="CLIENT", help="The client that asks.")
domains = click.option(
    "--domain",
    "domains",
    multiple=True,
    type=click.Choice([domain.value for domain in Domain]),
    metavar="D",
    help=f"Only this domain; repeatable: {', '.join(Domain)}.",
)
with_ids = click.option(
    "--ids",
    "with_ids",
    is_flag=True,
    help="Show the facts' ids, as retract and corrects take them.",
)
cursor = click.option("--cursor", metavar="C", help="Go on where a page ended; all else as before.")
direction = click.option(
    "--direction",
    type=click.Choice(["out", "in", "both"]),
    default="both",
    show_default=True,
    help="Follow facts from subject to object, against that, or both.",
)
_SIEVE = (
    domains,
    click.option("--namespace", metavar="N", help="Only this namespace."),
    click.option(
        "--as-of",
        type=options.TimeType(),
        metavar="TIME",
        help="What holds then: 2024, 2024-05, 2024-05-01 or with a time (now).",
    ),
    click.option(
        "--between",
        nargs=2,
        type=options.TimeType(),
        metavar="FROM TO",
        help="What holds at some time from FROM on and before TO, instead.",
    ),
    click.option(
        "--known-at",
        type=options.TimeType(),
        metavar="TIME",
        help="What was believed then (now).",
    ),
    click.option(
        "--min-trust",
        type=click.Choice([tier.value for tier in TrustTier]),
        help="Only facts of at least this tier.",
    ),
    click.option("--verified/--unverified", default=None, help="Only facts that are, or are not."),
    click.option("--source", "source_id", metavar="S", help="Only what this source says."),
    click.option("--suggestions", is_flag=True, help="Inferred facts that nobody confirmed, too."),
)


def sieve_options(command: Command) -> Command:
    """The options of `read_sieve`."""
    for option in reversed(_SIEVE):
        command = option(command)
    return command


def read_sieve(
    *,
    domains: tuple[str, ...],
    namespace: str | None,
    as_of: datetime | None,
    between: tuple[datetime, datetime] | None,
    known_at: datetime | None,
    min_trust: str | None,
    verified: bool | None,
    source_id: str | None,
    suggestions: bool,
) -> Sieve:
    """Raises `InvalidInput` for a window that ends before it begins."""
    if between is not None and between[0] >= between[1]:
        raise InvalidInput("--between FROM TO: TO is not later than FROM")
    return Sieve(
        domains=tuple(Domain(domain) for domain in dict.fromkeys(domains)),
        namespace=namespace,
        as_of=as_of,
        between=between,
        as_known_at=known_at,
        min_trust=TrustTier(min_trust) if min_trust else None,
        verified=verified,
        source_id=source_id,
        suggestions=suggestions,
    )


def ask(
    tenant_id: str,
    client_id: str | None,
    question: Callable[[FactReader, Caller], Awaitable[T]],
) -> T:
    """The answer to one question in the home's graph, asked as the client."""

    async def asked(url: str, caller: Caller) -> T:
        database = AsyncDatabase(url)
        await database.open()
        try:
            return await question(FactReader(database), caller)
        finally:
            await database.close()

    with opened() as runtime:
        caller = require_caller(runtime, tenant_id, client_id)
        return asyncio.run(asked(runtime.urls.app_url, caller))
