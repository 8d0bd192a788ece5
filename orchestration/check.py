"""Run the checks of collections on the real servers, without Dagster.

``python -m orchestration.check [--home HOME] [--tenant T] [--collection C] [--suite NAME]…
[--select PATH]…`` prints one JSON object ``{"checks": […]}``. Exits with 0, also for warnings;
with 1 when a check failed or could not run, or for one line on stderr; with 2 for wrong usage.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from dbt_like_checks import InvalidChecks, load_checks
from knowledge.errors import IndexUnavailable, KnowledgeError, NotFound
from knowledge.home import Home
from knowledge.model.collection import Collection
from knowledge.runtime import Runtime, open_runtime
from knowledge.storage.postgres.catalogue import list_collections
from orchestration.checking import (
    SUITES,
    Looked,
    not_run,
    run_files,
    run_suite,
    suite_checks,
)

SELECTED = "selected"
"""The name of the suite that the files of ``--select`` are."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        if options.select:
            load_checks(options.select)  # wrong usage, told before a server is started
        with open_runtime(Home.locate(options.home)) as runtime:
            found = list(_check(runtime, options))
    except InvalidChecks as error:
        print(f"knowledge: {error}", file=sys.stderr)
        return 2
    except KnowledgeError as error:
        print(f"knowledge: {error.message}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("knowledge: interrupted", file=sys.stderr)
        return 1
    print(json.dumps({"checks": [_wire(*entry) for entry in found]}, ensure_ascii=False))
    return 1 if any(looked.outcome.is_blocking for _, _, looked in found) else 0


def _check(
    runtime: Runtime, options: argparse.Namespace
) -> Iterator[tuple[Collection, str, Looked]]:
    suites = options.suite or ([] if options.select else list(SUITES))
    for collection in _collections(runtime, options.tenant, options.collection):
        for suite in suites:
            for looked in _suite(runtime, collection, suite):
                yield collection, suite, looked
        if options.select:
            for looked in run_files(runtime, collection, options.select):
                yield collection, SELECTED, looked


def _suite(runtime: Runtime, collection: Collection, suite: str) -> list[Looked]:
    try:
        return run_suite(runtime, collection, suite)
    except IndexUnavailable as error:
        return not_run(suite_checks(suite), collection.partition, error.message)


def _collections(runtime: Runtime, tenant: str | None, slug: str | None) -> list[Collection]:
    """Those that are named, or all. Raises `NotFound` for a name that names none."""
    if tenant is not None and slug is not None:
        return [runtime.collection(tenant, slug)]
    found = list_collections(runtime.owner, tenant)
    if tenant is not None and not found:
        raise NotFound(f"there is no tenant {tenant} with a collection")
    return found


def _wire(collection: Collection, suite: str, looked: Looked) -> dict[str, Any]:
    outcome = looked.outcome
    return {
        "tenantId": collection.tenant_id,
        "collection": collection.slug,
        "suite": suite,
        "name": outcome.check.name,
        "description": outcome.check.description,
        "severity": outcome.check.severity.value,
        "status": outcome.status.value,
        "failingRows": outcome.failures,
        "sample": [dict(row) for row in outcome.sample],
        "reason": outcome.reason,
        "subject": looked.subject,
        "seconds": round(outcome.seconds, 3),
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m orchestration.check", description="Check collections as a whole."
    )
    parser.add_argument("--home", help="folder of the installation; default KNOWLEDGE_HOME")
    parser.add_argument("--tenant", metavar="T", help="default: every tenant")
    parser.add_argument("--collection", metavar="C", help="default: every collection")
    parser.add_argument("--suite", action="append", choices=SUITES, help="default: all")
    parser.add_argument("--select", action="append", metavar="PATH", help="checks of your own")
    return parser


if __name__ == "__main__":
    sys.exit(main())
