"""``knowledge memory recall`` and ``offload``: the commands that coding agents call as hooks.

An agent waits for its hooks and may take their failure for a veto: both end in time and with exit
code 0 whatever happens, and their output is never anything but what the agent expects.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click

from knowledge.cli.memory.deadline import (
    Clock,
    Stopped,
    TimedOut,
    open_standard_streams,
    stoppable,
    within,
)
from knowledge.cli.memory.hook_payloads import (
    EMPTY,
    HookPayload,
    context_answer,
    parse_payload,
    read_payload,
)
from knowledge.cli.memory.hook_status import FAILED, SPOOLED, HookOutcome, record
from knowledge.cli.memory.memory_service import MemoryService, address_of, key_of
from knowledge.cli.memory.state import StateFolder
from knowledge.errors import InvalidInput, KnowledgeError
from knowledge.home import Home

# Counted from the start of the process. The agents' own limits are 5 and 2 s; what is asked of the
# service ends earlier, so that there is time to say how it went.
RECALL_LIMIT_S: Final = 4.5
RECALL_ASKING_S: Final = 4.2
OFFLOAD_LIMIT_S: Final = 1.8
OFFLOAD_ASKING_S: Final = 1.4

_TELLING_S: Final = 0.1
_KEEPING_S: Final = 0.4
_CLIENT: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


@dataclass(slots=True)
class _Attempt:
    """How far a hook has come, for whoever must end it."""

    clock: Clock = field(default_factory=Clock)
    stage: str = "starting"
    payload: HookPayload | None = None

    def receive(self, client: str | None) -> HookPayload:
        """Read the payload. Raises `InvalidInput`."""
        self.stage = "reading standard input"
        if client is not None and not _CLIENT.fullmatch(client):
            raise InvalidInput("--client must be a name like claude-code")
        if sys.stdin.isatty():
            raise InvalidInput("standard input must be the JSON that a coding agent gives its hook")
        self.payload = parse_payload(read_payload(sys.stdin.fileno()), client)
        return self.payload

    def answer(self, context: str = "") -> str:
        return context_answer(self.payload, context) if self.payload else EMPTY

    @property
    def caller(self) -> dict[str, str | None]:
        named = self.payload
        return {
            "client": named.client if named else None,
            "event": named.event if named else None,
            "source": named.source if named else None,
        }


_Work = Callable[[_Attempt], tuple[str, HookOutcome]]


class _HookCommand(click.Command):
    """Wrong usage is told and ends with 0: exit code 2 of a hook can block the agent."""

    def make_context(self, *arguments: Any, **named: Any) -> click.Context:
        try:
            return super().make_context(*arguments, **named)
        except click.UsageError as error:
            reason = error.format_message()

        def refuse(_attempt: _Attempt) -> tuple[str, HookOutcome]:
            raise InvalidInput(reason)

        _run(str(self.name), OFFLOAD_LIMIT_S, refuse)
        raise click.exceptions.Exit(0)


def _addressed(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say where the service is and who asks."""
    for option in (
        click.option("--client", help="The agent's name [told by the payload's shape]."),
        click.option("--graph", envvar="KNOWLEDGE_GRAPH", help="[KNOWLEDGE_GRAPH, else main]"),
        click.option("--project", envvar="KNOWLEDGE_PROJECT", help="[KNOWLEDGE_PROJECT]"),
        click.option(
            "--key-file",
            type=click.Path(path_type=Path),
            help="File with the API key [else KNOWLEDGE_API_KEY].",
        ),
        click.option(
            "--url",
            envvar="KNOWLEDGE_URL",
            help="The query service [KNOWLEDGE_URL, else the running stack of KNOWLEDGE_HOME].",
        ),
    ):
        command = option(command)
    return command


@click.command("recall", cls=_HookCommand)
@_addressed
@click.option(
    "--max-tokens",
    type=click.IntRange(50, 2000),
    help="Of the facts that are printed [2000; with a prompt 800].",
)
@click.option("--git/--no-git", default=True, help="Ask with branch and commit subjects too.")
def recall_command(
    url: str | None,
    key_file: Path | None,
    project: str | None,
    graph: str | None,
    client: str | None,
    max_tokens: int | None,
    git: bool,
) -> None:
    """Hook of SessionStart and UserPromptSubmit: put what is known before the agent.

    Takes the agent's hook JSON on standard input and prints what the agent expects, within 5 s.
    """

    def work(attempt: _Attempt) -> tuple[str, HookOutcome]:
        # An agent waits: each hook imports what it alone needs.
        from knowledge.cli.memory.recalling import recall

        payload = attempt.receive(client)
        service = _service(url, key_file, project, graph)
        attempt.stage = f"asking {service.address}"
        timeout_s = RECALL_ASKING_S - attempt.clock.seconds()
        context, outcome = recall(
            payload, service, timeout_s=timeout_s, with_git=git, max_tokens=max_tokens
        )
        return attempt.answer(context), outcome

    _run("recall", RECALL_LIMIT_S, work)


@click.command("offload", cls=_HookCommand)
@_addressed
@click.option(
    "--spool/--no-spool",
    envvar="KNOWLEDGE_HOOKS_SPOOL",
    default=False,
    help="Keep turns in the state folder while the service is away [KNOWLEDGE_HOOKS_SPOOL].",
)
def offload_command(
    url: str | None,
    key_file: Path | None,
    project: str | None,
    graph: str | None,
    client: str | None,
    spool: bool,
) -> None:
    """Hook of PreCompact, SessionEnd and Stop: hand over turns that leave the agent's context.

    Takes the agent's hook JSON on standard input; sends what is older than the last 10 exchanges of
    its transcript and was not sent before, within 2 s.
    """

    def work(attempt: _Attempt) -> tuple[str, HookOutcome]:
        # As above.
        from knowledge.cli.memory.offloading import Offloader

        payload = attempt.receive(client)
        service = _service(url, key_file, project, graph)
        attempt.stage = f"reading the transcript and asking {service.address}"
        offloader = Offloader(
            service,
            StateFolder.locate(os.environ),
            seconds_left=lambda: OFFLOAD_ASKING_S - attempt.clock.seconds(),
            may_spool=spool,
        )
        return attempt.answer(), offloader.offload(payload)

    _run("offload", OFFLOAD_LIMIT_S, work)


def _service(
    url: str | None, key_file: Path | None, project: str | None, graph: str | None
) -> MemoryService:
    key = key_of(os.environ, key_file)
    if url:
        return MemoryService(url, key, project, graph)
    home = Home.locate()
    return MemoryService(address_of(home), key, project, graph, home.root)


def _run(hook: str, limit_s: float, work: _Work) -> None:
    """Do the work, answer the agent and keep the status. Returns or ends the process with 0."""
    open_standard_streams()
    attempt = _Attempt()
    is_over = False
    with stoppable() as shield:
        try:
            answer, outcome = _attempted(attempt, limit_s, work)
        except Stopped:
            is_over, reason = True, f"was told to end while {attempt.stage}"
        except TimedOut:
            is_over, reason = True, f"gave up after {limit_s} s while {attempt.stage}"
        shield()
        if is_over:
            answer, outcome = attempt.answer(), HookOutcome(FAILED, reason)
        is_told = _finish(hook, attempt, answer, outcome, limit_s=limit_s)
    if is_over or not is_told:
        os._exit(0)  # a thread may still hang, and would be waited for


def _attempted(attempt: _Attempt, limit_s: float, work: _Work) -> tuple[str, HookOutcome]:
    try:
        return within(limit_s - attempt.clock.seconds(), lambda: work(attempt))
    except KnowledgeError as error:
        reason = error.message
    except (Stopped, TimedOut):
        raise
    except OSError as error:
        reason = f"{error.strerror or type(error).__name__} while {attempt.stage}"
    except Exception as error:
        reason = f"{type(error).__name__} while {attempt.stage}"
    return attempt.answer(), HookOutcome(FAILED, reason)


def _finish(
    hook: str, attempt: _Attempt, answer: str, outcome: HookOutcome, *, limit_s: float
) -> bool:
    """Tell the agent and keep the status; whether both ended in time."""

    def seconds_left() -> float:
        return max(_TELLING_S, limit_s - attempt.clock.seconds())

    is_told = outcome.outcome in (FAILED, SPOOLED)
    line = " ".join(f"knowledge memory {hook}: {outcome.reason}".split()) if is_told else None

    def keep() -> None:
        folder = StateFolder.locate(os.environ)
        seconds = attempt.clock.seconds()
        with suppress(OSError, RuntimeError):
            record(folder, hook, outcome, seconds=seconds, caller=attempt.caller)

    is_in_time = True
    steps = ((lambda: _tell(line, answer), limit_s), (keep, _KEEPING_S))
    for step, longest_s in steps:
        try:
            within(min(longest_s, seconds_left()), step)
        except TimedOut:
            is_in_time = False
    return is_in_time


def _tell(line: str | None, answer: str) -> None:
    """The answer on standard output and a line on standard error, where somebody reads them."""
    for stream, text in ((sys.stdout, answer), (sys.stderr, line)):
        if text is None:
            continue
        try:
            stream.write(text + "\n")
            stream.flush()
        except (OSError, ValueError):  # closed, or a full disk: what is buffered must go somewhere
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
