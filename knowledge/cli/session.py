"""What every verb on an installation needs: the home opened, and progress for people."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from knowledge.errors import NotFound
from knowledge.home import Home
from knowledge.runtime import Runtime, open_runtime
from knowledge.stack.servers import silent


@contextmanager
def opened(*, create: bool = False) -> Iterator[Runtime]:
    """The home of KNOWLEDGE_HOME, opened. Only with ``create`` it may be new.

    Raises `NotFound` where there is no home: a verb that reads must not found one by mistake.
    """
    home = Home.locate()
    if not create and not home.exists():
        raise NotFound(
            f"there is no installation in {home.root}: set KNOWLEDGE_HOME, or start with"
            " `knowledge up` or `knowledge publish`"
        )
    with open_runtime(home, progress()) as runtime:
        yield runtime


def progress() -> Callable[[str], None]:
    """Shows lines on standard error where it is a terminal, and nothing elsewhere."""
    return (lambda line: click.echo(line, err=True)) if sys.stderr.isatty() else silent
