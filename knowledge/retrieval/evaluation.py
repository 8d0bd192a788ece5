"""Evaluation: known questions asked through the searcher itself, each leg, the fusion, the answer.

With g_i the grade of the path at rank i (0 where it is not judged) and G the judged grades in
falling order::

    DCG@10 = sum over i = 1..10 of g_i / log2(i + 1)      nDCG@10 = DCG@10 / DCG@10 of G
    recall@k = relevant paths among the first k / relevant paths      (relevant: grade > 0)
    MRR = 1 / rank of the first relevant path among the first 100, 0 without one

Gains are the grades themselves (Järvelin and Kekäläinen, 2002). A path stands where its best
chunk stands; means are over all questions.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, NoReturn

from knowledge.errors import InvalidInput
from knowledge.model.scope import Caller
from knowledge.retrieval.answer import Answer, LegState
from knowledge.retrieval.request import BUILT, Leg, RerankMode, SearchRequest
from knowledge.retrieval.search import Searcher

DEPTH: Final = 100
CONCURRENCY: Final = 4


@dataclass(frozen=True, slots=True)
class Question:
    """A query and the grades of the paths that answer it: at least one is above 0."""

    question_id: str
    text: str
    grades: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Metrics:
    """Each in 0 to 1."""

    ndcg_at_10: float
    recall_at_10: float
    recall_at_100: float
    mrr: float


@dataclass(frozen=True, slots=True)
class Setup:
    """What is asked for: these legs, ordered like this (None: as the settings say)."""

    name: str
    legs: tuple[Leg, ...]
    rerank: RerankMode | None


SETUPS: Final = (
    *(Setup(leg.value, (leg,), "none") for leg in BUILT),
    Setup("fusion", BUILT, "none"),
    Setup("answer", BUILT, None),
)


@dataclass(frozen=True, slots=True)
class Result:
    """One setup over all questions. ``metrics`` is None where its only leg does not exist
    (``reason`` says why); ``degraded`` counts answers that were thinner than asked for."""

    setup: Setup
    questions: int
    metrics: Metrics | None
    p50_ms: float
    seconds: float
    degraded: int
    reason: str | None = None


def judge(paths: Sequence[str], grades: Mapping[str, float]) -> Metrics:
    """The metrics of one answer: ``paths`` best first, without repetitions."""
    gains = [grades.get(path, 0.0) for path in paths]
    relevant = sum(grade > 0 for grade in grades.values())
    ideal = _dcg(sorted(grades.values(), reverse=True))
    first = next((rank for rank, gain in enumerate(gains[:DEPTH], start=1) if gain > 0), None)
    return Metrics(
        ndcg_at_10=_dcg(gains) / ideal,
        recall_at_10=sum(gain > 0 for gain in gains[:10]) / relevant,
        recall_at_100=sum(gain > 0 for gain in gains[:100]) / relevant,
        mrr=1 / first if first else 0.0,
    )


def _dcg(gains: Sequence[float]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains[:10], start=1))


async def evaluate(
    searcher: Searcher,
    caller: Caller,
    *,
    project_id: str,
    collection: str,
    questions: Sequence[Question],
    progress: Callable[[str], None],
) -> list[Result]:
    """Ask every question in every setup, `CONCURRENCY` at a time; order as in `SETUPS`.

    Raises what `Searcher.search` raises, and `InvalidInput` without a question.
    """
    if not questions:
        raise InvalidInput("there is no question to ask")
    results = []
    for setup in SETUPS:
        progress(f"asking {len(questions)} questions: {setup.name}")
        results.append(await _run(searcher, caller, setup, project_id, collection, questions))
    return results


async def _run(
    searcher: Searcher,
    caller: Caller,
    setup: Setup,
    project_id: str,
    collection: str,
    questions: Sequence[Question],
) -> Result:
    slots = asyncio.Semaphore(CONCURRENCY)

    async def ask(question: Question) -> Answer:
        request = SearchRequest(
            query=question.text,
            project_id=project_id,
            collections=(collection,),
            top_k=DEPTH,
            legs=setup.legs,
            rerank=setup.rerank,
        )
        async with slots:
            return await searcher.search(caller, request)

    started = time.monotonic()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(question)) for question in questions]
    seconds = time.monotonic() - started
    answers = [task.result() for task in tasks]
    judged = [
        judge(_paths(answer), question.grades)
        for answer, question in zip(answers, questions, strict=True)
    ]
    reason = _why_absent(setup, answers[0])
    return Result(
        setup=setup,
        questions=len(questions),
        metrics=None if reason else _mean(judged),
        p50_ms=statistics.median(answer.latency_ms for answer in answers),
        seconds=seconds,
        degraded=sum(answer.degraded for answer in answers),
        reason=reason,
    )


def _paths(answer: Answer) -> list[str]:
    """Paths in order, each where its best chunk stands."""
    return list(dict.fromkeys(candidate.citation.path for candidate in answer.chunks))


def _mean(judged: Sequence[Metrics]) -> Metrics:
    return Metrics(
        ndcg_at_10=statistics.fmean(m.ndcg_at_10 for m in judged),
        recall_at_10=statistics.fmean(m.recall_at_10 for m in judged),
        recall_at_100=statistics.fmean(m.recall_at_100 for m in judged),
        mrr=statistics.fmean(m.mrr for m in judged),
    )


def _why_absent(setup: Setup, answer: Answer) -> str | None:
    """Why a setup of one leg has no result; None when the leg ran."""
    wanted = [leg for leg in answer.legs if leg.leg in setup.legs]
    if all(leg.state is LegState.SKIPPED for leg in wanted):
        return wanted[0].reason if wanted else "no such leg"
    return None


# --- questions --------------------------------------------------------------------------


def read_questions(path: Path, limit: int | None = None) -> list[Question]:
    """The questions of a ``.jsonl`` or ``.jsonl.gz``, at most ``limit``, in order.

    A line is ``{"_id": "…", "text": "…", "qrels": {path: grade}}``; other keys are ignored.
    Raises `InvalidInput` naming file and line.
    """
    questions: dict[str, Question] = {}
    try:
        with _open(path) as file:
            for number, line in enumerate(file, start=1):
                if limit is not None and len(questions) >= limit:
                    break
                if not line.strip():
                    continue
                question = _question(path, number, line)
                if question.question_id in questions:
                    _refuse(path, number, f"_id {question.question_id!r} is used before")
                questions[question.question_id] = question
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(f"{path} cannot be read: {reason}") from error
    if not questions:
        raise InvalidInput(f"{path} holds no question")
    return list(questions.values())


def _open(path: Path) -> gzip.GzipFile | BufferedReader:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _question(path: Path, number: int, line: bytes) -> Question:
    try:
        value = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path}, line {number}: not valid JSON ({error})") from error
    if not isinstance(value, dict):
        _refuse(path, number, "a question must be a JSON object")
    for key in ("_id", "text"):
        if not isinstance(value.get(key), str) or not value[key].strip():
            _refuse(path, number, f"{key} is missing, empty or not a string")
    qrels = value.get("qrels")
    if not isinstance(qrels, dict) or not all(map(_is_grade, qrels.values())):
        _refuse(path, number, "qrels must be an object of path to grade, a number from 0")
    if not any(grade > 0 for grade in qrels.values()):
        _refuse(path, number, "qrels names no relevant path (a grade above 0)")
    return Question(value["_id"], value["text"], {p: float(g) for p, g in qrels.items()})


def _is_grade(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and value >= 0


def _refuse(path: Path, number: int, why: str) -> NoReturn:
    raise InvalidInput(f"{path}, line {number}: {why}", path=str(path), line=number)
