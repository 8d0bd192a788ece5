"""A process that does one step on one collection, to be killed: ``publish|rebuild|collect``.

``python -m tests.crashes.worker STEP TENANT COLLECTION`` on the home of KNOWLEDGE_HOME. It runs
what the Dagster jobs run, without Dagster's seconds of start-up.
"""

from __future__ import annotations

import os
import sys

from knowledge.home import Home
from knowledge.indexing.collecting import collect
from knowledge.indexing.rebuilding import rebuild
from knowledge.runtime import Runtime, open_runtime
from knowledge.storage.postgres import rebuilds
from tests.publication import index


def _publish(runtime: Runtime, tenant_id: str, slug: str) -> None:
    index(runtime, runtime.collection(tenant_id, slug))


def _rebuild(runtime: Runtime, tenant_id: str, slug: str) -> None:
    wanted = rebuilds.latest(runtime.app, runtime.collection(tenant_id, slug))
    assert wanted is not None
    if wanted.state.is_active:  # one killed after its switch has nothing left to do
        rebuild(runtime, wanted, owner=f"rebuild-{os.getpid()}")


def _collect(runtime: Runtime, tenant_id: str, slug: str) -> None:
    collect(runtime, runtime.collection(tenant_id, slug), owner=f"collect-{os.getpid()}")


STEPS = {"publish": _publish, "rebuild": _rebuild, "collect": _collect}


def main(step: str, tenant_id: str, slug: str) -> None:
    with open_runtime(Home.locate()) as runtime:
        STEPS[step](runtime, tenant_id, slug)


if __name__ == "__main__":
    main(*sys.argv[1:])
