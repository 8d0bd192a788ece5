"""Ends a hook in time, whatever hangs: a name server, a socket, a disk, standard input."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final, TypeVar

T = TypeVar("T")

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_TICK_S: Final = 0.1


class TimedOut(Exception):
    """The work did not end in time and goes on in a thread that ends with the process."""


class Stopped(Exception):
    """The process was told to end."""


class Clock:
    """Seconds since this process was started, so that slow imports count as well."""

    def __init__(self) -> None:
        self._offset_s = _age_s() - time.monotonic()

    def seconds(self) -> float:
        return time.monotonic() + self._offset_s


def within(seconds: float, work: Callable[[], T]) -> T:
    """What ``work`` returns or raises, done in a thread of its own.

    Raises `TimedOut` after ``seconds``. In the main thread signals are served meanwhile: a thread
    that waits in a name look-up would not let them through.
    """
    done = threading.Event()
    result: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            failure.append(error)
        finally:
            done.set()

    end = time.monotonic() + seconds
    threading.Thread(target=run, daemon=True).start()
    while not done.wait(max(0.0, min(_TICK_S, end - time.monotonic()))):
        if time.monotonic() >= end:
            raise TimedOut
    if failure:
        raise failure[0]
    return result[0]


@contextmanager
def stoppable() -> Iterator[Callable[[], None]]:
    """Signals to end raise `Stopped` in the block, where the main thread runs it.

    Yields a function after whose call they are ignored for the rest of the block.
    """
    is_shielded = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        if not is_shielded.is_set():
            raise Stopped

    if threading.current_thread() is not threading.main_thread():
        yield is_shielded.set
        return
    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield is_shielded.set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def open_standard_streams() -> None:
    """Put /dev/null in the place of streams that were closed, before a file takes their number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115


def _age_s() -> float:
    """Seconds since the process was started; 0 where the system does not tell."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        started_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started_s)
    except (AttributeError, IndexError, OSError, ValueError):
        return 0.0
