"""Crash points are for tests: a name that does not exist is refused before anything is done."""

from __future__ import annotations

import pytest

from knowledge.crash_points import POINTS, VARIABLE, wanted_place
from knowledge.errors import InvalidConfiguration
from knowledge.home import Home
from knowledge.settings import load_settings


@pytest.mark.parametrize("value", ["nonsense", "tick.committed:x", ""])
def test_an_unknown_place_is_refused_at_start_and_lists_the_known(home: Home, value: str) -> None:
    with pytest.raises(InvalidConfiguration, match="embeddings"):
        load_settings(home, {VARIABLE: value})


def test_a_place_may_say_at_which_visit() -> None:
    assert wanted_place({VARIABLE: "tick.committed:3"}) == ("tick.committed", 3)
    assert {wanted_place({VARIABLE: point}) for point in POINTS} == {(p, 1) for p in POINTS}
