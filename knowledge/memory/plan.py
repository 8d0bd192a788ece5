"""A caller's scope in one memory, resolved in one round trip."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from knowledge.errors import InvalidInput
from knowledge.graph.querying import FactPlan, FactReader
from knowledge.memory.namespace import memory_namespace
from knowledge.model.fact import require_name
from knowledge.model.scope import READ, Caller, Scope
from knowledge.storage.postgres.facts import memories


@dataclass(frozen=True, slots=True)
class MemoryScope:
    """Which memory a question is put to, and which of its facts count.

    ``project_id`` None is the only project of the credential, ``graph`` None the default one.
    Facts of one session only are recalled for the ``session`` that is named; without ``shared``
    nothing but these.
    """

    project_id: str | None = None
    graph: str | None = None
    session: str | None = None
    shared: bool = True

    def __post_init__(self) -> None:
        if self.session is not None:
            require_name(self.session, "sessionId")
        elif not self.shared:
            raise InvalidInput(
                "shared: false needs a sessionId: name the session whose facts count"
            )


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """What a caller may read of a memory now, and what changes when its names changed other than by
    facts: taken out, merged, given vectors."""

    facts: FactPlan
    namespace: str
    of_session: bool
    erased_at: datetime | None
    embedded_at: datetime | None
    merges: str

    @property
    def scope(self) -> Scope:
        return self.facts.scope

    @property
    def place(self) -> tuple[str, str, str]:
        return self.scope.tenant_id, self.scope.project_id, self.namespace

    @property
    def known_at(self) -> datetime:
        return self.facts.facts.known_at


async def plan_memory(
    reader: FactReader, caller: Caller, asked: MemoryScope, needed: str = READ
) -> MemoryPlan:
    """Raises as `FactReader.plan`; `NotFound` for another tenant's memory, and `InvalidInput` where
    the credential has several projects and none is named."""
    namespace = memory_namespace(caller.tenant_id, asked.graph)
    found = await memories.plan_memory(
        reader.database, caller.tenant_id, caller.client_id, asked.project_id, namespace
    )
    project_id = asked.project_id
    if found is not None and project_id is None:
        project_id = found["project"]
        if project_id is None:
            raise InvalidInput(
                "projectId is missing: the credential has several projects, name one"
            )
    plan = await reader.resolve(caller, found, project_id or "", needed)
    assert found is not None
    sessions = () if asked.session is None else (asked.session,)
    return MemoryPlan(
        facts=replace(plan, facts=replace(plan.facts, sessions=sessions)),
        namespace=namespace,
        of_session=not asked.shared,
        erased_at=_time(found["erasedAt"]),
        embedded_at=_time(found["embeddedAt"]),
        merges=found["merges"],
    )


def _time(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)
