"""Turns keep their order through deltas, and only what is new, changed or moved gets a new place."""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence

import pytest

from knowledge.indexing.turns import merged, placed


def ids(letters: str) -> list[uuid.UUID]:
    return [uuid.UUID(int=ord(letter)) for letter in letters]


def letters(turns: Sequence[uuid.UUID]) -> str:
    return "".join(chr(turn.int) for turn in turns)


@pytest.mark.parametrize(
    ("known", "told", "order"),
    [
        ("", "abc", "abc"),
        ("abc", "de", "abcde"),  # a feed of new turns continues the session
        ("abc", "axb", "axbc"),
        ("abc", "bx", "abxc"),
        ("abc", "xa", "xabc"),
        ("abc", "cde", "abcde"),
        ("abcd", "axyc", "axybcd"),  # behind the one it is told after; b was not told
        ("abc", "b", "abc"),
        ("abcd", "dabc", "dabc"),  # one moved, three kept
        ("abcd", "bacd", "bacd"),
        ("abc", "cba", "cba"),
        ("abc", "", "abc"),
    ],
)
def test_a_delta_places_what_it_tells_and_leaves_the_rest(
    known: str, told: str, order: str
) -> None:
    assert letters(merged(ids(known), ids(told))) == order


def test_a_turn_that_comes_between_leaves_the_places_of_the_others() -> None:
    places = dict(zip(ids("abc"), (1.0, 2.0, 3.0), strict=True))
    found = placed(ids("axbcy"), places, ids("axbcy"))
    assert {key: found[key] for key in places} == places
    assert 1 < found[ids("x")[0]] < 2
    assert found[ids("y")[0]] > 3


def test_only_a_moved_turn_gets_another_place() -> None:
    places = dict(zip(ids("abcd"), (1.0, 2.0, 3.0, 4.0), strict=True))
    found = placed(ids("dabc"), places, ids("dabc"))
    assert [key for key in places if found[key] != places[key]] == ids("d")
    assert found[ids("d")[0]] < 1


def test_any_order_told_is_the_order_of_the_places() -> None:
    chance = random.Random(3)
    places: dict[uuid.UUID, float] = {}
    for _ in range(60):
        order = ids("".join(chance.sample("abcdefghijklmnop", chance.randint(1, 16))))
        places = placed(order, {k: v for k, v in places.items() if k in order}, order)
        assert sorted(order, key=lambda turn: places[turn]) == order


def test_where_no_number_is_left_between_two_the_session_is_placed_anew() -> None:
    places = dict(zip(ids("ab"), (1.0, 1.0 + 2**-52), strict=True))
    found = placed(ids("axb"), places, ids("axb"))
    assert found == dict(zip(ids("axb"), (1.0, 2.0, 3.0), strict=True))
    # What is not told cannot be written again: the new turn shares a place.
    assert placed(ids("axb"), places, ids("x"))[ids("x")[0]] in places.values()
