"""Named places where a test kills the process: ``KNOWLEDGE_CRASH_AT=tick.committed``.

``NAME:3`` dies the third time the place is reached. The process gets SIGKILL, as from the
kernel: no handler, no clean-up, nothing flushed. Without the variable a place costs a lookup.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from knowledge.errors import InvalidConfiguration

VARIABLE: Final = "KNOWLEDGE_CRASH_AT"

PUBLISH_POINTS: Final = (
    "tick.taken",
    "tick.written",
    "tick.committed",
    "embeddings.stored",
    "index.planned",
    "index.part_written",
    "index.written",
    "index.applied",
    "metadata.written",
    "metadata.applied",
    "serving.verified",
    "serving.switching",
    "serving.switched",
)
"""From an announced snapshot to the switch, in the order they are reached."""

REBUILD_POINTS: Final = (
    "rebuild.claimed",
    "rebuild.generation_added",
    "rebuild.round_written",
    "rebuild.caught_up",
    "rebuild.switching",
    "rebuild.switched",
)

COLLECT_POINTS: Final = (
    "collect.marked",
    "collect.generations_dropped",
    "collect.items_deleted",
    "collect.rows_deleting",
    "collect.rows_deleted",
)

FACT_POINTS: Final = ("facts.told", "facts.written", "facts.committed")

MEMORY_POINTS: Final = (
    "memory.written",
    "memory.committed",
    "memory.names_embedded",
    "memory.vectors_stored",
    "memory.erased",
    "memory.forgotten",
)

POINTS: Final = frozenset(
    (*PUBLISH_POINTS, *REBUILD_POINTS, *COLLECT_POINTS, *FACT_POINTS, *MEMORY_POINTS)
)


def _die(_name: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


_reached: Counter[str] = Counter()
on_crash: Callable[[str], None] = _die
"""What happens at the place; a test in one process puts an exception here."""


def reached(name: str) -> None:
    """Mark a place; does nothing unless the environment names it."""
    wanted = os.environ.get(VARIABLE)
    if wanted is None:
        return
    place, number = wanted_place({VARIABLE: wanted})
    if place == name:
        _reached[name] += 1
        if _reached[name] == number:
            on_crash(name)


def wanted_place(environ: Mapping[str, str]) -> tuple[str, int]:
    """The place that the environment names, and at which visit. Raises `InvalidConfiguration`."""
    place, _, number = environ.get(VARIABLE, "").partition(":")
    if place not in POINTS or (number and not number.isdecimal()):
        raise InvalidConfiguration(
            f"{VARIABLE} must be NAME or NAME:COUNT with NAME one of {', '.join(sorted(POINTS))}"
        )
    return place, int(number or 1)


def require_known_place(environ: Mapping[str, str]) -> None:
    """Raise `InvalidConfiguration` for a place that does not exist, before anything is done."""
    if VARIABLE in environ:
        wanted_place(environ)


def forget() -> None:
    """Count visits from the beginning."""
    _reached.clear()
