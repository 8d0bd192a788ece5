"""Several processes that write the same facts at once, and one that is killed on the way."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knowledge.crash_points import FACT_POINTS, VARIABLE
from tests.crashes.conftest import ROOT
from tests.graph.telling import Graph, at, fact, observed
from tests.graph.worker import DATABASE_VARIABLE, assert_file

WRITERS, SIZE = 8, 25
PLAIN = [fact(f"service{n % 20}", "USES", f"library{n}") for n in range(80)]
OWNERS = [
    fact(f"service{n}", "OWNED_BY", f"team{year}", validFrom=str(year), observedAt="2026")
    for n in range(20)
    for year in (2019, 2021, 2023)
]
VERSIONS = [
    fact("service1", "USES", "shared", sourceVersion=f"v{n}", observedAt=f"2024-01-{n:02}")
    for n in range(1, 31)
]
CHAIN = [fact(f"part{n}", "DEPENDS_ON", f"part{n + 1}") for n in range(3)]
WRONG = [observed(f"service{n}", "USES", "nothing") for n in range(10)]


def _start(graph: Graph, file: Path, *, crash_at: str | None = None) -> subprocess.Popen[str]:
    extra = {VARIABLE: crash_at} if crash_at else {}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.graph.worker", graph.tenant_id, str(file), str(SIZE)],
        cwd=ROOT,
        env={**os.environ, DATABASE_VARIABLE: graph.runtime.urls.app_url, **extra},
        stderr=subprocess.PIPE,
        text=True,
    )


def _write(file: Path, lines: Sequence[Mapping[str, Any]]) -> Path:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def _ended(process: subprocess.Popen[str]) -> int:
    with process:
        _, error = process.communicate(timeout=120)
    assert process.returncode in (0, -signal.SIGKILL), error
    return process.returncode


def test_eight_writers_at_once_lose_and_double_nothing(graph: Graph, tmp_path: Path) -> None:
    assert graph.caller
    wrong = graph.tell(*WRONG).fact_ids
    shuffled = random.Random(7)
    facts = [*PLAIN, *OWNERS, *VERSIONS, *CHAIN]
    processes = []
    for number in range(WRITERS):
        lines: list[Mapping[str, Any]] = shuffled.sample(facts, len(facts))
        if number == 0:
            lines = [*({"retract": str(each)} for each in wrong), *lines]
        file = _write(tmp_path / f"{number}.jsonl", lines)
        processes.append(_start(graph, file))
    assert [_ended(process) for process in processes] == [0] * WRITERS
    told = graph.rows(
        "select count(*) as tellings, count(distinct fact_id) as facts,"
        " count(*) filter (where closed_at is null) as believed from graph_facts where rule is null"
    )
    known = len(PLAIN) + len(OWNERS) + 1 + len(CHAIN)
    assert told == [
        {
            "tellings": len(facts) + len(WRONG),
            "facts": known + len(WRONG),
            "believed": known,
        }
    ]
    graph.require_true_counts()
    (latest,) = graph.facts(subject="service1", object="shared")
    assert latest.provenance.source_version == "v30"
    for year, owner in ((2020, "team2019"), (2022, "team2021"), (2025, "team2023")):
        found = graph.facts(predicate="OWNED_BY", as_of=at(year))
        assert [each.object for each in found] == [owner] * 20
    assert not graph.facts(object="nothing")
    chains = graph.triples(predicate="DEPENDS_ON", suggestions=True)
    assert {"part0 DEPENDS_ON part3", "part1 DEPENDS_ON part3"} <= chains
    events = graph.announced()
    assert sum(each["added"] for each in events) == known + len(WRONG)


def _state(graph: Graph) -> list[dict[str, Any]]:
    """Every row but its ids and times, what is announced, and what is counted."""
    rows = graph.rows(
        "select subject, predicate, object, source_id, source_version, valid_from, valid_to,"
        " confidence, trust_tier, closing, suggestion, rule, cardinality(lineage) as premises"
        " from graph_facts order by subject, predicate, object, source_version, closing, rule"
    )
    counts = graph.rows("select domain, trust_tier, facts from graph_fact_counts order by 1, 2")
    events = [
        {name: value for name, value in each.items() if name != "tenantId"}
        for each in graph.announced()
    ]
    owners = [
        {"owner": each.object, "of": each.subject, "to": each.valid_to and each.valid_to.at}
        for each in graph.facts(predicate="OWNED_BY", between=(at(1), at(9999)))
    ]
    return [*rows, *counts, *events, *sorted(owners, key=str)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Facts of every kind, dated, so that two runs of it end alike."""
    facts = [*PLAIN[:30], *OWNERS[:30], *VERSIONS[:10], *CHAIN]
    dated = [{"observedAt": "2025", **each} for each in facts]
    return _write(tmp_path / "facts.jsonl", random.Random(5).sample(dated, len(dated)))


@pytest.mark.parametrize("visit", [1, 3])
@pytest.mark.parametrize("point", FACT_POINTS)
def test_a_writer_killed_anywhere_and_run_again_ends_in_the_same_state(
    graph: Graph, file: Path, point: str, visit: int
) -> None:
    twin = replace(graph, tenant_id=f"{graph.tenant_id}-twin", _caller=None)
    assert graph.caller and twin.caller
    assert _ended(_start(graph, file, crash_at=f"{point}:{visit}")) == -signal.SIGKILL
    batches = len({row["recorded_at"] for row in graph.rows("select recorded_at from graph_facts")})
    assert batches == (visit if point == "facts.committed" else visit - 1)
    graph.require_true_counts()
    for place in (graph, twin):
        assert_file(graph.runtime.app, place.tenant_id, file, SIZE)
    assert _state(graph) == _state(twin)
    graph.require_true_counts()
