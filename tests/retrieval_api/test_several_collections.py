"""One query over collections of different profiles, and of none: nothing mixed, nobody favoured."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from knowledge.home import Home
from knowledge.runtime import Runtime, open_runtime
from tests.profiles.test_onnx import write_folder
from tests.publication import collection_of, publish_documents
from tests.retrieval_api.conftest import CallerFactory
from tests.retrieval_api.service import Caller, caller, serving

TENANT = "several"
PROFILES = {"mini": "minilm@1", "tiny": "tiny@1", "words": None}
TOPICS = {
    "mini": ("the tide table of the harbour", "tide"),
    "tiny": ("the east gate opens at dawn", "gate"),
    "words": ("the furnace is relit on monday", "furnace"),
}
"""By collection: the sentence that answers, and a word that the others mention in passing."""
WORDS = (
    *("door", "lamp", "river", "stone", "paper", "window", "garden", "market", "bridge", "engine"),
    *("letter", "yellow", "winter", "morning", "silver", "copper", "candle", "basket", "ladder"),
)
PASSING = 40


def _documents(name: str) -> list[dict[str, Any]]:
    chance = random.Random(name)
    others = [word for topic, (_, word) in TOPICS.items() if topic != name]
    passing = [
        {
            "id": f"{name}/{number:02}.md",
            "text": " ".join([*chance.choices(WORDS, k=14), others[number % 2], *WORDS[:3]]),
        }
        for number in range(PASSING)
    ]
    # The topic itself is common where it belongs, as it is in a handbook about it.
    about = [
        {
            "id": f"{name}/about-{n}.md",
            "text": f"{TOPICS[name][1]} {' '.join(chance.choices(WORDS, k=12))}",
        }
        for n in range(10)
    ]
    return [*passing, *about, {"id": f"{name}/answer.md", "text": TOPICS[name][0]}]


@pytest.fixture(scope="module")
def reader() -> Iterator[Caller]:
    """A home of its own, whose settings name a second profile."""
    home = Home(Path(tempfile.mkdtemp(prefix="kp-", dir="/tmp")))
    try:
        home.prepare()
        folder = write_folder(home.root / "tiny-model")
        home.config_file.write_text(
            f'[profiles."tiny@1"]\nprovider = "onnx"\nfolder = "{folder}"\n'
        )
        with open_runtime(home) as runtime:
            for name, profile in PROFILES.items():
                collection = collection_of(runtime, TENANT, name, profile=profile)
                publish_documents(runtime, collection, _documents(name))
            with serving(home, runtime) as url:
                yield caller(url, runtime, TENANT)
    finally:
        shutil.rmtree(home.root, ignore_errors=True)


def _citations(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [candidate["citation"] for candidate in answer["candidates"]]


def test_every_leg_is_reported_for_every_collection(reader: Caller) -> None:
    reports = {
        (leg["collection"], leg["leg"]): leg
        for leg in reader.search("the east gate opens")["legs"]
        if leg["collection"]
    }
    assert len(reports) == 9
    for (collection, leg), report in reports.items():
        if (collection, leg) == ("words", "vector"):
            assert report["state"] == "skipped"
            assert "no embedding profile" in report["reason"]
        else:
            assert (report["state"], report["indexRevision"]) == ("ok", 1), report


def test_no_answer_mixes_profiles_within_a_collection(reader: Caller) -> None:
    seen = set()
    for query, word in TOPICS.values():
        for text in (query, word, " ".join(WORDS[:6])):
            for citation in _citations(reader.search(text, topK=100)):
                seen.add((citation["collection"], citation["embeddingProfileVersion"]))
                has_cosine = "vector" in citation["signals"]
                assert has_cosine == (PROFILES[citation["collection"]] is not None)
    assert seen == set(PROFILES.items())


@pytest.mark.parametrize(("rerank", "within"), [("reranker", 1), ("none", 3)])
@pytest.mark.parametrize("name", TOPICS)
def test_the_best_chunk_comes_first_wherever_it_lives(
    reader: Caller, name: str, rerank: str, within: int
) -> None:
    """Ranks alone cannot tell which collection's first is better: it is one of the three firsts."""
    found = reader.paths(TOPICS[name][0], rerank=rerank, topK=10)
    assert f"{name}/answer.md" in found[:within], found[:5]


@pytest.mark.parametrize("rerank", ["reranker", "none"])
def test_a_collection_without_a_model_has_its_share_of_the_answers(
    reader: Caller, rerank: str
) -> None:
    """Words that all collections hold alike: it neither fills the top nor is missing from it. Ties are
    decided by ids, which differ from run to run."""
    shares = dict.fromkeys(PROFILES, 0)
    for seed in range(12):
        query = " ".join(random.Random(seed).sample(WORDS[3:], 4))
        for citation in _citations(reader.search(query, rerank=rerank, topK=10)):
            shares[citation["collection"]] += 1
    fair = sum(shares.values()) / 3
    assert 0.4 * fair <= shares["words"] <= 1.75 * fair, shares


def test_a_single_collection_is_ranked_by_itself_alone(reader: Caller) -> None:
    """Named alone a collection has the statistics of its own; beside others those of all."""
    alone = reader.search("gate lamp river", collections=["words"], explain=True)
    again = reader.search("gate lamp river", collections=["words"], explain=True)
    assert alone["candidates"] == again["candidates"]
    blends = [candidate["explain"]["rerank"] for candidate in alone["candidates"]]
    words = [candidate["citation"]["signals"]["fullText"] for candidate in alone["candidates"]]
    assert words == sorted(words, reverse=True)
    assert blends == sorted(blends, reverse=True)


@pytest.mark.parametrize("profile", [None, "minilm@1"])
def test_a_passing_mention_where_the_word_is_rare_does_not_beat_the_page_about_it(
    runtime: Runtime, tenant: str, caller_factory: CallerFactory, profile: str | None
) -> None:
    """By its own statistics "lease" says nothing in a handbook of leases, and all in a diary."""
    chance = random.Random(3)
    filler = [" ".join(chance.choices(WORDS, k=25)) for _ in range(40)]
    handbook = [{"id": f"h/{n}.md", "text": f"lease {text}"} for n, text in enumerate(filler)]
    answer = {"id": "h/answer.md", "text": "The lease is renewed: how a lease is extended."}
    diary = [{"id": f"d/{n}.md", "text": text} for n, text in enumerate(filler)]
    mention = {"id": "d/mention.md", "text": f"{filler[0]} lease {filler[1]}"}
    for slug, documents in (("handbook", [*handbook, answer]), ("diary", [*diary, mention])):
        collection = collection_of(runtime, tenant, slug, profile=profile)
        publish_documents(runtime, collection, documents)
    assert caller_factory(tenant).paths("extend the lease")[0] == "h/answer.md"
    assert caller_factory(tenant).paths("about a lease")[0] == "h/answer.md"
