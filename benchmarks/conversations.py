"""Conversations: whether the turns that answer are found, and what the confidence is worth.

The data are two files in one folder: turns ``{"conv_id", "session", "session_datetime", "dia_id",
"speaker", "text"}`` in order, and questions ``{"conv_id", "question", "category_name",
"evidence": [dia_id]}``. Each conversation becomes a collection, and each question is asked of its
own and of the next one::

    recall@k = evidence turns among the first k / evidence turns, mean over the questions
    AUROC = share of pairs (own, other) in which the own conversation's answer is more confident

AUROC counts ties half (Mann and Whitney, 1947). Questions without an answer in the conversation
("adversarial") count for neither; how the confidence takes them is told beside.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.installation import PROFILE, PROJECT, Installation
from benchmarks.publishing import index
from benchmarks.quality import NO_MODEL
from benchmarks.sections import Bar, Section, Table
from benchmarks.timings import ms
from knowledge.cli.searching import opened_searcher
from knowledge.model.collection import Collection
from knowledge.publishing.publish import PublishRequest, publish
from knowledge.retrieval.answer import Answer
from knowledge.retrieval.request import SearchRequest
from knowledge.retrieval.search import Searcher

TURNS: Final = "*locomo_turns*.jsonl*"
QUESTIONS: Final = "*locomo_questions*.jsonl*"
UNANSWERABLE: Final = "adversarial"
RECALL_BAR: Final = 0.77
AUROC_BAR: Final = 0.85
CONCURRENCY: Final = 4
_TIME_FORM: Final = "%I:%M %p on %d %B, %Y"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of one conversation; ``evidence`` are the ids of the turns that answer it."""

    conversation: str
    text: str
    category: str
    evidence: frozenset[str]

    @property
    def is_answerable(self) -> bool:
        return self.category != UNANSWERABLE


@dataclass(frozen=True, slots=True)
class Conversations:
    """Turns by conversation, each in order, and the questions."""

    turns: Mapping[str, Sequence[Mapping[str, Any]]]
    questions: Sequence[Asked]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A question with the answers of its own conversation and of the next."""

    question: Asked
    own: Answer
    other: Answer

    def recall(self, depth: int) -> float:
        found = {candidate.citation.path for candidate in self.own.chunks[:depth]}
        return len(found & self.question.evidence) / len(self.question.evidence)


def find_conversations(folder: Path, limit: int | None = None) -> Conversations | None:
    """Those in ``folder``, with the first ``limit`` questions; None without the two files."""
    turns, questions = sorted(folder.glob(TURNS)), sorted(folder.glob(QUESTIONS))
    if not turns or not questions:
        return None
    by_conversation = defaultdict(list)
    for turn in _lines(turns[0]):
        by_conversation[turn["conv_id"]].append(turn)
    asked = [
        Asked(line["conv_id"], line["question"], line["category_name"], frozenset(line["evidence"]))
        for line in _lines(questions[0])
        if line["evidence"]
    ]
    return Conversations(by_conversation, asked[:limit])


def measure_conversations(
    installation: Installation, data: Conversations, profiles: Sequence[str]
) -> Section:
    """Publish and ask with every profile."""
    measured = {profile: _outcomes(installation, data, profile) for profile in profiles}
    header = ("profile", "recall@5", "recall@10", *_categories(data), "p50", "degraded")
    certainty = (
        "profile",
        "AUROC",
        "low support, own",
        "other",
        UNANSWERABLE,
        f"{UNANSWERABLE} AUROC",
    )
    answerable = sum(question.is_answerable for question in data.questions)
    return Section(
        name="conversations",
        backend=installation.backend,
        title="Conversations and confidence",
        bars=_bars(measured),
        tables=(
            Table(
                caption=f"turns that answer, {answerable} questions to"
                f" {len(data.turns)} conversations",
                header=header,
                rows=tuple(_recalls(name, data, found) for name, found in measured.items()),
            ),
            Table(
                caption="confidence: questions to their own conversation and to another",
                header=certainty,
                rows=tuple(_certainty(name, found) for name, found in measured.items()),
            ),
        ),
        notes=(
            f"Each conversation is a collection; recall by category is at 10. `{UNANSWERABLE}` are"
            " questions about the conversation whose answer was never said: near misses, which the"
            " confidence cannot tell (.5 is chance).",
        ),
        data={
            name: {"recall@10": _mean_recall(found, 10), "auroc": _auroc_of(found)}
            for name, found in measured.items()
        },
    )


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Share of pairs in which the positive one is greater, ties half; NaN without a pair."""
    if not positive or not negative:
        return float("nan")
    left, right = np.array(positive)[:, None], np.array(negative)[None, :]
    return float((left > right).mean() + (left == right).mean() / 2)


def _outcomes(installation: Installation, data: Conversations, profile: str) -> list[Outcome]:
    installation.say(f"publishing {len(data.turns)} conversations with profile {profile}")
    collections = {
        name: _published(installation, name, turns, profile) for name, turns in data.turns.items()
    }
    names = list(collections)
    others = {name: names[(n + 1) % len(names)] for n, name in enumerate(names)}
    installation.say(f"asking {len(data.questions)} questions twice")

    async def asked() -> list[Outcome]:
        request = SearchRequest("warm", PROJECT, (collections[names[0]].slug,))
        slots = asyncio.Semaphore(CONCURRENCY)
        async with opened_searcher(installation.runtime, installation.caller, request) as searcher:

            async def both(question: Asked) -> Outcome:
                own, other = question.conversation, others[question.conversation]
                async with slots:
                    return Outcome(
                        question,
                        await _answer(searcher, installation, collections[own], question.text),
                        await _answer(searcher, installation, collections[other], question.text),
                    )

            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(both(question)) for question in data.questions]
            return [task.result() for task in tasks]

    return installation.run(asked())


async def _answer(
    searcher: Searcher, installation: Installation, collection: Collection, text: str
) -> Answer:
    return await searcher.search(
        installation.caller, SearchRequest(text, PROJECT, (collection.slug,))
    )


def _published(
    installation: Installation, name: str, turns: Sequence[Mapping[str, Any]], profile: str
) -> Collection:
    model = None if profile == NO_MODEL else profile
    slug = f"{name.lower()}-{profile.replace('@', '-')}"
    collection = installation.new_collection(slug, profile=model, kind="conversation")
    with tempfile.TemporaryDirectory() as folder:
        feed = Path(folder) / f"{name}.jsonl"
        feed.write_text("".join(json.dumps(_turn(turn)) + "\n" for turn in turns))
        publish(installation.runtime, collection, PublishRequest([feed], PROJECT))
    index(installation, collection, None)
    return collection


def _turn(turn: Mapping[str, Any]) -> dict[str, Any]:
    said = datetime.strptime(turn["session_datetime"], _TIME_FORM).replace(tzinfo=UTC)
    metadata = {"speaker": turn["speaker"], "session": turn["session"], "time": said.isoformat()}
    return {"id": turn["dia_id"], "text": turn["text"], "metadata": metadata}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as lines:
        for line in lines:
            yield json.loads(line)


def _categories(data: Conversations) -> list[str]:
    return sorted({q.category for q in data.questions if q.is_answerable})


def _mean_recall(found: Sequence[Outcome], depth: int, category: str | None = None) -> float:
    return statistics.fmean(
        outcome.recall(depth)
        for outcome in found
        if outcome.question.is_answerable and category in (None, outcome.question.category)
    )


def _confidences(found: Sequence[Outcome], *, answerable: bool = True) -> list[float]:
    return [o.own.confidence for o in found if o.question.is_answerable is answerable]


def _others(found: Sequence[Outcome]) -> list[float]:
    return [o.other.confidence for o in found if o.question.is_answerable]


def _auroc_of(found: Sequence[Outcome]) -> float:
    return auroc(_confidences(found), _others(found))


def _bars(measured: Mapping[str, Sequence[Outcome]]) -> tuple[Bar, ...]:
    if PROFILE not in measured:
        return ()
    recall, told = _mean_recall(measured[PROFILE], 10), _auroc_of(measured[PROFILE])
    return (
        Bar(
            what=f"recall@10 of the turns that answer, {PROFILE}",
            bar=f"≥ {RECALL_BAR}",
            figure=f"{recall:.3f}",
            is_met=recall >= RECALL_BAR,
        ),
        Bar(
            what=f"AUROC of the confidence, another conversation, {PROFILE}",
            bar=f"≥ {AUROC_BAR}",
            figure=f"{told:.3f}",
            is_met=told >= AUROC_BAR,
        ),
    )


def _recalls(profile: str, data: Conversations, found: Sequence[Outcome]) -> tuple[str, ...]:
    return (
        profile,
        f"{_mean_recall(found, 5):.3f}",
        f"{_mean_recall(found, 10):.3f}",
        *(f"{_mean_recall(found, 10, category):.3f}" for category in _categories(data)),
        ms(statistics.median(outcome.own.latency_ms for outcome in found)),
        str(sum(outcome.own.degraded + outcome.other.degraded for outcome in found)),
    )


def _certainty(profile: str, found: Sequence[Outcome]) -> tuple[str, ...]:
    own, other = _confidences(found), _others(found)
    missing = _confidences(found, answerable=False)
    return (
        profile,
        f"{_auroc_of(found):.3f}",
        *(_low(values) for values in (own, other, missing)),
        f"{auroc(own, missing):.3f}",
    )


def _low(confidences: Sequence[float]) -> str:
    if not confidences:
        return "-"
    return f"{sum(value < 0.5 for value in confidences) / len(confidences):.0%}"
