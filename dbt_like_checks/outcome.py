"""What came of a check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from dbt_like_checks.check import Check, Severity

IdRow = Mapping[str, str | None]
"""The id columns of one failing row, as text of at most 200 characters."""


class Status(StrEnum):
    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The result of one check.

    ``failures`` is the number of failing rows, 0 when the check could not run. ``sample`` holds
    the ids of at most 10 of them in id order, and nothing else of a row. ``reason`` says in one
    line why the check could not run (status ``error``), else ``None``; like the sample it never
    carries a value of another column. ``seconds`` is wall time.
    """

    check: Check
    status: Status
    failures: int
    sample: tuple[IdRow, ...]
    seconds: float
    reason: str | None = None

    @property
    def is_blocking(self) -> bool:
        """Whether nothing may be built on this data. A check that could not run proves nothing,
        so it blocks whatever its severity."""
        return self.status in (Status.FAIL, Status.ERROR)


def status_for(check: Check, failures: int) -> Status:
    """The status of a check that found ``failures`` failing rows."""
    if check.severity is Severity.ERROR and check.thresholds.error_if.is_met(failures):
        return Status.FAIL
    if check.thresholds.warn_if.is_met(failures):
        return Status.WARN
    return Status.PASS
