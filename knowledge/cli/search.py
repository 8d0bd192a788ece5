"""``knowledge search``."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, cast

import click

from knowledge.cli import options
from knowledge.cli.answer_text import answer_text
from knowledge.cli.output import print_json
from knowledge.cli.searching import opened_searcher, require_caller
from knowledge.cli.session import opened
from knowledge.errors import InvalidInput
from knowledge.model.scope import Caller, TrustTier
from knowledge.publishing.cleaning import parse_time
from knowledge.retrieval.answer import Answer
from knowledge.retrieval.request import DEFAULT_LEGS, MAX_TOP_K, Filters, Leg, SearchRequest
from knowledge.retrieval.wire import answer_to_wire
from knowledge.runtime import Runtime

Filter = Callable[[Filters, str], Filters]


def _kind(filters: Filters, value: str) -> Filters:
    if value not in ("document", "code"):
        raise click.BadParameter(f"kind is document or code, not {value!r}")
    return replace(filters, kind=cast(Any, value))


def _updated_after(filters: Filters, value: str) -> Filters:
    moment = parse_time(value)
    if moment is None:
        raise click.BadParameter(f"updated-after takes a time like 2026-05-01, not {value!r}")
    return replace(filters, updated_after=moment)


FILTERS: Final[Mapping[str, Filter]] = {
    "source": lambda filters, value: replace(filters, source_id=value),
    "path": lambda filters, value: replace(filters, path_prefix=value),
    "kind": _kind,
    "language": lambda filters, value: replace(filters, language=value),
    "tag": lambda filters, value: replace(filters, tags=(*filters.tags, value)),
    "updated-after": _updated_after,
}


class PinType(click.ParamType[Any]):
    """``COLLECTION=REVISION``."""

    name = "pin"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        name, _, number = value.partition("=")
        if not name or not number.isdecimal():
            self.fail(f"{value!r} is not COLLECTION=REVISION, such as docs=7", param, ctx)
        return name, int(number)


def _filters(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> Filters:
    """All of the filters; an unknown one is refused, for it would widen the query."""
    filters = Filters()
    given = set()
    for value in values:
        key, _, wanted = value.partition("=")
        if key not in FILTERS or not wanted:
            known = ", ".join(f"{name}=…" for name in FILTERS)
            raise click.BadParameter(f"{value!r} is not one of {known}")
        if key in given and key != "tag":
            raise click.BadParameter(f"{key} is given twice: a chunk cannot meet both")
        given.add(key)
        filters = FILTERS[key](filters, wanted)
    return filters


def _legs(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[Leg, ...]:
    if value is None:
        return DEFAULT_LEGS
    try:
        return tuple(dict.fromkeys(Leg(name.strip()) for name in value.split(",")))
    except ValueError as error:
        raise click.BadParameter(
            f"{value!r}: name legs of {', '.join(leg.value for leg in Leg)}"
        ) from error


@click.command("search")
@click.argument("query")
@options.tenant
@options.project
@click.option(
    "--collection", "collections", multiple=True, metavar="C", help="Only this one; repeatable."
)
@click.option("--top-k", type=click.IntRange(1, MAX_TOP_K), default=10, show_default=True)
@click.option("--as", "client", metavar="CLIENT", help="The client that asks.")
@click.option(
    "--pin", "pins", type=PinType(), multiple=True, metavar="C=R", help="Read revision R of C."
)
@click.option(
    "--legs",
    callback=_legs,
    metavar="LEGS",
    help="Of vector,fullText,metadata,graph,temporal (all).",
)
@click.option(
    "--as-of", type=options.TimeType(), metavar="TIME", help="When facts must hold (now)."
)
@click.option(
    "--between",
    type=options.TimeType(),
    nargs=2,
    metavar="FROM TO",
    help="Facts that hold in this window, half-open, for the leg temporal.",
)
@click.option(
    "--filter",
    "filters",
    callback=_filters,
    multiple=True,
    metavar="KEY=VALUE",
    help="source, path (a prefix), kind, language, tag, updated-after; all must hold.",
)
@click.option(
    "--min-trust",
    type=click.Choice([tier.value for tier in TrustTier]),
    help="Only sources of at least this tier.",
)
@click.option("--rerank", type=click.Choice(["reranker", "none"]), help="What orders the answers.")
@click.option("--explain", is_flag=True, help="Show the rank in every leg.")
@click.option(
    "--explain-chunk", type=click.UUID, metavar="ID", help="Say what became of this chunk."
)
@options.as_json
def search_command(
    query: str,
    tenant: str,
    project: str,
    collections: tuple[str, ...],
    top_k: int,
    client: str | None,
    pins: tuple[tuple[str, int], ...],
    legs: tuple[Leg, ...],
    filters: Filters,
    min_trust: str | None,
    rerank: str | None,
    explain: bool,
    explain_chunk: uuid.UUID | None,
    as_of: datetime | None,
    between: tuple[datetime, datetime] | None,
    as_json: bool,
) -> None:
    """Ask QUERY as a client: cited answers, and how every leg went."""
    if not query.strip():
        raise InvalidInput("query is empty")
    request = SearchRequest(
        query=query,
        project_id=project,
        collections=collections,
        top_k=top_k,
        filters=filters,
        min_trust=TrustTier(min_trust) if min_trust else None,
        legs=legs,
        pinned=dict(pins),
        rerank=cast(Any, rerank),
        explain=explain,
        explain_chunk=explain_chunk,
        as_of=as_of,
        between=between,
    )
    with opened() as runtime:
        caller = require_caller(runtime, tenant, client)
        answer = asyncio.run(_ask(runtime, caller, request))
    if as_json:
        print_json(answer_to_wire(answer))
    else:
        click.echo(answer_text(answer))


async def _ask(runtime: Runtime, caller: Caller, request: SearchRequest) -> Answer:
    async with opened_searcher(runtime, caller, request) as searcher:
        return await searcher.search(caller, request)
