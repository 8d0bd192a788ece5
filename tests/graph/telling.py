"""Facts told and asked for in this process, as the edges do it: one JSON object a fact."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from knowledge.graph.asserting import Batch, Retraction, assert_facts
from knowledge.graph.ontologies import tenant_ontology
from knowledge.graph.ontology.model import Ontology
from knowledge.graph.querying import FactAnswer, FactReader, History
from knowledge.graph.questions import FactQuestion, HistoryQuestion, Sieve
from knowledge.graph.reading import Teller, read_fact
from knowledge.graph.session import Writer, Written
from knowledge.model.fact import Domain, Fact, Statement
from knowledge.model.scope import Caller
from knowledge.runtime import Runtime
from knowledge.storage.postgres.database import Row
from tests.asking import caller_of

OPERATOR = Writer("operator")
Given = Mapping[str, Any]
_SIEVE = frozenset(Sieve.__dataclass_fields__)


def at(year: int, month: int = 1, day: int = 1) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


def fact(subject: str, predicate: str, object_: str, **fields: Any) -> dict[str, Any]:
    """A fact as it is sent, said by source ``s1`` at ``v1`` unless ``fields`` say otherwise."""
    given: dict[str, Any] = {"subject": subject, "predicate": predicate, "object": object_}
    given |= {"domain": "organization", "sourceId": "s1", "sourceVersion": "v1"} | fields
    return {name: value for name, value in given.items() if value is not None}


def owned(by: str, since: str | None = None, **fields: Any) -> dict[str, Any]:
    """A fact of a functional predicate: who owns ``billing``."""
    return fact("billing", "OWNED_BY", by, validFrom=since, **fields)


def observed(subject: str, predicate: str, object_: str, **fields: Any) -> dict[str, Any]:
    """A fact that an agent says by itself, without a source."""
    agent = {"sourceId": None, "sourceVersion": None, "client": "agent", "sessionId": "one"}
    return fact(subject, predicate, object_, **agent | fields)


def read(given: Given, ontology: Ontology, principal: str = "operator") -> Statement:
    return read_fact(given, Teller(principal, ontology, Domain.ORGANIZATION))


@dataclass
class Graph:
    """The facts of one tenant: told as the operator, asked for by a client of project ``p1``."""

    runtime: Runtime
    tenant_id: str
    reader: FactReader
    runner: asyncio.Runner
    collections: dict[str, uuid.UUID] = field(default_factory=dict)
    _caller: Caller | None = None

    @property
    def caller(self) -> Caller:
        if self._caller is None:
            self._caller = self.client()
        return self._caller

    def client(self, *, groups: Sequence[str] = (), projects: Sequence[str] = ("p1",)) -> Caller:
        return caller_of(self.runtime, self.tenant_id, projects=projects, groups=groups)

    def tell(
        self,
        *given: Given,
        project_id: str = "p1",
        writer: Writer = OPERATOR,
        retract: Sequence[uuid.UUID] = (),
        ontology: Ontology | None = None,
    ) -> Written:
        """Assert facts as one batch, with the tenant's ontology unless another is given."""
        words = ontology or tenant_ontology(self.runtime.app, self.tenant_id)
        teller = Teller(writer.principal, words, collections=self.collections.get)
        batch = Batch(
            [read_fact(each, teller) for each in given], [Retraction(each) for each in retract]
        )
        return assert_facts(
            self.runtime.app, self.tenant_id, project_id, batch, writer=writer, ontology=words
        )

    def tell_one(self, given: Given, **options: Any) -> uuid.UUID:
        """Assert one fact; returns its id."""
        (fact_id,) = self.tell(given, **options).fact_ids
        return fact_id

    def retract(self, *fact_ids: uuid.UUID, **options: Any) -> Written:
        return self.tell(retract=fact_ids, **options)

    def query(
        self, caller: Caller | None = None, *, project_id: str = "p1", **wanted: Any
    ) -> FactAnswer:
        """Ask with the fields of `FactQuestion` and of `Sieve`."""
        sieve = Sieve(**{name: wanted.pop(name) for name in _SIEVE & wanted.keys()})
        question = FactQuestion(project_id, sieve=sieve, **wanted)
        return self.runner.run(self.reader.query(caller or self.caller, question))

    def facts(self, caller: Caller | None = None, **wanted: Any) -> tuple[Fact, ...]:
        """Every fact of the answer, which must be one page."""
        answer = self.query(caller, **{"limit": 1_000} | wanted)
        assert answer.next_cursor is None
        return answer.facts

    def objects(self, caller: Caller | None = None, **wanted: Any) -> list[str]:
        return sorted(found.object for found in self.facts(caller, **wanted))

    def triples(self, caller: Caller | None = None, **wanted: Any) -> set[str]:
        """The facts found as ``subject PREDICATE object``."""
        found = self.facts(caller, **wanted)
        return {f"{each.subject} {each.predicate} {each.object}" for each in found}

    def history(self, entity: str, caller: Caller | None = None, **wanted: Any) -> History:
        question = HistoryQuestion("p1", entity, **wanted)
        return self.runner.run(self.reader.history(caller or self.caller, question))

    def now(self) -> datetime:
        """The database's time, which beliefs are recorded by."""
        return self.rows("select clock_timestamp() as now")[0]["now"]  # type: ignore[no-any-return]

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Row]:
        with self.runtime.app.tenant(self.tenant_id) as connection:
            return connection.execute(query, values).fetchall()

    def change_source(self, source_id: str, **columns: Any) -> None:
        """Set ``acl`` or ``deleted_at`` of a source of facts."""
        ((column, value),) = columns.items()
        with self.runtime.app.tenant(self.tenant_id) as connection:
            done = connection.execute(
                f"update graph_sources set {column} = %s where source_id = %s",
                [value, source_id],
            )
        assert done.rowcount

    def require_true_counts(self) -> None:
        """The kept counts are those of the rows that are believed."""
        kept = self.rows(
            "select project_id, domain, trust_tier, facts from graph_fact_counts"
            " where facts <> 0 order by 1, 2, 3"
        )
        assert kept == self.rows(
            "select project_id, domain, trust_tier, count(*) as facts from graph_facts"
            " where closed_at is null and suggestion is distinct from 'suggested' group by 1, 2, 3 order by 1, 2, 3"
        )

    def announced(self) -> list[dict[str, Any]]:
        """Payloads of GraphFactsUpdated, oldest first."""
        rows = self.rows(
            "select payload from outbox where event_type = 'GraphFactsUpdated' order by position"
        )
        return [row["payload"] for row in rows]
