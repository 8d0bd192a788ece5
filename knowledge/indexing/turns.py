"""The order of the turns of a session, after some of them were published.

A turn has a place, a number that only orders. A turn that comes between two others gets a place
between theirs: nothing but the turns that are new, changed or moved is written again.
"""

from __future__ import annotations

import itertools
import uuid
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence


def merged(known: Sequence[uuid.UUID], told: Sequence[uuid.UUID]) -> list[uuid.UUID]:
    """The turns of a session in order, when a delta tells some of them.

    Of those that are known as many as possible stay where they are. The others stand behind the
    turn that is told before them; those told before any known one stand right before it, and
    where none is known, at the end: a feed of new turns continues the session.
    """
    positions = {turn: number for number, turn in enumerate(known)}
    kept = set(_rising([turn for turn in told if turn in positions], positions))
    anchor: uuid.UUID | None = None
    first: uuid.UUID | None = None
    behind: dict[uuid.UUID | None, list[uuid.UUID]] = {}
    for turn in told:
        if turn in kept:
            anchor, first = turn, first or turn
        else:
            behind.setdefault(anchor, []).append(turn)
    moved = set(told) - kept
    order: list[uuid.UUID] = []
    for turn in known:
        if turn == first:
            order += behind.get(None, [])
        if turn not in moved:
            order.append(turn)
        order += behind.get(turn, [])
    return order if first is not None else order + behind.get(None, [])


def placed(
    order: Sequence[uuid.UUID],
    places: Mapping[uuid.UUID, float],
    told: Collection[uuid.UUID],
) -> dict[uuid.UUID, float]:
    """A place for every turn of a session that is ``told``, in ``order``.

    As many as possible keep the place that ``places`` gives them. Where no number is left
    between two places (after some fifty turns told one by one at the same spot) the whole session
    is placed anew if all of it is told; else the turn shares the place before it.
    """
    found = _between(order, places)
    values = [found[turn] for turn in order]
    is_rising = all(left < right for left, right in itertools.pairwise(values))
    if not is_rising and set(order) <= set(told):
        found = {turn: float(number) for number, turn in enumerate(order, start=1)}
    return {turn: found[turn] for turn in order if turn in told}


def _between(
    order: Sequence[uuid.UUID], places: Mapping[uuid.UUID, float]
) -> dict[uuid.UUID, float]:
    kept = set(_rising([turn for turn in order if turn in places], places))
    found: dict[uuid.UUID, float] = {}
    run: list[uuid.UUID] = []
    low: float | None = None
    for turn in order:
        if turn not in kept:
            run.append(turn)
            continue
        high = places[turn]
        found |= _spread(run, high - len(run) - 1 if low is None else low, high)
        found[turn] = low = high
        run = []
    begin = 0.0 if low is None else low
    return found | _spread(run, begin, begin + len(run) + 1)


def _spread(run: Sequence[uuid.UUID], low: float, high: float) -> dict[uuid.UUID, float]:
    step = (high - low) / (len(run) + 1)
    return {turn: low + step * number for number, turn in enumerate(run, start=1)}


def _rising(turns: Sequence[uuid.UUID], values: Mapping[uuid.UUID, float]) -> list[uuid.UUID]:
    """A longest subsequence whose values rise (Schensted, 1961), in the order of ``turns``."""
    tails: list[float] = []
    last: list[int] = []
    before: list[int] = []
    for number, turn in enumerate(turns):
        at = bisect_left(tails, values[turn])
        before.append(last[at - 1] if at else -1)
        tails[at : at + 1] = [values[turn]]
        last[at : at + 1] = [number]
    found: list[uuid.UUID] = []
    number = last[-1] if last else -1
    while number >= 0:
        found.append(turns[number])
        number = before[number]
    return found[::-1]
