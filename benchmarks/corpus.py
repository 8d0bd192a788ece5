"""A synthetic corpus: documents about topics, their vectors, and the questions that meet them.

Words are English ones in the order of their frequency (the default model's vocabulary is sorted
so), drawn by the Zipf-Mandelbrot law, with stop words between them and each topic's own words
more often. A topic's centre is the model's embedding of its words; a document's vector lies about
it at a cosine of .7, so indexes and statistics meet clusters and not noise. A document is made
from its number and its edition alone: nothing is kept, and every run makes the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from knowledge.model.chunk import Chunk
from knowledge.profiles.minilm import ensure_model
from knowledge.profiles.profile import Embedder
from knowledge.stack.cache import cache_folder
from knowledge.text.analysis import STOP_WORDS

Vector = npt.NDArray[np.float32]

TOPICS: Final = 256
TOPIC_WORDS: Final = 150
SOURCES: Final = 16
WORDS: Final = 80
GROUPS: Final = ("eng", "legal")
"""The asking client is in the first and not in the second."""

_STOP_SHARE: Final = 0.4
_TOPIC_SHARE: Final = 0.3
_FLATTENED_HEAD: Final = 30.0
"""q of the Zipf-Mandelbrot law: without it one word would be in nearly every document."""

QUESTION_LENGTHS: Final = (2, 3, 6, 9, 12, 20)
"""Words of a question, drawn evenly: keywords, questions, whole claims."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document, published as one chunk, with the unit vector [d] that is given for it."""

    source_id: str
    chunk: Chunk
    vector: Vector


class Corpus:
    """Documents by number, from 0 on, without end."""

    def __init__(self, embedder: Embedder, *, seed: int = 1) -> None:
        """Embeds the words of every topic once: a few seconds."""
        self._seed = seed
        self._words = np.array(english_words(), dtype=object)
        self._stop = np.array(sorted(STOP_WORDS), dtype=object)
        self._frequencies = _cumulative(len(self._words))
        self._topic_frequencies = _cumulative(TOPIC_WORDS)
        rng = np.random.default_rng(seed)
        self._topics = rng.integers(200, len(self._words), (TOPICS, TOPIC_WORDS))
        texts = [" ".join(self._words[words[:60]]) for words in self._topics]
        self._centres = embedder.embed(texts).vectors

    def document(self, number: int, edition: int = 0) -> Document:
        """Place, topic, title and ACL stay over all editions, text and vector do not."""
        place = np.random.default_rng((self._seed, number))
        written = np.random.default_rng((self._seed, number, edition))
        topic = int(place.integers(TOPICS))
        title = self._drawn(place, topic, 5, stop_share=0.1)
        chunk = Chunk(
            path=f"{title[0]}/{title[1]}-{number}.md",
            anchor="",
            title=" ".join(title),
            text=" ".join(self._drawn(written, topic, WORDS)),
            tags=(str(title[2]),),
            acl=_acl(float(place.random())),
        )
        return Document(f"source-{number % SOURCES:02}", chunk, self._vector(written, topic))

    def documents(self, start: int, stop: int) -> Iterator[Document]:
        return (self.document(number) for number in range(start, stop))

    def questions(self, count: int, *, seed: int = 7) -> list[str]:
        """Different questions of mixed length about the documents' topics."""
        rng = np.random.default_rng((self._seed, seed))
        return [
            " ".join(
                self._drawn(
                    rng,
                    int(rng.integers(TOPICS)),
                    int(rng.choice(QUESTION_LENGTHS)),
                    topic_share=0.5,
                )
            )
            for _ in range(count)
        ]

    def _drawn(
        self,
        rng: np.random.Generator,
        topic: int,
        count: int,
        *,
        stop_share: float = _STOP_SHARE,
        topic_share: float = _TOPIC_SHARE,
    ) -> npt.NDArray[np.object_]:
        if count < 4:
            stop_share = 0.0  # keywords
        kind, place = rng.random(count), rng.random(count)
        words = self._words[_ranks(self._frequencies, place)]
        own = self._words[self._topics[topic][_ranks(self._topic_frequencies, place)]]
        stop = self._stop[(place * len(self._stop)).astype(int)]
        return np.where(
            kind < stop_share, stop, np.where(kind < stop_share + topic_share, own, words)
        )

    def _vector(self, rng: np.random.Generator, topic: int) -> Vector:
        centre = self._centres[topic]
        noise = rng.standard_normal(len(centre), dtype=np.float32)
        vector = centre + noise / np.linalg.norm(noise)
        unit: Vector = (vector / np.linalg.norm(vector)).astype(np.float32)
        return unit


@cache
def english_words() -> Sequence[str]:
    """Whole words of the default model's vocabulary, frequent ones first, stop words left out."""
    tokenizer = json.loads((ensure_model(cache_folder()) / "tokenizer.json").read_text())
    vocabulary: dict[str, int] = tokenizer["model"]["vocab"]
    words = sorted(vocabulary, key=lambda word: vocabulary[word])
    return [
        word
        for word in words
        if len(word) > 2 and word.isascii() and word.isalpha() and word not in STOP_WORDS
    ]


def _cumulative(count: int) -> npt.NDArray[np.float64]:
    weights = 1.0 / (np.arange(count) + 1.0 + min(_FLATTENED_HEAD, count / 5))
    total: npt.NDArray[np.float64] = np.cumsum(weights / weights.sum())
    return total


def _ranks(
    cumulative: npt.NDArray[np.float64], places: npt.NDArray[np.float64]
) -> npt.NDArray[np.intp]:
    return np.minimum(np.searchsorted(cumulative, places), len(cumulative) - 1)


def _acl(share: float) -> tuple[str, ...] | None:
    """One in ten for a group that the asking client is not in, two in ten for one it is in."""
    if share < 0.1:
        return (f"group:{GROUPS[1]}",)
    return (f"group:{GROUPS[0]}",) if share < 0.3 else None
