"""What goes wrong before a check can run. A check that fails is an outcome, not an error."""

from __future__ import annotations


class InvalidChecks(Exception):
    """A check file is not valid. The message starts with ``file:line:`` (lines are 1-based)."""

    def __init__(self, message: str, *, file: str, line: int) -> None:
        super().__init__(f"{file}:{line}: {message}")
        self.file = file
        self.line = line


class UnreadableRelation(Exception):
    """The files of a relation cannot be read."""


class QueryFailed(Exception):
    """A SELECT cannot run. The message is one line that quotes no data."""
