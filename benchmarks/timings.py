"""Times of many calls of one kind, and what is quoted of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds, at least one."""

    seconds: Sequence[float]

    def percentile_ms(self, percentile: float) -> float:
        return float(np.percentile(self.seconds, percentile)) * 1000

    @property
    def p50_ms(self) -> float:
        return self.percentile_ms(50)

    @property
    def p95_ms(self) -> float:
        return self.percentile_ms(95)

    @property
    def p99_ms(self) -> float:
        return self.percentile_ms(99)


def ms(value: float) -> str:
    return f"{value:.1f} ms"


def seconds(value: float) -> str:
    return f"{value:.2f} s" if value < 100 else f"{value:.0f} s"
