"""Quality of every leg and profile on public test collections, published through the pipeline.

A data set is two files in one folder: documents ``{"_id", "title", "text"}`` (or ``"page"``, the
address of the page that is the title) and questions ``{"_id", "text", "qrels": {_id: grade}}``.
Questions that nothing answers are left out.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from benchmarks.installation import PROJECT, Installation
from benchmarks.publishing import index
from benchmarks.sections import Section, Table
from benchmarks.timings import ms
from knowledge.cli.searching import opened_searcher
from knowledge.model.collection import Collection
from knowledge.publishing.publish import PublishRequest, publish
from knowledge.retrieval.evaluation import Metrics, Question, Result, evaluate, read_questions
from knowledge.retrieval.request import SearchRequest

DATA_SETS: Final = {
    "scifact": ("*scifact_corpus*.jsonl*", "*scifact_queries*.jsonl*"),
    "cranfield": ("*cranfield_corpus*.jsonl*", "*cranfield_queries*.jsonl*"),
    "timeqa": ("*timeqa_paras*.jsonl*", "*timeqa_questions*.jsonl*"),
}
"""Name to the patterns of its two files."""

NO_MODEL: Final = "none"


@dataclass(frozen=True, slots=True)
class DataSet:
    name: str
    corpus: Path
    questions: Path


def find_data_sets(folder: Path) -> list[DataSet]:
    """Those of `DATA_SETS` whose two files lie in ``folder``."""
    found = []
    for name, (documents, asked) in DATA_SETS.items():
        corpus, questions = sorted(folder.glob(documents)), sorted(folder.glob(asked))
        if corpus and questions:
            found.append(DataSet(name, corpus[0], questions[0]))
    return found


def measure_quality(
    installation: Installation,
    data_sets: Sequence[DataSet],
    profiles: Sequence[str],
    limit: int | None,
) -> Section:
    """Every data set with every profile; ``limit`` asks only the first questions of each."""
    tables, data = [], {}
    for data_set in data_sets:
        questions = _read_answered(data_set.questions, limit)
        rows: list[tuple[str, ...]] = []
        for profile in profiles:
            collection = _published(installation, data_set, profile)
            results = _evaluated(installation, collection, questions)
            rows += [_row(profile, result) for result in results if result.metrics]
            data[f"{data_set.name} {profile}"] = {
                result.setup.name: result.metrics.ndcg_at_10 for result in results if result.metrics
            }
        caption = f"{data_set.name}, {len(questions)} questions"
        header = (
            "profile",
            "leg",
            "nDCG@10",
            "recall@10",
            "recall@100",
            "p50, top 100",
            "degraded",
        )
        tables.append(Table(caption=caption, header=header, rows=tuple(rows)))
    return Section(
        name="quality",
        backend=installation.backend,
        title="Quality of every leg and profile",
        tables=tuple(tables),
        notes=(
            "`fusion` is all legs in the fused order, `answer` what a request gets by default."
            " Grades are the gains; a document stands where its best chunk stands.",
        ),
        data=data,
    )


def local_profiles(installation: Installation) -> list[str]:
    """None, and every configured profile that embeds on this machine."""
    profiles = installation.runtime.profiles
    return [NO_MODEL, *(key for key in profiles.names() if profiles.is_local(key))]


def _published(installation: Installation, data_set: DataSet, profile: str) -> Collection:
    """A new collection of the data set, read from a feed and embedded by the profile's model."""
    model = None if profile == NO_MODEL else profile
    slug = f"{data_set.name}-{profile.replace('@', '-')}"
    collection = installation.new_collection(slug, profile=model)
    installation.say(f"publishing {data_set.name} with profile {profile}")
    with tempfile.TemporaryDirectory() as folder:
        feed = Path(folder) / f"{data_set.name}.jsonl"
        _write_feed(data_set.corpus, feed)
        publish(installation.runtime, collection, PublishRequest([feed], PROJECT))
    index(installation, collection, None)
    return collection


def _read_answered(path: Path, limit: int | None) -> list[Question]:
    with tempfile.TemporaryDirectory() as folder:
        answered = Path(folder) / "questions.jsonl"
        with answered.open("w") as kept:
            kept.writelines(line for line in _lines(path) if json.loads(line)["qrels"])
        return read_questions(answered, limit)


def _write_feed(corpus: Path, feed: Path) -> None:
    with feed.open("w") as documents:
        for line in _lines(corpus):
            value = json.loads(line)
            if not value["text"].strip():
                continue  # there is nothing to find
            title = value["title"] if "title" in value else _page_title(value["page"])
            document = {"id": value["_id"], "title": title, "text": value["text"]}
            documents.write(json.dumps(document) + "\n")


def _lines(path: Path) -> Iterator[str]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as lines:
        yield from lines


def _page_title(address: str) -> str:
    """``/wiki/Newton_D._Baker_House`` to ``Newton D. Baker House``."""
    return unquote(address.rpartition("/")[2]).replace("_", " ")


def _evaluated(
    installation: Installation, collection: Collection, questions: Sequence[Question]
) -> list[Result]:
    request = SearchRequest(questions[0].text, PROJECT, (collection.slug,))

    async def evaluated() -> list[Result]:
        async with opened_searcher(installation.runtime, installation.caller, request) as searcher:
            return await evaluate(
                searcher,
                installation.caller,
                project_id=PROJECT,
                collection=collection.slug,
                questions=questions,
                progress=installation.say,
            )

    return installation.run(evaluated())


def _row(profile: str, result: Result) -> tuple[str, ...]:
    metrics: Metrics | None = result.metrics
    assert metrics is not None
    return (
        profile,
        result.setup.name,
        f"{metrics.ndcg_at_10:.3f}",
        f"{metrics.recall_at_10:.3f}",
        f"{metrics.recall_at_100:.3f}",
        ms(result.p50_ms),
        str(result.degraded),
    )
