"""A group of commands known by name and summary; the module of the one called is imported."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import ClassVar

import click


class LazyGroup(click.Group):
    """``verbs`` name the command of each verb as ``module:attribute``, in the order shown."""

    verbs: ClassVar[Mapping[str, str]]
    summaries: ClassVar[Mapping[str, str]]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.verbs:
            return None
        module, _, name = self.verbs[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, self.summaries.get(verb, "")) for verb in self.verbs])
