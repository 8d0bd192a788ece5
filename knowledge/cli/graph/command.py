"""``knowledge graph …``: the verbs of the temporal graph."""

from __future__ import annotations

from typing import Final

import click

from knowledge.cli.graph.around import expand_command, paths_command
from knowledge.cli.graph.asserting import assert_command
from knowledge.cli.graph.entities import merge_command, merges_command
from knowledge.cli.graph.history import history_command
from knowledge.cli.graph.ontology import ontology_command
from knowledge.cli.graph.query import query_command
from knowledge.cli.graph.settling import infer_command, retract_command, suggestions_command
from knowledge.cli.graph.sources import sources_command

COMMANDS: Final[tuple[click.Command, ...]] = (
    query_command,
    expand_command,
    paths_command,
    history_command,
    assert_command,
    retract_command,
    infer_command,
    suggestions_command,
    ontology_command,
    merge_command,
    merges_command,
    sources_command,
)


class _InOrder(click.Group):
    """Lists its verbs in the order they are used, not by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group("graph", cls=_InOrder)
def graph_command() -> None:
    """Facts and when they hold: assert them, ask for them, settle what they mean."""


for _command in COMMANDS:
    graph_command.add_command(_command)
