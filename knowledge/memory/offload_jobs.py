"""Jobs of the offload queue as they are told of: who handed them in, how far they are."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Generic, Literal, TypeVar

from knowledge.errors import Conflict, NotFound
from knowledge.graph.ontology.model import Ontology
from knowledge.memory.extraction.extractor import Kind
from knowledge.retrieval.wire import time_to_wire

KEEP_STATUS_S: Final = 3_600.0
MAX_STATUSES: Final = 1_000
MAX_OF_TENANT: Final = 250

State = Literal["queued", "running", "done", "failed"]
Target = TypeVar("Target")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What the extraction of one job may know beforehand."""

    known_names: Sequence[str]
    ontology: Ontology


@dataclass(frozen=True, slots=True)
class WriteCounts:
    added: int = 0
    unchanged: int = 0
    closed: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class FactCounts:
    """``extracted`` were handed to the write, ``dropped`` were not sure or not readable enough."""

    extracted: int = 0
    dropped: int = 0
    added: int = 0
    unchanged: int = 0
    closed: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class OffloadJob(Generic[Target]):
    """Who handed it in, and where its facts go; its turns are elsewhere and soon gone."""

    job_id: str
    tenant_id: str
    principal: str
    target: Target


@dataclass(frozen=True, slots=True)
class JobStatus:
    """``extractor`` is the one that will be asked, once done the one that answered;
    ``extractor_reason`` why it is that one. ``reason`` says why the job failed."""

    job_id: str
    state: State
    turns: int
    extractor: Kind
    extractor_reason: str | None
    queued_at: datetime
    model: str | None = None
    facts: FactCounts = FactCounts()
    reason: str | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RequestKey:
    """How a client names what it hands in, and the SHA-256 of that."""

    key: str
    content_hash: bytes


def job_to_wire(status: JobStatus) -> dict[str, Any]:
    return {
        "jobId": status.job_id,
        "state": status.state,
        "turns": status.turns,
        "extractor": status.extractor,
        "extractorReason": status.extractor_reason,
        "model": status.model,
        "facts": asdict(status.facts),
        "reason": status.reason,
        "queuedAt": time_to_wire(status.queued_at),
        "finishedAt": status.finished_at and time_to_wire(status.finished_at),
    }


@dataclass(slots=True)
class _Record:
    status: JobStatus
    owner: tuple[str, str]
    key: RequestKey | None = None
    expires_s: float = math.inf


class JobStatuses:
    """Statuses by job id, of ended jobs for `KEEP_STATUS_S` and at most `MAX_STATUSES` in all."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._records: OrderedDict[str, _Record] = OrderedDict()

    def add(
        self, status: JobStatus, *, tenant_id: str, principal: str, key: RequestKey | None = None
    ) -> None:
        self._forget_old(keep=MAX_STATUSES - 1)
        self._forget_share(tenant_id)
        self._records[status.job_id] = _Record(status, (tenant_id, principal), key)

    def named(self, key: RequestKey, *, tenant_id: str, principal: str) -> JobStatus | None:
        """The job that this principal handed in under this key, while its status is kept and unless
        it failed.

        Raises `Conflict` where other turns came with it, or for another memory.
        """
        self._forget_old()
        for record in self._records.values():
            known = record.key if record.status.state != "failed" else None
            if known is not None and (record.owner, known.key) == ((tenant_id, principal), key.key):
                if known.content_hash != key.content_hash:
                    raise Conflict("this Idempotency-Key came with other turns: choose a new one")
                return record.status
        return None

    def of(self, job_id: str, *, tenant_id: str, principal: str) -> JobStatus:
        """Raises `NotFound` when there is no such job of this principal, or no longer."""
        self._forget_old()
        record = self._records.get(job_id)
        if record is None or record.owner != (tenant_id, principal):
            raise NotFound(f"there is no job {job_id[:64]} of yours, or it ended an hour ago")
        return record.status

    def update(self, job_id: str, **changes: object) -> None:
        if record := self._records.get(job_id):
            record.status = replace(record.status, **changes)  # type: ignore[arg-type]

    def end(self, job_id: str, **changes: object) -> None:
        self.update(job_id, finished_at=datetime.now(UTC), **changes)
        if record := self._records.get(job_id):
            record.expires_s = self._monotonic() + KEEP_STATUS_S

    def clear(self) -> None:
        self._records.clear()

    def _forget_share(self, tenant_id: str) -> None:
        """One tenant's many jobs do not push out what others ask for."""
        mine = [
            job_id
            for job_id, each in self._records.items()
            if each.owner[0] == tenant_id and each.expires_s < math.inf
        ]
        for job_id in mine[: max(0, len(mine) - MAX_OF_TENANT)]:
            del self._records[job_id]

    def _forget_old(self, keep: int = MAX_STATUSES) -> None:
        now = self._monotonic()
        ended = [key for key, each in self._records.items() if each.expires_s < math.inf]
        surplus = len(self._records) - keep
        for number, job_id in enumerate(ended):
            if number < surplus or self._records[job_id].expires_s <= now:
                del self._records[job_id]
