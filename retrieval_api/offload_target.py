"""Where the facts of an offloaded conversation go: read and written as the client may then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any, Final

from knowledge.errors import Busy, DatabaseUnavailable
from knowledge.graph.querying import FactReader
from knowledge.graph.receiving import Sender
from knowledge.memory.extraction.extractor import ExtractedTriple, Extraction
from knowledge.memory.offload_jobs import OffloadJob, Vocabulary, WriteCounts
from knowledge.memory.plan import MemoryScope, plan_memory
from knowledge.memory.recalling import Recaller
from knowledge.memory.writing import MAX_TRIPLES, Told, write_told
from knowledge.model.scope import WRITE, Caller, TrustTier
from knowledge.storage.postgres.database import Database

RETRY_DELAYS_S: Final = (1.0, 5.0, 20.0)

WriteSlot = Callable[[str], AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True)
class OffloadTarget:
    """Who hands turns in, of which session, and the memory they belong to."""

    caller: Caller
    memory: MemoryScope
    client: str
    session_id: str
    is_of_session: bool


@dataclass(frozen=True, slots=True)
class TargetWriter:
    """What the queue does for a job. ``write_slot`` waits until the tenant may write;
    ``written`` is told that there are new names."""

    reader: FactReader
    recaller: Recaller
    writer: Database
    write_slot: WriteSlot
    written: Callable[[], None]

    async def vocabulary(self, job: OffloadJob[OffloadTarget]) -> Vocabulary:
        """Raises as `plan_memory`: what the client may do is looked at when its job runs."""
        target = job.target
        scope = replace(target.memory, session=target.session_id)
        plan, names = await self.recaller.names(target.caller, scope, WRITE)
        return Vocabulary([each.name for each in names], plan.facts.ontology)

    async def write(self, job: OffloadJob[OffloadTarget], extraction: Extraction) -> WriteCounts:
        """Tried again while the database is away or others write: the turns are gone already."""
        for delay_s in RETRY_DELAYS_S:
            try:
                return await self._write_all(job.target, extraction)
            except (Busy, DatabaseUnavailable):
                await asyncio.sleep(delay_s)
        return await self._write_all(job.target, extraction)

    async def _write_all(self, target: OffloadTarget, extraction: Extraction) -> WriteCounts:
        counts = WriteCounts()
        async with self.write_slot(target.caller.tenant_id):
            plan = await plan_memory(self.reader, target.caller, target.memory, WRITE)
            sender = Sender.of(target.caller, plan.facts)
            for start in range(0, len(extraction.triples), MAX_TRIPLES):
                part = extraction.triples[start : start + MAX_TRIPLES]
                told = _told(target, plan.namespace, part, extraction.model)
                written = await asyncio.to_thread(self._write, sender, told)
                counts = WriteCounts(
                    added=counts.added + written.added,
                    unchanged=counts.unchanged + written.unchanged,
                    closed=counts.closed + written.closed,
                    refused=counts.refused + written.refused,
                )
        self.written()
        return counts

    def _write(self, sender: Sender, told: Told) -> WriteCounts:
        with self.writer.tenant(sender.scope.tenant_id) as connection:
            done = write_told(connection, sender, told)
        return WriteCounts(
            added=done.count("added"),
            unchanged=done.count("unchanged", "restated", "outdated", "ended"),
            closed=len(done.closed),
            refused=len(done.refused),
        )


def _told(
    target: OffloadTarget, namespace: str, triples: list[ExtractedTriple], model: str
) -> Told:
    return Told(
        namespace=namespace,
        triples=[_triple(each) for each in triples],
        client=target.client,
        session_id=target.session_id,
        model=model,
        is_of_session=target.is_of_session,
        tier=TrustTier.UNVERIFIED_MEMORY,
    )


def _triple(found: ExtractedTriple) -> dict[str, Any]:
    return {
        "subject": found.subject,
        "subjectType": found.subject_type,
        "predicate": found.predicate,
        "object": found.object,
        "objectType": found.object_type,
        "confidence": found.confidence,
        "validFrom": found.valid_from and found.valid_from.text,
    }
