"""A memory filled, exported, imported, cared for and forgotten on the command line."""

from __future__ import annotations

import io
import json
import sys
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


def without_ids(exported: str) -> list[Any]:
    """The lines of an export; a fact's id is of the memory that it is in."""
    lines = [json.loads(line) for line in exported.splitlines()]
    assert all(line.pop("factId") for line in lines)
    return lines


def test_facts_go_in_once_and_a_bad_line_is_named(
    knowledge: Knowledge, place: tuple[str, ...], tmp_path: Path
) -> None:
    bad = [{"subject": "a", "predicate": "no good", "object": "b"}, "{half\n", "[1]\n"]
    file = write(tmp_path / "facts.jsonl", [*TRIPLES, *bad])
    ended = knowledge("memory", "upsert", file, *place, "--session", "s1", "--json")
    assert ended.code == 1
    done = json.loads(ended.out)
    assert done["counts"]["added"] == 2
    assert (done["namespace"], done["projectId"]) == (f"{place[1]}|main", "p1")
    assert [(r["line"], r["reason"][:14]) for r in done["refused"]] == [
        (3, "predicate '…' "),
        (4, "not valid JSON"),
        (5, "a triple is a "),
    ]
    again = knowledge("memory", "upsert", file, *place, "--session", "s1")
    assert again.code == 1
    assert again.out.startswith(f"Memory {place[1]}|main of project p1\n")
    assert "unchanged  2" in again.out
    assert "line 4: not valid JSON" in again.err


def test_an_export_goes_into_another_memory_as_it_was(
    knowledge: Knowledge, place: tuple[str, ...], tmp_path: Path
) -> None:
    file = write(tmp_path / "facts.jsonl", TRIPLES)
    knowledge("memory", "upsert", file, *place, "--session", "s1")
    knowledge("memory", "upsert", file, *place, "--session", "s2", "--of-session")
    exported = tmp_path / "out.jsonl"
    told = knowledge("memory", "export", *place, "--output", exported).err
    assert told == f"4 facts of {place[1]}|main of project p1\n"
    lines = [json.loads(line) for line in exported.read_text().splitlines()]
    assert {line.get("ofSession", False) for line in lines} == {True, False}
    assert lines[0]["trustTier"] == "AgentObservation"
    copy = ("--graph", "copy")
    done = knowledge("memory", "import", exported, *place, *copy, "--json").json
    assert (done["counts"]["added"], done["open"]["facts"]) == (4, 4)
    again = knowledge("memory", "import", exported, *place, *copy, "--json").json
    assert again["counts"]["unchanged"] == 4
    copied = knowledge("memory", "export", *place, *copy).out
    assert without_ids(copied) == without_ids(exported.read_text())
    back = knowledge("memory", "import", exported, *place, "--json").json
    assert back["counts"]["unchanged"] == 4


def test_an_import_raises_no_tier(
    knowledge: Knowledge, place: tuple[str, ...], tmp_path: Path
) -> None:
    line = {**TRIPLES[0], "client": "c", "sessionId": "s", "trustTier": "SourceFact"}
    ended = knowledge("memory", "import", write(tmp_path / "x.jsonl", [line]), *place, "--json")
    assert ended.code == 1
    done = json.loads(ended.out)
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
    told = f"2 facts of {place[1]}|main of project p1 verified\n"
    assert knowledge("memory", "verify", *place, *both).out == told
    gone = knowledge("memory", "forget", *place, "--entity", "ADA", "--json").json
    assert gone["counts"]["facts"] == 2  # the one of the session and the shared one
    exported = knowledge("memory", "export", *place).out
    assert "Ada" not in exported and '"verified": true' in exported
    receipt = knowledge("memory", "forget", *place, "--everything", "--yes")
    assert receipt.out.startswith(f"Forgotten in {place[1]}|main of project p1\n")
    assert "receipt" in receipt.out
    assert knowledge("memory", "export", *place).out == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("forget", "--entity", "nobody"), "nothing in the memory"),
        (
            ("forget", "--everything", "--yes", "--graph", "other|main"),
            "there is no memory other|main",
        ),
        (("export", "--graph", "NO"), "graph 'NO' is not valid"),
    ],
)
def test_what_is_not_meant_is_one_clear_line(
    knowledge: Knowledge, place: tuple[str, ...], arguments: tuple[str, ...], words: str
) -> None:
    assert words in knowledge("memory", *arguments, *place).failure


def test_facts_are_cared_for_by_the_ids_of_an_export(
    knowledge: Knowledge, place: tuple[str, ...], tmp_path: Path
) -> None:
    file = write(tmp_path / "facts.jsonl", TRIPLES)
    knowledge("memory", "upsert", file, *place, "--session", "s1")
    lines = [json.loads(line) for line in knowledge("memory", "export", *place).out.splitlines()]
    (ada,) = [line["factId"] for line in lines if line["subject"] == "Ada"]
    verified = knowledge("memory", "verify", *place, "--fact", ada, "--json").json
    assert (verified["verified"], verified["projectId"]) == (1, "p1")
    forgotten = knowledge("memory", "forget", *place, "--fact", ada, "--json").json
    assert (forgotten["counts"]["facts"], forgotten["projectId"]) == (1, "p1")
    assert "Ada" not in knowledge("memory", "export", *place).out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("forget",), "one of --fact ID, --entity NAME, --session S or --everything"),
        (("forget", "--entity", "x", "--session", "s"), "say what is meant, one of --fact ID"),
        (("forget", "--everything"), "empties the whole memory: say --yes"),
        (("promote",), "say what is meant, one of --fact ID or --session S"),
        (("verify",), "say which facts: --fact ID"),
    ],
)
def test_wrong_options_are_told_in_words_of_the_options(
    knowledge: Knowledge, place: tuple[str, ...], arguments: tuple[str, ...], words: str
) -> None:
    done = knowledge("memory", *arguments, *place)
    assert done.code == 2
    (line,) = done.err.splitlines()
    assert words in line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_everything_is_forgotten_after_a_yes(
    knowledge: Knowledge, place: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "facts.jsonl", TRIPLES)
    knowledge("memory", "upsert", file, *place, "--session", "s1")
    monkeypatch.setattr(sys, "stdin", Terminal("no\n"))
    kept = knowledge("memory", "forget", *place, "--everything")
    assert kept.code == 1
    assert f"{place[1]}|main of project p1, 2 facts" in kept.err
    assert "nothing was forgotten" in kept.err
    assert len(knowledge("memory", "export", *place).out.splitlines()) == 2
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    done = knowledge("memory", "forget", *place, "--everything", "--json").json
    assert done["counts"]["facts"] == 2
