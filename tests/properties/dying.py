"""A death of this process in this process: an exception where the real one would be killed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from knowledge import crash_points


class Crash(BaseException):
    """The process would be dead now; no handler of errors may take this for one."""

    def __init__(self, point: str) -> None:
        super().__init__(point)
        self.point = point


def _crash(point: str) -> None:
    raise Crash(point)


@contextmanager
def crashing(point: str | None, happens: Callable[[str], None] = _crash) -> Iterator[None]:
    """Within the block the process dies at ``point``; with None nowhere, whatever was wanted.

    Or what ``happens`` there is something else that another process might do at that moment.
    """
    before = os.environ.pop(crash_points.VARIABLE, None)
    if point is not None:
        os.environ[crash_points.VARIABLE] = point
    die, crash_points.on_crash = crash_points.on_crash, happens
    crash_points.forget()
    try:
        yield
    finally:
        crash_points.on_crash = die
        os.environ.pop(crash_points.VARIABLE, None)
        if before is not None:
            os.environ[crash_points.VARIABLE] = before
