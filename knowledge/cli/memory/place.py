"""Which memory a verb of the operator is about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import click

from knowledge.cli import options
from knowledge.cli.session import opened
from knowledge.graph.ontologies import tenant_ontology
from knowledge.graph.receiving import Sender
from knowledge.memory.namespace import DEFAULT_GRAPH, memory_namespace
from knowledge.model.identity import require_slug
from knowledge.model.scope import Scope
from knowledge.runtime import Runtime
from knowledge.storage.postgres import catalogue

OPERATOR: Final = "operator"


@dataclass(frozen=True, slots=True)
class MemoryPlace:
    """A memory in an opened installation, and the operator as who acts on it."""

    runtime: Runtime
    sender: Sender
    namespace: str

    @property
    def project(self) -> str:
        return self.sender.scope.project_id

    def __str__(self) -> str:
        return f"{self.namespace} of project {self.project}"


def of_memory(command: Any) -> Any:
    """``--tenant``, ``--project`` and ``--graph``."""
    command = click.option(
        "--graph", default=DEFAULT_GRAPH, show_default=True, metavar="G", help="Which memory."
    )(command)
    return options.tenant(options.project(command))


@contextmanager
def opened_memory(
    tenant: str, project: str, graph: str, *, create: bool = False
) -> Iterator[MemoryPlace]:
    """Raises what `opened` raises. With ``create`` tenant and project may be new."""
    namespace = memory_namespace(require_slug(tenant, "tenant"), graph)
    require_slug(project, "project")
    with opened(create=create) as runtime:
        if create:
            catalogue.ensure_project(runtime.owner, tenant, project)
        ontology = tenant_ontology(runtime.app, tenant)
        scope = Scope(tenant, project, OPERATOR, ())
        sender = Sender(scope, ontology, frozenset(), is_admin=True, is_operator=True)
        yield MemoryPlace(runtime, sender, namespace)


def place_to_wire(memory: MemoryPlace) -> dict[str, str]:
    return {"namespace": memory.namespace, "projectId": memory.project}
