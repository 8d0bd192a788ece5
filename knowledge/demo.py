"""``make demo``: the whole product on the project's own documents and sources.

Starts the stack, creates two tenants, publishes two collections, and asks over HTTP with real
tokens: answers that differ by ACL, an answer after a changed file, and one pinned to before.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from knowledge.client import Answer, Candidate, KnowledgeClient, RequestRefused
from knowledge.errors import KnowledgeError
from knowledge.home import Home

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("knowledge", "retrieval_api", "orchestration", "dbt_like_checks")
CHANGED = "operating.md"


@dataclass(frozen=True, slots=True)
class Person:
    """One caller of the demo, with real credentials."""

    name: str
    client_id: str
    client: KnowledgeClient


def main() -> None:
    """Everything in sight of the reader, from a stack that may not run yet to cited answers."""
    started = time.monotonic()
    home = Home.locate()
    _say(f"knowledge demo (state in {home.root})")
    addresses = _start()
    engineer, architect, stranger = _people(addresses["api"])
    documents = _publish_both(home)
    _ask_both(engineer, stranger)
    _ask_under_an_acl(engineer, architect)
    _ask_before_and_after_a_change(engineer, documents)
    _ask_across_tenants(stranger)
    _farewell(addresses, stranger, time.monotonic() - started)


# --- the chapters -----------------------------------------------------------------------


def _start() -> dict[str, str]:
    """The address of each part, by its name."""
    _heading("1. The stack: servers, Dagster, API")
    _show("up", "--detach")
    return {part["name"]: part["url"] for part in _json("status", "--json")["parts"]}


def _people(api: str) -> tuple[Person, Person, Person]:
    _heading("2. Two tenants with clients")
    return (
        _person(api, "an engineer of acme", "acme", "handbook", "engineers"),
        _person(api, "an architect of acme", "acme", "handbook", "engineers,architects"),
        _person(api, "a developer of globex", "globex", "platform", "developers"),
    )


def _publish_both(home: Home) -> Path:
    """Returns the working copy of the documents."""
    _heading("3. Publish: the project's documents to acme, its sources to globex")
    documents = _working_copy(home)
    _publish_documents(documents)
    where = ("--tenant", "globex", "--project", "platform", "--collection", "source")
    paths = [str(ROOT / name) for name in SOURCES]
    _publish(*paths, *where, "--as", "documents", "--source", "repository")
    return documents


def _ask_both(engineer: Person, stranger: Person) -> None:
    _heading("4. Ask")
    _ask(engineer, "how does a run make a new revision serve", "handbook", "docs")
    _ask(stranger, "fuse rankings of several legs by reciprocal rank", "platform", "source")
    _ask(
        stranger,
        "held lease fencing token",
        "platform",
        "source",
        filters={"pathPrefix": "knowledge/storage/"},
    )


def _ask_under_an_acl(engineer: Person, architect: Person) -> None:
    _heading("5. The same question by two callers: an ACL decides")
    _say("The decision records were published with --acl group:architects.")
    question = "why are term statistics frozen"
    _ask(engineer, question, "handbook", "docs")
    _ask(architect, question, "handbook", "docs")


def _ask_before_and_after_a_change(engineer: Person, documents: Path) -> None:
    _heading("6. A file changes, a delta is published, and the revision before stays readable")
    before = _collection("acme", "docs")
    _change(documents)
    _publish(str(documents), *_docs(), "--source", "docs", "--mode", "delta")
    after = _collection("acme", "docs")
    embedded = after["tenantVectors"] - before["tenantVectors"]
    _say(
        f"Revision {before['headRevision']} became {after['headRevision']};"
        f" {embedded} of {after['chunks']} chunks were embedded, the rest was there."
    )
    question = "which bell rings in the engine room"
    _ask(engineer, question, "handbook", "docs", top_k=1)
    pin = before["headRevision"]
    _say(f"Pinned to revision {pin}, as if nothing had happened:")
    _ask(engineer, question, "handbook", "docs", top_k=1, pinned_revisions={"docs": pin})


def _ask_across_tenants(stranger: Person) -> None:
    _heading("7. Another tenant's collection does not exist")
    try:
        stranger.client.search("anything", project_id="platform", collections=["docs"])
    except RequestRefused as refused:
        _say(f"{stranger.name} asks for 'docs': HTTP {refused.status}, {refused.message}")
    else:
        raise KnowledgeError("globex could read acme's collection")


# --- steps ------------------------------------------------------------------------------


def _docs() -> tuple[str, ...]:
    return ("--tenant", "acme", "--project", "handbook", "--collection", "docs")


def _working_copy(home: Home) -> Path:
    """A copy of the documents that the demo may change."""
    copy = home.root / "demo" / "docs"
    shutil.rmtree(copy.parent, ignore_errors=True)
    shutil.copytree(ROOT / "docs", copy)
    shutil.copy(ROOT / "README.md", copy / "README.md")
    shutil.move(copy / "adr", copy.parent / "decisions")
    return copy


def _publish_documents(documents: Path) -> None:
    _publish(str(documents), *_docs(), "--source", "docs", wait=False)
    decisions = str(documents.parent / "decisions")
    _publish(decisions, *_docs(), "--source", "decisions", "--acl", "group:architects")


def _publish(*arguments: str, wait: bool = True) -> None:
    _show("publish", *arguments, *(["--wait"] if wait else []))


def _change(documents: Path) -> None:
    path = documents / CHANGED
    bell = time.strftime("%H:%M:%S")
    path.write_text(
        f"{path.read_text()}\n## The bell\n\nAt {bell} a small brass bell was hung in the engine"
        " room; it rings whenever a revision is switched.\n"
    )
    _say(f"{CHANGED} got a new section.")


def _person(api: str, name: str, tenant: str, project: str, groups: str) -> Person:
    created = _json(
        "clients", "create", "--tenant", tenant, "--projects", project, "--groups", groups,
        "--scopes", "read", "--json",
    )  # fmt: skip
    _say(f"{name}: client {created['clientId']}, groups {groups}")
    client = KnowledgeClient(api, created["clientId"], created["clientSecret"])
    return Person(name, created["clientId"], client)


def _collection(tenant: str, slug: str) -> dict[str, Any]:
    for entry in _json("status", "--json")["collections"]:
        if (entry["tenant"], entry["collection"]) == (tenant, slug):
            return dict(entry)
    raise KnowledgeError(f"there is no collection {tenant}.{slug}")


def _ask(person: Person, question: str, project: str, collection: str, **options: Any) -> None:
    top_k = options.pop("top_k", 3)
    answer = person.client.search(
        question, project_id=project, collections=[collection], top_k=top_k, **options
    )
    _say(f"\n{person.name} asks: {question!r}")
    for number, candidate in enumerate(answer.candidates, start=1):
        _show_candidate(number, candidate)
    if not answer.candidates:
        _say("  nothing found")
    _say(f"  legs: {_legs(answer)}")


def _show_candidate(number: int, candidate: Candidate) -> None:
    cited = candidate.citation
    lines = "" if cited.lines is None else ":{}-{}".format(*cited.lines)
    signals = ", ".join(f"{leg} {value:.2f}" for leg, value in cited.signals.items())
    _say(
        f"  {number}. {cited.score:.2f}  {cited.path}{lines}\n"
        f"     {cited.collection}@{cited.index_revision}, {cited.source_id}"
        f" {(cited.source_version or '')[:19]}, {cited.embedding_profile_version}, {cited.trust_tier},"
        f" signals: {signals}"
    )
    text = textwrap.shorten(" ".join(candidate.text.split()), 220, placeholder=" …")
    _say(textwrap.indent(textwrap.fill(text, 92), "     | "))


def _legs(answer: Answer) -> str:
    return ", ".join(
        f"{leg.leg} {leg.state}"
        + (f" ({leg.count} from revision {leg.index_revision})" if leg.index_revision else "")
        for leg in answer.legs
    )


def _farewell(addresses: dict[str, str], person: Person, seconds: float) -> None:
    _heading(f"Done in {seconds:.0f} s. The stack keeps running")
    _say(f"  Dagster UI   {addresses['dagster-webserver']}  (assets, lineage, checks, runs)")
    _say(f"  API docs     {addresses['api']}/docs")
    _say("  more         .venv/bin/knowledge status")
    _say(
        f"               .venv/bin/knowledge search 'frozen statistics' --tenant globex --project platform --as {person.client_id}"
    )
    _say("  stop it      make down")


# --- the command line, as a person would use it -----------------------------------------


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "knowledge.cli.main", *arguments]


def _show(*arguments: str) -> None:
    """Run a command in sight of the reader."""
    shown = " ".join(str(a).replace(f"{ROOT}/", "") for a in arguments)
    _say(f"$ knowledge {shown}")
    if subprocess.run(_command(*arguments), check=False).returncode:
        raise KnowledgeError(f"the demo stops here: knowledge {arguments[0]} failed")


def _json(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(_command(*arguments), check=False, capture_output=True, text=True)
    if done.returncode:
        raise KnowledgeError(done.stderr.strip() or f"knowledge {arguments[0]} failed")
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def _heading(text: str) -> None:
    _say(f"\n=== {text} ===")


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    try:
        main()
    except KnowledgeError as error:
        sys.exit(f"demo: {error.message}")
