"""The installation that the assets work on."""

import json
import platform
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import dagster as dg
from pydantic import Field, PrivateAttr

from knowledge.home import Home
from knowledge.runtime import Runtime, open_owner, open_runtime
from knowledge.stack.process import ProcessId
from knowledge.storage.postgres.database import Database
from knowledge.storage.postgres.lease import release_owner

PROCESS_TAG = ".dagster/knowledge-process"  # hidden in the UI by its prefix
"""Run tag: which process executes the run, so that a killed one can be told from a slow one."""


class KnowledgeHome(dg.ConfigurableResource[Any]):
    """Opens the installation once a run, when a step first needs it, and closes it at the end."""

    path: str | None = Field(
        default=None,
        description="Folder of the installation. None: the variable KNOWLEDGE_HOME of the process"
        " that runs, else .knowledge in its working folder.",
    )
    _opened: ExitStack = PrivateAttr(default_factory=ExitStack)
    _runtime: Runtime | None = PrivateAttr(default=None)

    @property
    def location(self) -> Home:
        return Home.locate(self.path)

    @property
    def runtime(self) -> Runtime:
        """The opened installation. Raises `Unavailable` errors, which a step retries."""
        if self._runtime is None:
            self._runtime = self._opened.enter_context(open_runtime(self.location))
        return self._runtime

    @contextmanager
    def owner_database(self) -> Iterator[Database]:
        """PostgreSQL alone, for what must stay light. Raises `DatabaseUnavailable`."""
        with open_owner(self.location) as owner:
            yield owner

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        if context.run and context.instance:
            context.instance.add_run_tags(context.run.run_id, {PROCESS_TAG: this_process()})

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        try:
            if self._runtime is not None and context.run:
                release_owner(self._runtime.owner, context.run.run_id)
        finally:
            self.close()

    def close(self) -> None:
        """Close what was opened; it opens again when it is needed again."""
        self._runtime = None
        self._opened.close()


def this_process() -> str:
    return json.dumps(ProcessId.of_self().to_json() | {"host": platform.node()})


def is_process_gone(tag: str) -> bool:
    """Whether the tagged process has ended; False for one of another machine, which we cannot see."""
    value = json.loads(tag)
    return value["host"] == platform.node() and not ProcessId.from_json(value).is_alive()
