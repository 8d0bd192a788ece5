"""A memory filled, exported, imported, cared for and forgotten on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Knowledge

TRIPLES: list[dict[str, Any]] = [
    {"subject": "deploys", "predicate": "RUN_ON", "object": "fridays", "validFrom": "2026-03"},
    {"subject": "Ada", "predicate": "PREFERS", "object": "short names", "confidence": 0.8},
]


@pytest.fixture
def place(tenant: str) -> tuple[str, ...]:
    return ("--tenant", tenant, "--project", "p1")


def write(path: Path, lines: list[Any]) -> Path:
    path.write_text(
        "".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)
    )
    return path


def test_facts_go_in_once_and_a_bad_line_is_named(
    knowledge: Knowledge, place: tuple[str, ...], tmp_path: Path
) -> None:
    bad = [{"subject": "a", "predicate": "no good", "object": "b"}, "{half\n", "[1]\n"]
    file = write(tmp_path / "facts.jsonl", [*TRIPLES, *bad])
    done = knowledge("memory", "upsert", file, *place, "--session", "s1", "--json").json
    assert done["counts"]["added"] == 2
    assert [(r["line"], r["reason"][:14]) for r in done["refused"]] == [
        (3, "predicate 'no "),
        (4, "not valid JSON"),
        (5, "a triple is a "),
    ]
    again = knowledge("memory", "upsert", file, *place, "--session", "s1")
    assert "unchanged  2" in again.out
    assert "line 4: not valid JSON" in again.err


def test_an_export_goes_into_another_memory_as_it_was(
    knowledge: Knowledge, place: tuple[str, ...], tmp_path: Path
) -> None:
    file = write(tmp_path / "facts.jsonl", TRIPLES)
    knowledge("memory", "upsert", file, *place, "--session", "s1")
    knowledge("memory", "upsert", file, *place, "--session", "s2", "--of-session")
    exported = tmp_path / "out.jsonl"
    assert "4 facts" in knowledge("memory", "export", *place, "--output", exported).err
    lines = [json.loads(line) for line in exported.read_text().splitlines()]
    assert {line.get("ofSession", False) for line in lines} == {True, False}
    assert lines[0]["trustTier"] == "AgentObservation"
    copy = ("--graph", "copy")
    done = knowledge("memory", "import", exported, *place, *copy, "--json").json
    assert (done["counts"]["added"], done["open"]["facts"]) == (4, 4)
    again = knowledge("memory", "import", exported, *place, *copy, "--json").json
    assert again["counts"]["unchanged"] == 4
    assert knowledge("memory", "export", *place, *copy).out == exported.read_text()
    back = knowledge("memory", "import", exported, *place, "--json").json
    assert back["counts"]["unchanged"] == 4


def test_an_import_raises_no_tier(
    knowledge: Knowledge, place: tuple[str, ...], tmp_path: Path
) -> None:
    line = {**TRIPLES[0], "client": "c", "sessionId": "s", "trustTier": "SourceFact"}
    done = knowledge("memory", "import", write(tmp_path / "x.jsonl", [line]), *place, "--json").json
    assert "needs a sourceId" in done["refused"][0]["reason"]
    assert "added" not in done["counts"]


def test_a_session_is_promoted_verified_and_forgotten(
    knowledge: Knowledge, place: tuple[str, ...], tmp_path: Path
) -> None:
    file = write(tmp_path / "facts.jsonl", TRIPLES)
    knowledge("memory", "upsert", file, *place, "--session", "s1", "--of-session")
    promoted = knowledge("memory", "promote", *place, "--session", "s1", "--json").json["promoted"]
    assert len(promoted) == 2
    both = [word for each in promoted for word in ("--fact", each["as"])]
    assert "2 facts of" in knowledge("memory", "verify", *place, *both).out
    gone = knowledge("memory", "forget", *place, "--entity", "ADA", "--json").json
    assert gone["counts"]["facts"] == 2  # the one of the session and the shared one
    exported = knowledge("memory", "export", *place).out
    assert "Ada" not in exported and '"verified": true' in exported
    receipt = knowledge("memory", "forget", *place, "--everything")
    assert receipt.out.startswith("Forgotten in ") and "receipt" in receipt.out
    assert knowledge("memory", "export", *place).out == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("forget",), "say what is meant"),
        (("forget", "--entity", "nobody"), "nothing in the memory"),
        (("forget", "--everything", "--graph", "other|main"), "there is no memory other|main"),
        (("export", "--graph", "NO"), "graph 'NO' is not valid"),
    ],
)
def test_what_is_not_meant_is_one_clear_line(
    knowledge: Knowledge, place: tuple[str, ...], arguments: tuple[str, ...], words: str
) -> None:
    assert words in knowledge("memory", *arguments, *place).failure
