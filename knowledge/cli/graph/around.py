"""``knowledge graph expand`` and ``paths``."""

from __future__ import annotations

from typing import Any

import click

from knowledge.cli import options
from knowledge.cli.graph import asking
from knowledge.cli.graph.around_text import paths_text, subgraph_text
from knowledge.cli.output import print_json
from knowledge.graph.expanding import expand, find_paths
from knowledge.graph.questions import (
    MAX_EDGES,
    MAX_FAN_OUT,
    MAX_HOPS,
    MAX_NODES,
    MAX_PATH_HOPS,
    MAX_PATHS,
    Direction,
    Expansion,
    PathQuestion,
)
from knowledge.graph.wire import paths_to_wire, subgraph_to_wire


@click.command("expand", short_help="What is around entities, as a tree.")
@click.argument("entities", nargs=-1, required=True, metavar="ENTITY…")
@options.tenant
@options.project
@asking.as_client
@click.option("--hops", type=click.IntRange(1, MAX_HOPS), default=1, show_default=True)
@asking.direction
@click.option("--predicate", "predicates", multiple=True, metavar="P", help="Only; repeatable.")
@asking.sieve_options
@click.option("--max-nodes", type=click.IntRange(1, MAX_NODES), default=200, show_default=True)
@click.option("--max-edges", type=click.IntRange(1, MAX_EDGES), default=500, show_default=True)
@click.option(
    "--fan-out",
    type=click.IntRange(1, MAX_FAN_OUT),
    default=50,
    show_default=True,
    help="Facts followed at an entity and direction, newest first.",
)
@options.as_json
def expand_command(
    entities: tuple[str, ...],
    tenant: str,
    project: str,
    client: str | None,
    hops: int,
    direction: Direction,
    predicates: tuple[str, ...],
    max_nodes: int,
    max_edges: int,
    fan_out: int,
    as_json: bool,
    **sieve: Any,
) -> None:
    """Facts up to some hops away from each ENTITY, never through one the client may not see."""
    question = Expansion(
        project_id=project,
        entities=entities,
        hops=hops,
        direction=direction,
        predicates=predicates,
        sieve=asking.read_sieve(**sieve),
        max_nodes=max_nodes,
        max_edges=max_edges,
        fan_out=fan_out,
    )
    graph = asking.ask(tenant, client, lambda reader, caller: expand(reader, caller, question))
    if as_json:
        print_json(subgraph_to_wire(graph))
    else:
        click.echo(subgraph_text(graph, hops))


@click.command("paths", short_help="How two entities are connected.")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@options.tenant
@options.project
@asking.as_client
@click.option("--max-hops", type=click.IntRange(1, MAX_PATH_HOPS), default=4, show_default=True)
@asking.direction
@asking.sieve_options
@click.option("--limit", type=click.IntRange(1, MAX_PATHS), default=10, show_default=True)
@options.as_json
def paths_command(
    source: str,
    target: str,
    tenant: str,
    project: str,
    client: str | None,
    max_hops: int,
    direction: Direction,
    limit: int,
    as_json: bool,
    **sieve: Any,
) -> None:
    """The shortest chains of facts between two entities, all valid at the time asked about."""
    question = PathQuestion(
        project_id=project,
        source=source,
        target=target,
        max_hops=max_hops,
        direction=direction,
        sieve=asking.read_sieve(**sieve),
        limit=limit,
    )
    found = asking.ask(tenant, client, lambda reader, caller: find_paths(reader, caller, question))
    if as_json:
        print_json(paths_to_wire(found))
    else:
        click.echo(paths_text(found, question))
