"""Turns handed over for extraction: accepted at once, held in memory only, worked off one by one.

Nothing of a turn is written anywhere but the facts found in it. The price: a job that has not
run when the process ends is lost, and its status with it; who asks for it then gets `NotFound`,
as after an hour.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
import uuid
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Final, Generic, Self

from knowledge.errors import (
    InvalidInput,
    KnowledgeError,
    ModelUnavailable,
    QueueFull,
    Unavailable,
)
from knowledge.memory.extraction.extractor import Extraction, Extractor, Turn
from knowledge.memory.offload_jobs import (
    FactCounts,
    JobStatus,
    JobStatuses,
    OffloadJob,
    RequestKey,
    Target,
    Vocabulary,
    WriteCounts,
)
from knowledge.security.redaction import redact

FIRST_GUESS_S: Final = 5.0
"""How long a job takes, until one has run."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Queued(Generic[Target]):
    job: OffloadJob[Target]
    turns: list[Turn] = field(repr=False)
    size_chars: int


class OffloadQueue(Generic[Target]):
    """A bounded queue with one worker, fair between tenants. Use it as ``async with``.

    At most ``max_jobs`` jobs and ``max_chars`` characters of turns wait or run; one tenant has
    at most half of either, and tenants take turns. ``vocabulary`` and ``write`` are called when
    a job runs; a job ends after ``job_timeout_s``. Turns are redacted before an extractor sees
    them.
    """

    def __init__(
        self,
        extractor: Extractor,
        *,
        vocabulary: Callable[[OffloadJob[Target]], Awaitable[Vocabulary]],
        write: Callable[[OffloadJob[Target], Extraction], Awaitable[WriteCounts]],
        max_jobs: int = 32,
        max_chars: int = 4_000_000,
        job_timeout_s: float = 900.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._extractor = extractor
        self._vocabulary = vocabulary
        self._write = write
        self._max_jobs = max_jobs
        self._max_chars = max_chars
        self._job_timeout_s = job_timeout_s
        self._monotonic = monotonic
        self._waiting: OrderedDict[str, deque[_Queued[Target]]] = OrderedDict()
        self._jobs: Counter[str] = Counter()  # of each tenant, with the one that runs
        self._chars: Counter[str] = Counter()
        self._statuses = JobStatuses(monotonic)
        self._usual_s = FIRST_GUESS_S
        self._arrived = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._worker = asyncio.create_task(self._work(), name="offload")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """What waits or runs is lost, by design."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.cancel()
            await asyncio.wait([worker])
        for counts in (self._waiting, self._statuses, self._jobs, self._chars):
            counts.clear()

    # --- handing in and asking ----------------------------------------------------------

    def submit(
        self,
        *,
        tenant_id: str,
        principal: str,
        turns: Sequence[Turn],
        target: Target,
        key: RequestKey | None = None,
    ) -> JobStatus:
        """Accept a job, or raise `QueueFull` with ``facts["retry_after_s"]``, whole seconds.

        What is handed in again under the same ``key`` is the job that it already is; raises
        `Conflict` where that came with something else, and `InvalidInput` for turns that could never be accepted.
        """
        if self._worker is None:
            raise Unavailable("the service is shutting down: try again")
        if key is not None:
            known = self._statuses.named(key, tenant_id=tenant_id, principal=principal)
            if known is not None:
                return known
        size = sum(len(turn.content) for turn in turns)
        self._require_room(tenant_id, size)
        job = OffloadJob(uuid.uuid4().hex, tenant_id, principal, target)
        status = JobStatus(
            job_id=job.job_id,
            state="queued",
            turns=len(turns),
            extractor=self._extractor.kind,
            extractor_reason=self._extractor.reason,
            queued_at=datetime.now(UTC),
        )
        self._statuses.add(status, tenant_id=tenant_id, principal=principal, key=key)
        self._waiting.setdefault(tenant_id, deque()).append(_Queued(job, list(turns), size))
        self._jobs[tenant_id] += 1
        self._chars[tenant_id] += size
        self._arrived.set()
        _log.info("offload job queued", extra={"job_id": job.job_id, "turns": len(turns)})
        return status

    def status(self, job_id: str, *, tenant_id: str, principal: str) -> JobStatus:
        """Raises `NotFound` when there is no such job of this principal, or no longer."""
        return self._statuses.of(job_id, tenant_id=tenant_id, principal=principal)

    def _require_room(self, tenant_id: str, size: int) -> None:
        most = self._max_chars // 2
        if size > most:
            raise InvalidInput(
                f"the turns have {size:,} characters, at most {most:,} are taken at"
                " a time: send them in several calls"
            )
        mine, all_jobs = self._jobs[tenant_id], self._jobs.total()
        is_full = all_jobs >= self._max_jobs or self._chars.total() + size > self._max_chars
        has_its_share = mine > 0 and (
            mine >= max(1, self._max_jobs // 2)
            or self._chars[tenant_id] + size > self._max_chars // 2
        )
        if is_full or has_its_share:
            ahead = all_jobs if is_full else mine
            wait = min(300, max(1, math.ceil(self._usual_s * ahead / 2)))
            raise QueueFull(f"{ahead} jobs are waiting: try again in {wait} s", retry_after_s=wait)

    # --- working off ----------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            if not self._waiting:
                self._arrived.clear()
                await self._arrived.wait()
            await self._run(self._next())  # no name here: the frame would hold the turns

    def _next(self) -> _Queued[Target]:
        """The oldest job of the tenant whose turn it is, who then goes to the end of the line."""
        tenant_id, jobs = self._waiting.popitem(last=False)
        queued = jobs.popleft()
        if jobs:
            self._waiting[tenant_id] = jobs
        return queued

    async def _run(self, queued: _Queued[Target]) -> None:
        job, started = queued.job, self._monotonic()
        self._statuses.update(job.job_id, state="running")
        try:
            async with asyncio.timeout(self._job_timeout_s) as limit:
                await self._extract_and_write(queued)
        except Exception as error:
            reason = _reason(error)
            if limit.expired():
                reason = f"the job took longer than {self._job_timeout_s:g} s"
            self._statuses.end(job.job_id, state="failed", reason=reason)
            _log.warning(
                "offload job failed", extra={"job_id": job.job_id, "error": type(error).__name__}
            )
        finally:
            queued.turns.clear()
            self._release(queued)
            self._usual_s += (self._monotonic() - started - self._usual_s) / 4

    async def _extract_and_write(self, queued: _Queued[Target]) -> None:
        job = queued.job
        known = await self._vocabulary(job)
        turns = await asyncio.to_thread(_redacted, queued.turns)
        queued.turns.clear()
        extraction = await self._extractor.extract(turns, known.known_names, known.ontology)
        written = await self._write(job, extraction) if extraction.triples else WriteCounts()
        facts = FactCounts(
            extracted=len(extraction.triples),
            dropped=extraction.dropped.total(),
            added=written.added,
            unchanged=written.unchanged,
            closed=written.closed,
            refused=written.refused,
        )
        self._statuses.end(
            job.job_id,
            state="done",
            extractor=extraction.extractor,
            extractor_reason=extraction.reason,
            model=extraction.model,
            facts=facts,
        )
        _log.info(
            "offload job done",
            extra={"job_id": job.job_id, "facts": facts.extracted, "dropped": facts.dropped},
        )

    def _release(self, queued: _Queued[Target]) -> None:
        tenant_id = queued.job.tenant_id
        self._jobs[tenant_id] -= 1
        self._chars[tenant_id] -= queued.size_chars
        if not self._jobs[tenant_id]:
            del self._jobs[tenant_id], self._chars[tenant_id]


def _redacted(turns: Sequence[Turn]) -> list[Turn]:
    return [replace(turn, content=redact(turn.content).text) for turn in turns]


def _reason(error: Exception) -> str:
    """One line without a word of any turn: messages of other errors may quote what was refused."""
    if isinstance(error, ModelUnavailable):
        return error.message
    if isinstance(error, KnowledgeError):
        return type(error)().message
    return f"the job failed inside ({type(error).__name__}); see the log of the service"
