"""The installation that is measured: a scratch home with real servers, and its collections."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

from benchmarks.corpus import GROUPS, Corpus
from knowledge.errors import InvalidInput, NotFound
from knowledge.home import Home
from knowledge.model.collection import Collection, CollectionKind
from knowledge.model.scope import READ, Caller
from knowledge.profiles.profile import Embedder
from knowledge.runtime import Runtime, open_runtime
from knowledge.stack.servers import embedded_processes
from knowledge.storage.postgres import catalogue

PROFILE: Final = "minilm@1"
PROJECT: Final = "p1"
TENANT_PREFIX: Final = "bench-"

Result = TypeVar("Result")


@dataclass(frozen=True)
class Installation:
    """An opened home. ``loop`` runs everything asynchronous: gRPC knows one loop a process.

    A backend has a tenant of its own, so one home serves benchmarks of several.
    """

    runtime: Runtime
    loop: asyncio.Runner
    say: Callable[[str], None]

    @property
    def backend(self) -> str:
        return self.runtime.index.name

    @property
    def tenant(self) -> str:
        return f"{TENANT_PREFIX}{self.backend}"

    @cached_property
    def corpus(self) -> Corpus:
        self.say("making the corpus's topics")
        return Corpus(self.embedder(PROFILE))

    @cached_property
    def client(self) -> tuple[str, str]:
        """Id and secret of a client that reads the project and is in one of the two groups."""
        return catalogue.create_client(
            self.runtime.owner, self.tenant, projects=[PROJECT], groups=GROUPS[:1], scopes=[READ]
        )

    @property
    def caller(self) -> Caller:
        return Caller(self.client[0], self.tenant, (READ,))

    def embedder(self, profile: str) -> Embedder:
        """A local profile's model; its definition is stored at first use."""
        return self.runtime.permitted_embedder(profile, allow_remote=False)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self.loop.run(work)

    def new_collection(
        self, slug: str, *, profile: str | None = PROFILE, kind: CollectionKind = "documents"
    ) -> Collection:
        """An empty collection ``slug``, or where that is taken ``slug-2`` and so on."""
        catalogue.ensure_project(self.runtime.owner, self.tenant, PROJECT)
        taken = {c.slug for c in catalogue.list_collections(self.runtime.owner, self.tenant)}
        names = (slug if number == 1 else f"{slug}-{number}" for number in range(1, 10_000))
        free = next(name for name in names if name not in taken)
        if profile is not None:
            self.embedder(profile)  # stores the profile's definition
        return catalogue.create_collection(
            self.runtime.app, self.tenant, PROJECT, free, embedding_profile=profile, kind=kind
        )

    def collection(self, slug: str) -> Collection | None:
        """The collection as it stands now, None where there is none."""
        with suppress(NotFound):
            return self.runtime.collection(self.tenant, slug)
        return None

    def weaviate_pid(self) -> int | None:
        process = embedded_processes(self.runtime.home, self.runtime.settings).get("weaviate")
        return process.pid if process else None


@contextmanager
def open_installation(
    root: Path | None, backend: str, say: Callable[[str], None]
) -> Iterator[Installation]:
    """Open ``root`` (without one a temporary home, removed afterwards) with this backend.

    Raises `InvalidInput` for a home that holds anything but benchmarks.
    """
    # Short, for the sockets in it.
    folder = root or Path(tempfile.mkdtemp(prefix="kn-bench-", dir="/tmp"))
    # Also for the processes started from here: service, stack and command line.
    chosen = {"KNOWLEDGE_HOME": str(folder.resolve()), "KNOWLEDGE_VECTOR_BACKEND": backend}
    try:
        with (
            environment(chosen),
            asyncio.Runner() as loop,
            open_runtime(Home.locate(folder), say) as runtime,
        ):
            _require_scratch(runtime)
            yield Installation(runtime, loop, say)
    finally:
        if root is None:
            shutil.rmtree(folder, ignore_errors=True)


def _require_scratch(runtime: Runtime) -> None:
    tenants = {found.tenant_id for found in catalogue.list_collections(runtime.owner)}
    if others := sorted(name for name in tenants if not name.startswith(TENANT_PREFIX)):
        raise InvalidInput(
            f"{runtime.home.root} holds collections of {others[0]}: benchmarks fill and load their"
            " home, give them one of their own with --home, or unset KNOWLEDGE_HOME"
        )


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Environment variables, set for the length of the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
