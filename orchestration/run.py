"""Run a job for one collection, in this process, on the home's Dagster instance.

``python -m orchestration.run --partition TENANT.COLLECTION [--job publish|rebuild|collect]
[--rebuild ID] [--home HOME] [--timeout S]``

For a machine where no Dagster daemon runs; beside one it is safe too, the collection's lease
lets one run at a time through. Exits with 0 on success, else with 1 and one line on stderr.
"""

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import dagster as dg

from knowledge.errors import KnowledgeError
from knowledge.home import Home
from knowledge.model.identity import split_partition_key
from knowledge.runtime import open_runtime
from knowledge.stack.dagster_instance import DATABASE_VARIABLE, write_instance_config
from orchestration.definitions import defs
from orchestration.defs.generations.assets import collect_job
from orchestration.defs.generations.jobs import rebuild_generation, rebuild_job
from orchestration.defs.jobs import publish
from orchestration.defs.partitions import collections

JOBS = (publish.name, rebuild_job.name, collect_job.name)
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class RunFailed(KnowledgeError):
    """The run failed."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    home = Home.locate(options.home)
    # Dagster and the resources of the run find the installation by these.
    os.environ["KNOWLEDGE_HOME"] = str(home.root)
    os.environ["DAGSTER_HOME"] = str(home.dagster_dir)
    try:
        with _interrupted_after(options.timeout):
            run_job(
                home,
                options.partition,
                job=options.job,
                rebuild_id=options.rebuild,
                quiet=not options.verbose,
            )
    except KnowledgeError as error:
        print(f"knowledge: {error.message}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("knowledge: interrupted; what is pending stays pending", file=sys.stderr)
        return 1
    return 0


def run_job(
    home: Home,
    partition: str,
    *,
    job: str = publish.name,
    rebuild_id: str | None = None,
    quiet: bool = True,
) -> str:
    """Run the job to its end; returns the run's id. Raises `RunFailed` with the step's reason."""
    tenant_id, slug = split_partition_key(partition)
    with open_runtime(home) as runtime:
        partition = runtime.collection(tenant_id, slug).partition
        os.environ[DATABASE_VARIABLE] = runtime.urls.dagster_url
        write_instance_config(home)
        with dg.DagsterInstance.from_config(str(home.dagster_dir)) as instance:
            instance.add_dynamic_partitions(str(collections.name), [partition])
            result = defs.resolve_job_def(job).execute_in_process(
                instance=instance,
                partition_key=partition,
                run_config=_run_config(rebuild_id, quiet=quiet),
                raise_on_error=False,
            )
    if not result.success:
        raise RunFailed(_reason(result), run_id=result.run_id)
    return result.run_id


def _run_config(rebuild_id: str | None, *, quiet: bool) -> dict[str, Any]:
    config: dict[str, Any] = dict(QUIET) if quiet else {}
    if rebuild_id is not None:
        config["ops"] = {rebuild_generation.name: {"config": {"rebuild_id": rebuild_id}}}
    return config


def _reason(result: dg.ExecuteInProcessResult) -> str:
    for event in result.all_events:
        if event.is_step_failure:
            failure = event.step_failure_data
            if failure.user_failure_data and failure.user_failure_data.description:
                return failure.user_failure_data.description
            if failure.error:
                cause = failure.error.cause or failure.error
                return cause.message.strip().splitlines()[0]
    return f"run {result.run_id} was interrupted before its end; what is pending stays pending"


@contextmanager
def _interrupted_after(seconds: float | None) -> Iterator[None]:
    """Interrupt the run as Ctrl-C does when the time is over."""
    if seconds is None:
        yield
        return
    expired = False

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        nonlocal expired
        expired = True
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGALRM, interrupt)
    # Again every second: an interrupt that meets a callback of the collector is swallowed.
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    except (KnowledgeError, KeyboardInterrupt) as error:
        if expired:
            raise RunFailed(
                f"not finished within {seconds:g} s: what is pending stays pending, run it again"
            ) from error
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m orchestration.run",
        description="Index what is pending in one collection (or rebuild, or collect it), in this"
        " process.",
    )
    parser.add_argument("--home", help="folder of the installation; default KNOWLEDGE_HOME")
    parser.add_argument("--partition", required=True, metavar="TENANT.COLLECTION")
    parser.add_argument("--job", choices=JOBS, default=publish.name)
    parser.add_argument("--rebuild", metavar="ID", help="the rebuild that job rebuild works on")
    parser.add_argument("--timeout", type=float, metavar="S", help="seconds; default: none")
    parser.add_argument("--verbose", action="store_true", help="show Dagster's events")
    return parser


if __name__ == "__main__":
    sys.exit(main())
