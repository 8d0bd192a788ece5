"""``knowledge memory …``: one table of verbs, each imported when it is used.

A hook starts on every session of an agent: the verbs it uses import neither drivers, models nor
pydantic.
"""

from __future__ import annotations

from typing import Final

import click

from knowledge.cli.lazy import LazyGroup

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


class _MemoryGroup(LazyGroup):
    verbs = VERBS
    summaries = SUMMARIES


@click.group("memory", cls=_MemoryGroup)
def memory_command() -> None:
    """The memory of coding agents: what their hooks recall and offload, and its care."""
