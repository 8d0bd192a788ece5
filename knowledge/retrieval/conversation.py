"""Turns of a conversation: found with the turns around them, cited alone.

A turn seldom says what it is about: that was said a turn before. So a turn is scored together
with its window, the two turns before it and the two after it in its session, as far as the caller
may read them at the revision read. Windows are read per request and stored nowhere: they never
show a turn that is out of scope, and a pinned answer has the windows of its revision.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

import numpy as np

from knowledge.errors import IndexUnavailable
from knowledge.model.fact import name_key
from knowledge.retrieval.answer import LegState
from knowledge.retrieval.legs import LegHits, Sources
from knowledge.retrieval.naming import name_spans
from knowledge.retrieval.planning import Served, Target
from knowledge.retrieval.ranking import Found, ordered_hits
from knowledge.retrieval.request import Leg
from knowledge.storage.backend import ScopeFilter, Vector
from knowledge.storage.postgres.database import Row
from knowledge.storage.postgres.retrieval import CandidateReader
from knowledge.storage.postgres.turns import PlacedTurn, TurnPlace, turns_around
from knowledge.text import bm25

WINDOW: Final = 2
"""Turns on each side. On four long conversations one side of 1 lost .03 recall@10, 3 gained less
than .01."""

SPEAKER_PRIOR: Final = 0.5
QUESTION_PRIOR: Final = -0.25
"""In units of z, like the blend that they are added to."""

_RAN: Final = (LegState.OK, LegState.FALLBACK)


@dataclass(frozen=True, slots=True)
class TurnSearch:
    """What finding turns needs of the search under way.

    ``vector`` is the query's, None without one; ``served`` holds the vectors; ``pool`` is how
    many hits of each leg bring in the turns around them.
    """

    sources: Sources
    rows: CandidateReader
    target: Target
    served: Served | None
    scope: ScopeFilter
    weights: bm25.QueryWeights
    vector: Vector | None
    pool: int


@dataclass(slots=True)
class _Window:
    """A candidate with the turns of its window, itself among them, in order."""

    turn: uuid.UUID
    around: list[uuid.UUID]


def is_conversation(found: Mapping[uuid.UUID, Found]) -> bool:
    return any(candidate.row["session"] is not None for candidate in found.values())


async def find_turns(
    search: TurnSearch, legs: Sequence[LegHits], found: Mapping[uuid.UUID, Found]
) -> dict[uuid.UUID, Found]:
    """The turns of the legs' first hits and those around them, scored with their windows.

    Each gets its rank in the legs that ran; `Found.sparse` and `Found.cosine` are means of the
    turn's own score and its window's, the signals are its own. How many hits the request asks
    for changes nothing here. Raises `DatabaseUnavailable`.
    """
    seeds = {key for leg in legs for key, _ in ordered_hits(leg, found, search.pool)[: search.pool]}
    places = [_place(found[key].row) for key in seeds]
    around = await turns_around(
        search.sources.database, search.target.collection_id, search.scope, places, 2 * WINDOW
    )
    windows = _windows(around, seeds)
    rows = {key: candidate.row for key, candidate in found.items()}
    lacking = {key for window in windows for key in window.around} - rows.keys()
    read = await search.rows.read(search.target.collection_id, search.scope, sorted(lacking))
    rows |= {row["object_id"]: row for row in read}
    vectors = await _vectors(search, legs, windows)
    counts = {key: bm25.count(search.weights, row["words"]) for key, row in rows.items()}
    turns = {
        window.turn: _scored(search, window, rows[window.turn], counts, vectors)
        for window in windows
        if window.turn in rows
    }
    for leg in legs:
        _note_ranks(leg, turns, search.pool)
    return {key: turn for key, turn in turns.items() if turn.ranks}


def note_turn_priors(found: Iterable[Found], query: str) -> None:
    """Add to the prior of turns by the one speaker whom the query names, and take from questions:
    who asks seldom tells."""
    turns = [candidate for candidate in found if candidate.row["session"] is not None]
    if not turns:
        return
    named = _named_speakers({candidate.row["speaker"] for candidate in turns}, query)
    for candidate in turns:
        if len(named) == 1 and candidate.row["speaker"] in named:
            candidate.prior += SPEAKER_PRIOR
        if candidate.row["text"].rstrip().endswith("?"):
            candidate.prior += QUESTION_PRIOR


def _named_speakers(speakers: Iterable[str], query: str) -> set[str]:
    """The speakers whom the query names, in full or by the first word of their name."""
    spans = name_spans(query)
    return {
        speaker
        for speaker in speakers
        if name_key(speaker) in spans or name_key(speaker.split()[0]) in spans
    }


def _place(row: Row) -> TurnPlace:
    return TurnPlace(row["source_id"], row["session"], row["place"])


def _windows(around: Sequence[PlacedTurn], seeds: set[uuid.UUID]) -> list[_Window]:
    """The seeds and the turns next to them that the request's filters admit, with their windows.

    Around a seed the turns are there without a gap as far as any of these windows reaches.
    """
    windows = []
    for _, members in groupby(around, key=lambda turn: (turn.at.source_id, turn.at.session)):
        turns = list(members)
        near = {
            place
            for number, turn in enumerate(turns)
            if turn.object_id in seeds
            for place in range(max(0, number - WINDOW), min(len(turns), number + WINDOW + 1))
        }
        windows += [
            _Window(
                turns[n].object_id,
                [turn.object_id for turn in turns[max(0, n - WINDOW) : n + WINDOW + 1]],
            )
            for n in sorted(near)
            if turns[n].meets
        ]
    return windows


async def _vectors(
    search: TurnSearch, legs: Sequence[LegHits], windows: Sequence[_Window]
) -> dict[uuid.UUID, Vector]:
    """Vectors of all turns of the windows; none without the query's, or with the index away."""
    if search.vector is None or search.served is None:
        return {}
    vectors = {hit.object_id: hit.vector for leg in legs for hit in leg.hits}
    known = {key: vector for key, vector in vectors.items() if vector is not None}
    lacking = {key for window in windows for key in window.around} - known.keys()
    readable = replace(
        search.scope, path_prefix=None, kind=None, language=None, tags=(), updated_after=None
    )
    try:
        return known | await search.sources.index.vectors(
            search.served.generation, sorted(lacking), readable
        )
    except IndexUnavailable:
        return known  # scored from their words; the legs' states tell of the outage


def _scored(
    search: TurnSearch,
    window: _Window,
    row: Row,
    counts: Mapping[uuid.UUID, bm25.Counted],
    vectors: Mapping[uuid.UUID, Vector],
) -> Found:
    own = bm25.match(search.weights, row["words"], row["title_words"])
    around = [counts[key] for key in window.around if key in counts]
    together = bm25.match_together(search.weights, around)
    served = search.served
    turn = Found(
        row=row,
        target=search.target,
        revision=search.scope.revision,
        profile=served.generation.embedding_profile if served else None,
        sparse=(own.score + together.score) / 2,
        held=together.held,
        anchors=True,
        signals={Leg.FULL_TEXT: own.score} if own.score else {},
    )
    vector = vectors.get(window.turn)
    if vector is not None and search.vector is not None:
        cosine = float(vector @ search.vector)
        mean = np.sum([vectors[key] for key in window.around if key in vectors], axis=0)
        length = float(np.linalg.norm(mean))
        of_window = float(mean @ search.vector) / length if length else cosine
        turn.cosine = (cosine + of_window) / 2
        turn.signals[Leg.VECTOR] = cosine
    return turn


def _note_ranks(leg: LegHits, turns: Mapping[uuid.UUID, Found], pool: int) -> None:
    """Rank the turns in a leg: by words and by meaning with their windows, else as it found them."""
    name = leg.report.leg
    if leg.report.state not in _RAN:
        return
    if name is Leg.FULL_TEXT:
        scores = {key: turn.sparse for key, turn in turns.items() if turn.sparse}
    elif name is Leg.VECTOR:
        scores = {key: turn.cosine for key, turn in turns.items() if turn.cosine is not None}
    else:
        hits = [hit for hit in leg.hits[:pool] if hit.object_id in turns]
        for number, hit in enumerate(hits, start=1):
            turns[hit.object_id].ranks[name] = number
            turns[hit.object_id].signals[name] = hit.score
        return
    order = sorted(scores, key=lambda key: (-scores[key], key))
    for number, key in enumerate(order, start=1):
        turns[key].ranks[name] = number
