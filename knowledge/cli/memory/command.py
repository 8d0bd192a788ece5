"""``knowledge memory …``: one table of verbs, each imported when it is used.

A hook starts on every session of an agent: the verbs it uses import neither drivers, models nor
pydantic.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

import click

VERBS: Final = {
    "recall": "knowledge.cli.memory.hooks:recall_command",
    "offload": "knowledge.cli.memory.hooks:offload_command",
    "status": "knowledge.cli.memory.hook_status:status_command",
    "upsert": "knowledge.cli.memory.moving:upsert_command",
    "export": "knowledge.cli.memory.moving:export_command",
    "import": "knowledge.cli.memory.moving:import_command",
    "promote": "knowledge.cli.memory.care:promote_command",
    "verify": "knowledge.cli.memory.care:verify_command",
    "forget": "knowledge.cli.memory.care:forget_command",
}
SUMMARIES: Final = {
    "recall": "Hook: put what is known before a coding agent.",
    "offload": "Hook: hand over turns that leave a coding agent's context.",
    "status": "Show how the last recall and the last offload of the hooks went.",
    "upsert": "Tell facts of a .jsonl to a memory, redacted and bounded.",
    "export": "Write what a memory holds as a .jsonl.",
    "import": "Take an exported .jsonl into a memory.",
    "promote": "Share facts of one session with every session.",
    "verify": "Say as a person that facts are right.",
    "forget": "Take facts out of every store; prints a receipt.",
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module, _, name = VERBS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, SUMMARIES.get(verb, "")) for verb in VERBS])


@click.group("memory", cls=_LazyGroup)
def memory_command() -> None:
    """The memory of coding agents: what their hooks recall and offload, and its care."""
