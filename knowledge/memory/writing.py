"""Facts that agents tell: validated and planned as one batch, redacted, bounded, written together.

A fact that is refused says why and does not hold up the others. The same call again changes
nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Literal

from knowledge.crash_points import reached
from knowledge.errors import InvalidFact
from knowledge.graph.asserting import Batch, telling_of, write_batch
from knowledge.graph.reading import Teller, read_fact
from knowledge.graph.receiving import Sender
from knowledge.graph.session import State, Written
from knowledge.model.fact import Domain, Statement, name_key, require_seen
from knowledge.model.scope import TrustTier
from knowledge.security.redaction import redact_line
from knowledge.storage.postgres.database import Database, Transaction
from knowledge.storage.postgres.facts import inferred, memories, writing
from knowledge.storage.postgres.idempotency import RepeatableRequest, answer_once

MAX_TRIPLES: Final = 1_000
"""Of one call."""

MAX_NAME_CHARS: Final = 120
MAX_RAW_CHARS: Final = 4_096
"""A longer name is refused before it is searched for secrets."""

MAX_OPEN_FACTS: Final = 10_000
MAX_ENTITIES: Final = 5_000
"""Of one memory: what is believed in it, and what that names."""

OPERATION: Final = "upsertMemory"
FIELDS: Final = frozenset(
    (
        "subject",
        "subjectType",
        "predicate",
        "object",
        "objectType",
        "validFrom",
        "validTo",
        "observedAt",
        "confidence",
    )
)
"""Of one triple, in wire names. Required: subject, predicate, object."""

_QUOTED: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")

Tier = Literal[TrustTier.AGENT_OBSERVATION, TrustTier.UNVERIFIED_MEMORY]


@dataclass(frozen=True, slots=True)
class Told:
    """Triples of one agent in one session, as they were sent, for one memory.

    ``is_of_session``: only questions that name the session recall them. ``key`` names the call for
    its sender, who may repeat it.
    """

    namespace: str
    triples: Sequence[object]
    client: str
    session_id: str
    model: str | None = None
    is_of_session: bool = False
    tier: Tier = TrustTier.AGENT_OBSERVATION
    key: str | None = None

    def content_hash(self, project_id: str) -> bytes:
        """SHA-256 of what is told, whatever the order of an object's fields."""
        parts = [project_id, self.namespace, self.triples, self.client, self.session_id, self.model]
        written = json.dumps([*parts, self.is_of_session], sort_keys=True)
        return hashlib.sha256(written.encode(errors="backslashreplace")).digest()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a triple, by its place in the call, was not written."""

    index: int
    reason: str


@dataclass(slots=True)
class Upserted:
    """What became of a call. ``facts`` are place, id and state of every triple that was not refused.

    ``open_facts`` and ``entities`` are what the memory holds afterwards, ``redacted`` counts
    triples that were written without something secret.
    """

    namespace: str
    facts: list[tuple[int, uuid.UUID, State]] = field(default_factory=list)
    closed: list[tuple[uuid.UUID, str]] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    redacted: int = 0
    open_facts: int = 0
    entities: int = 0

    def count(self, *states: State) -> int:
        return sum(state in states for _, _, state in self.facts)


def upsert(app: Database, sender: Sender, told: Told) -> dict[str, Any]:
    """Write a call, in one transaction; returns its wire form.

    Raises `InvalidFact` for more than `MAX_TRIPLES` or for a provenance that is none, and
    `Conflict` for a key that came with other triples.
    """
    require_call_size(len(told.triples))
    scope = sender.scope
    with app.tenant(scope.tenant_id) as connection:

        def write() -> dict[str, Any]:
            return upserted_to_wire(write_told(connection, sender, told))

        if told.key is None:
            answer = write()
        else:
            request = RepeatableRequest(
                tenant_id=scope.tenant_id,
                principal=scope.principal,
                operation=OPERATION,
                key=told.key,
                content_hash=told.content_hash(scope.project_id),
            )
            answer = answer_once(connection, request, write)
    reached("memory.committed")
    return answer


def require_call_size(triples: int) -> None:
    """Raises `InvalidFact` for more than `MAX_TRIPLES`."""
    if triples > MAX_TRIPLES:
        raise InvalidFact(
            f"{triples:,} triples in one call: at most {MAX_TRIPLES:,} are allowed, send them in several"
        )


def write_told(connection: Transaction, sender: Sender, told: Told) -> Upserted:
    """`upsert` as part of a transaction that its caller ends."""
    result = Upserted(told.namespace)
    write_statements(connection, sender, _read(sender, told, result), result)
    return result


def write_statements(
    connection: Transaction,
    sender: Sender,
    statements: Sequence[tuple[int, Statement]],
    result: Upserted,
) -> None:
    """Write statements of the memory of ``result``, each with its place, as far as there is room;
    what becomes of them is added to ``result``."""
    scope, namespace = sender.scope, result.namespace
    # From here on nobody else writes to the project, so that the bounds hold.
    at = writing.lock_project(connection, scope.tenant_id, scope.project_id)
    observed = _observed_anew(connection, sender, statements, at)
    kept = _within_bounds(connection, sender, namespace, observed, result)
    written = _write(connection, sender, [said for _, said in kept])
    memories.note_written(connection, scope.tenant_id, scope.project_id, namespace, at)
    places = [place for place, _ in kept]
    result.facts += zip(places, written.fact_ids, written.states, strict=True)
    result.closed = written.closed
    result.refused.sort(key=lambda refusal: refusal.index)
    result.open_facts, result.entities = memories.count_open(
        connection, scope.tenant_id, scope.project_id, namespace
    )
    reached("memory.written")


def _observed_anew(
    connection: Transaction,
    sender: Sender,
    statements: Sequence[tuple[int, Statement]],
    at: datetime,
) -> list[tuple[int, Statement]]:
    """What is said again after something else took its place holds from now on: the owner was A,
    then B, and is A again. Only where nobody says since when it holds."""
    scope = sender.scope
    undated = {
        telling_of(scope.tenant_id, scope.project_id, said, sender.ontology).telling_id: place
        for place, said in statements
        if said.valid_from is None and said.observed_at is None
    }
    anew = {undated[telling] for telling in memories.gone_back(connection, list(undated))}
    return [
        (place, replace(said, observed_at=at) if place in anew else said)
        for place, said in statements
    ]


def _write(connection: Transaction, sender: Sender, statements: Sequence[Statement]) -> Written:
    scope = sender.scope
    return write_batch(
        connection,
        scope.tenant_id,
        scope.project_id,
        Batch(statements),
        writer=sender.writer,
        ontology=sender.ontology,
    )


def _read(sender: Sender, told: Told, result: Upserted) -> list[tuple[int, Statement]]:
    """The triples that can be told, each with its place."""
    teller = Teller(
        sender.scope.principal, sender.ontology, Domain.AGENT_EXPERIENCE, writes_memory=True
    )
    statements = []
    for place, given in enumerate(told.triples):
        try:
            triple, is_redacted = redacted_names(given, FIELDS)
            said = read_fact({**triple, **_provenance(told)}, teller)
        except InvalidFact as error:
            # Answers are kept for those who repeat a call: they quote nothing of what was sent.
            result.refused.append(Refusal(place, _QUOTED.sub("'…'", error.message)))
            continue
        if told.is_of_session:
            said = replace(said, session_scope=said.provenance.session_id)
        result.redacted += is_redacted
        statements.append((place, said))
    return statements


def _provenance(told: Told) -> dict[str, Any]:
    return {
        "namespace": told.namespace,
        "trustTier": told.tier.value,
        "client": told.client,
        "model": told.model,
        "sessionId": told.session_id,
    }


def redacted_names(given: object, fields: frozenset[str]) -> tuple[dict[str, Any], bool]:
    """A triple of these fields without secrets in its names, and whether there were any.

    Raises `InvalidFact` for what is no triple, and for a name of more than `MAX_NAME_CHARS`.
    """
    if not isinstance(given, dict):
        raise InvalidFact("a triple is a JSON object")
    if unknown := sorted(map(str, given.keys() - fields)):
        raise InvalidFact(f"unknown field {unknown[0][:80]!r}: use {', '.join(sorted(fields))}")
    triple, found = dict(given), False
    for end in ("subject", "object"):
        name = triple.get(end)
        if not isinstance(name, str):
            continue
        if len(name) <= MAX_RAW_CHARS:
            safe = redact_line(name)
            found = found or bool(safe.found)
            name = triple[end] = safe.text
        require_seen(name, end)
        if len(name) > MAX_NAME_CHARS:
            raise InvalidFact(
                f"{end} has {len(name):,} characters, at most {MAX_NAME_CHARS} are allowed: name the"
                " thing, and say the rest in further facts"
            )
    return triple, found


def _within_bounds(
    connection: Transaction,
    sender: Sender,
    namespace: str,
    statements: Sequence[tuple[int, Statement]],
    result: Upserted,
) -> list[tuple[int, Statement]]:
    """Those that the memory has room for, in their order; the others are refused."""
    scope = sender.scope
    place = scope.tenant_id, scope.project_id
    facts, entities = memories.count_open(connection, *place, namespace)
    ids = [telling_of(*place, said, sender.ontology).fact_id for _, said in statements]
    if facts + len(set(ids)) <= MAX_OPEN_FACTS and entities + 2 * len(ids) <= MAX_ENTITIES:
        return list(statements)
    held = inferred.believed(connection, ids)
    keys = {key for _, said in statements for key in _keys(said)}
    known = memories.known_keys(connection, *place, namespace, sorted(keys))
    kept = []
    for (index, said), fact in zip(statements, ids, strict=True):
        new = set(_keys(said)) - known
        if fact not in held and facts + 1 > MAX_OPEN_FACTS:
            reason = f"the memory {namespace} holds {MAX_OPEN_FACTS:,} facts: forget some first"
        elif entities + len(new) > MAX_ENTITIES:
            reason = f"the memory {namespace} names {MAX_ENTITIES:,} entities: forget some first"
        else:
            facts += fact not in held
            entities += len(new)
            held.add(fact)
            known |= new
            kept.append((index, said))
            continue
        result.refused.append(Refusal(index, reason))
    return kept


def _keys(said: Statement) -> Iterable[str]:
    return name_key(said.subject), name_key(said.object)


def upserted_to_wire(done: Upserted) -> dict[str, Any]:
    """Ids, states and reasons: never a name, so that the answer may be kept."""
    return {
        "namespace": done.namespace,
        "counts": {
            "added": done.count("added"),
            "closed": len(done.closed),
            "unchanged": done.count("unchanged", "ended", "outdated"),
            "restated": done.count("restated"),
            "refused": len(done.refused),
            "redacted": done.redacted,
        },
        "facts": [
            {"index": index, "factId": str(fact), "state": state}
            for index, fact, state in done.facts
        ],
        "closed": [{"factId": str(fact), "reason": reason} for fact, reason in done.closed],
        "refused": [{"index": each.index, "reason": each.reason} for each in done.refused],
        "open": {"facts": done.open_facts, "entities": done.entities},
    }
