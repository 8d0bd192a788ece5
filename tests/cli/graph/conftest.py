"""A project of facts, told and asked for on the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Done, Knowledge

CMDB = {"domain": "architecture", "sourceId": "cmdb", "sourceVersion": "v1"}


@dataclass(frozen=True)
class Graph:
    """``knowledge graph …`` on project ``p1`` of a new tenant, asked as its client ``client``."""

    knowledge: Knowledge
    tenant: str
    client: str
    folder: Path

    @property
    def place(self) -> tuple[str, ...]:
        return ("--tenant", self.tenant, "--project", "p1")

    def run(self, *arguments: object) -> Done:
        return self.knowledge("graph", *arguments)

    def write(self, *facts: Mapping[str, Any] | str) -> Path:
        """A file of facts; a text is a line as it is."""
        file = self.folder / "facts.jsonl"
        lines = [fact if isinstance(fact, str) else json.dumps(fact) for fact in facts]
        file.write_text("".join(f"{line}\n" for line in lines))
        return file

    def tell(self, *facts: Mapping[str, Any]) -> Any:
        return self.run("assert", self.write(*facts), *self.place, "--json").json

    def ask(self, verb: str, *arguments: object) -> Done:
        return self.run(verb, *arguments, *self.place, "--as", self.client)

    def facts(self, *arguments: object) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("query", *arguments, "--json").json["facts"]
        return found

    def fact_id(self, object_: str, *arguments: object) -> str:
        (found,) = self.facts("--object", object_, *arguments)
        return str(found["factId"])

    def suggestions(self) -> dict[str, str]:
        """Ids of the suggestions that wait, by what they say."""
        answer = self.run("suggestions", "list", *self.place, "--as", self.client, "--json").json[
            "facts"
        ]
        return {
            f"{fact['subject']} {fact['predicate']} {fact['object']}": fact["factId"]
            for fact in answer
        }


@pytest.fixture
def graph(knowledge: Knowledge, tenant: str, tmp_path: Path) -> Graph:
    made = knowledge(
        *("clients", "create", "--tenant", tenant, "--projects", "p1", "--groups", "eng", "--json")
    ).json
    return Graph(knowledge, tenant, made["clientId"], tmp_path)


def said(subject: str, predicate: str, object_: str, **fields: Any) -> dict[str, Any]:
    """A fact that source ``cmdb`` says at ``v1``, unless ``fields`` say otherwise."""
    return {"subject": subject, "predicate": predicate, "object": object_} | CMDB | fields


def broker(name: str, since: str, **fields: Any) -> dict[str, Any]:
    """A fact of a functional predicate."""
    return said("payments", "USES_MESSAGE_BROKER", name, validFrom=since, **fields)
