"""What the measurement of conversations reads, and the numbers it is made of."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest

from benchmarks.conversations import auroc, find_conversations


def test_auroc_is_the_share_of_pairs_that_are_told_apart_and_ties_are_half() -> None:
    assert auroc([0.9, 0.8], [0.1, 0.2]) == 1.0
    assert auroc([0.1], [0.9]) == 0.0
    assert auroc([0.5, 0.9], [0.5]) == pytest.approx(0.75)
    assert math.isnan(auroc([], [0.5]))


def _write(path: Path, *rows: dict[str, Any]) -> None:
    with gzip.open(path, "wt") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in rows)


def test_turns_stay_in_order_and_questions_without_evidence_are_left_out(tmp_path: Path) -> None:
    assert find_conversations(tmp_path) is None
    said = [{"conv_id": c, "dia_id": f"D1:{n}", "text": "…"} for n in (2, 1) for c in ("a", "b")]
    _write(tmp_path / "locomo_turns_x.jsonl.gz", *said)
    asked = [
        {"conv_id": "a", "question": "q?", "category_name": "temporal", "evidence": ["D1:2"]},
        {"conv_id": "b", "question": "r?", "category_name": "temporal", "evidence": []},
        {"conv_id": "b", "question": "s?", "category_name": "adversarial", "evidence": ["D1:1"]},
    ]
    _write(tmp_path / "locomo_questions_x.jsonl.gz", *asked)
    found = find_conversations(tmp_path)
    assert found is not None
    assert [turn["dia_id"] for turn in found.turns["a"]] == ["D1:2", "D1:1"]
    assert [(q.text, q.is_answerable) for q in found.questions] == [("q?", True), ("s?", False)]
