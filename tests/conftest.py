"""Real servers for the whole suite: one home a worker, one tenant a test."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from knowledge.home import Home
from knowledge.runtime import Runtime, open_runtime
from knowledge.settings import load_settings
from knowledge.stack.servers import running_servers
from knowledge.storage.postgres import catalogue

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def home() -> Iterator[Home]:
    """A home of this worker's own with running servers; the path is short for its sockets."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    folder = Path(tempfile.mkdtemp(prefix=f"kn-{worker}-", dir="/tmp"))
    made = Home(folder)
    made.prepare()
    try:
        with running_servers(made, load_settings(made, {})):
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def runtime(home: Home) -> Iterator[Runtime]:
    with open_runtime(home) as opened:
        yield opened


@pytest.fixture
def tenant(runtime: Runtime) -> str:
    """A tenant nobody else uses, with a project ``p1``."""
    tenant_id = f"t{next(_numbers)}-{os.getpid()}"
    catalogue.ensure_project(runtime.owner, tenant_id, "p1")
    return tenant_id
