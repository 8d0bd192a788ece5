"""The command ``knowledge``: one table of verbs, each imported when it is used."""

from __future__ import annotations

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import click

from knowledge.cli.lazy import LazyGroup
from knowledge.errors import KnowledgeError

VERBS: Final = {
    "up": "knowledge.cli.stack:up_command",
    "down": "knowledge.cli.stack:down_command",
    "status": "knowledge.cli.stack:status_command",
    "doctor": "knowledge.cli.stack:doctor_command",
    "publish": "knowledge.cli.publish:publish_command",
    "collections": "knowledge.cli.collections:collections_command",
    "sources": "knowledge.cli.sources:sources_command",
    "search": "knowledge.cli.search:search_command",
    "graph": "knowledge.cli.graph.command:graph_command",
    "memory": "knowledge.cli.memory.command:memory_command",
    "rebuild": "knowledge.cli.rebuild:rebuild_command",
    "check": "knowledge.cli.check:check_command",
    "clients": "knowledge.cli.clients:clients_command",
    "keys": "knowledge.cli.keys:keys_command",
    "mcp": "knowledge.cli.mcp.command:mcp_command",
    "eval": "knowledge.cli.eval:eval_command",
    "migrate": "knowledge.cli.migrate:migrate_command",
}
SUMMARIES: Final = {
    "up": "Start the stack and keep it running.",
    "down": "Stop the stack.",
    "status": "Show what runs and whether it is well.",
    "doctor": "Check this machine and this installation.",
    "publish": "Publish folders, files, git working trees or a .jsonl.",
    "collections": "Create, list and change collections.",
    "sources": "List sources, say who reads them, delete them.",
    "search": "Ask as a client: cited answers and how every leg went.",
    "graph": "Facts and when they hold: assert, ask, settle.",
    "memory": "The memory of coding agents: recall and offload as hooks.",
    "rebuild": "Build a collection's index anew while the old one serves.",
    "check": "Check whole collections: snapshots, vectors, index, PostgreSQL.",
    "clients": "Create, list, change and revoke the clients that may ask.",
    "keys": "Create, list and revoke personal API keys for agents.",
    "mcp": "Serve agents over MCP on standard input; set up their programs.",
    "eval": "Measure retrieval on known questions.",
    "migrate": "Bring the home and the database to this program's version.",
}


class VerbGroup(LazyGroup):
    """Tells one who misspells a verb which there are."""

    verbs = VERBS
    summaries = SUMMARIES

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            ctx.fail(f"no verb {args[0]!r}: use one of {', '.join(VERBS)}")
        return super().resolve_command(ctx, args)


def _print_version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    try:
        click.echo(f"knowledge {version('knowledge-retrieval')}")
    except PackageNotFoundError:
        click.echo("knowledge (not installed)")
    ctx.exit()


@click.group(cls=VerbGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Publish documents and code, index them as revisions, ask scoped and cited questions.

    State is kept in KNOWLEDGE_HOME (default: .knowledge in this folder).
    """


def main() -> None:
    """The outermost handler: every failure is one line and an exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command line. Exit code: 0 ok, 1 failed, 2 wrong usage, 130 interrupted."""
    try:
        code = cli.main(args=arguments, prog_name="knowledge", standalone_mode=False)
        sys.stdout.flush()
    except KnowledgeError as error:
        print(f"knowledge: {error.message}", file=sys.stderr)
        return 1
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.UsageError as error:
        print(_usage_line(error), file=sys.stderr)
        return 2
    except click.ClickException as error:
        print(f"knowledge: {error.format_message()}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, click.Abort):
        return 130
    except BrokenPipeError:  # the reader (a pager, head) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a full disk, a folder that may not be written, …
        place = f"{error.filename}: " if error.filename else ""
        print(f"knowledge: {place}{error.strerror or error}", file=sys.stderr)
        return 1
    return code if isinstance(code, int) else 0


def _usage_line(error: click.UsageError) -> str:
    verb = error.ctx.command_path if error.ctx else "knowledge"
    return f"{verb}: {' '.join(error.format_message().split())} (see {verb} --help)"


if __name__ == "__main__":
    main()
