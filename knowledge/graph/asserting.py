"""Facts told, corrected and retracted: planned as one batch, written in one transaction."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from knowledge.crash_points import reached
from knowledge.errors import Forbidden, InvalidFact, NotFound
from knowledge.graph.inferring import infer
from knowledge.graph.ontology.model import Ontology
from knowledge.graph.ontology.violations import violations
from knowledge.model.fact import (
    MAX_FACTS,
    Closing,
    Domain,
    Statement,
    fact_id,
    telling_id,
    timeline_id,
)
from knowledge.model.scope import TrustTier
from knowledge.storage.postgres.database import Database, Row, Transaction
from knowledge.storage.postgres.facts import writing
from knowledge.storage.postgres.facts.writing import NewRow, Telling

ANALYSED_FROM: Final = 500
"""Facts written at once from which on the planner may have to look again."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes. ``acl`` are its ACL entries; None is the operator, who may write everything.

    ``denied`` are the sources it may not read, and so may not speak for. An administrator may end
    any fact it sees; others their own, or with a telling that is trusted as much.
    """

    principal: str
    acl: tuple[str, ...] | None = None
    denied: frozenset[str] = frozenset()
    is_admin: bool = False


@dataclass(frozen=True, slots=True)
class Retraction:
    """A fact that is to be believed no longer."""

    fact_id: uuid.UUID


@dataclass(frozen=True, slots=True)
class Batch:
    """What is written together or not at all."""

    statements: Sequence[Statement] = ()
    retractions: Sequence[Retraction] = ()


@dataclass(slots=True)
class Written:
    """What a batch did. ``fact_ids`` are those of its statements, in their order.

    ``added`` counts facts that were not believed before, ``restated`` known facts told anew,
    ``outdated`` tellings older than one that is known, ``unchanged`` tellings known already.
    ``closed`` are the facts whose belief or validity ended: ``{"factId", "reason"}`` with the
    reason ``superseded``, or a `Closing`. ``suggested`` counts inferred facts, ``violations``
    what the ontology says against the statements, with how often.
    """

    fact_ids: tuple[uuid.UUID, ...] = ()
    added: int = 0
    restated: int = 0
    outdated: int = 0
    unchanged: int = 0
    closed: list[tuple[uuid.UUID, str]] = field(default_factory=list)
    suggested: int = 0
    is_inference_cut: bool = False
    violations: Counter[str] = field(default_factory=Counter)


def assert_facts(
    app: Database,
    tenant_id: str,
    project_id: str,
    batch: Batch,
    *,
    writer: Writer,
    ontology: Ontology,
) -> Written:
    """Write a batch. The same batch again changes nothing.

    Raises `InvalidFact` for more than `MAX_FACTS`, `NotFound` for a fact or source that the
    writer does not see, `Forbidden` where a lower tier would close a higher one.
    """
    with app.tenant(tenant_id) as connection:
        written = write_batch(
            connection, tenant_id, project_id, batch, writer=writer, ontology=ontology
        )
    reached("facts.committed")
    return written


def write_batch(
    connection: Transaction,
    tenant_id: str,
    project_id: str,
    batch: Batch,
    *,
    writer: Writer,
    ontology: Ontology,
) -> Written:
    """`assert_facts` as part of a transaction that its caller ends."""
    require_batch_size(len(batch.statements) + len(batch.retractions))
    tellings = [_telling(tenant_id, project_id, said, ontology) for said in batch.statements]
    _require_speakable(writer, batch.statements)
    session = FactSession.begin(connection, tenant_id, project_id, ontology)
    session.tell(tellings)
    reached("facts.told")
    session.written.violations = _against(ontology, batch.statements)
    for telling in tellings:
        if telling.statement.corrects is not None:
            session.correct(telling, writer)
    for retraction in batch.retractions:
        session.retract(retraction, writer)
    session.finish()
    reached("facts.written")
    return session.written


def require_batch_size(facts: int) -> None:
    if facts > MAX_FACTS:
        raise InvalidFact(
            f"{facts:,} facts in one request: at most {MAX_FACTS:,} are allowed, send them in several"
        )


def _telling(tenant_id: str, project_id: str, said: Statement, ontology: Ontology) -> Telling:
    known = ontology.find(said.predicate)
    is_functional = known is not None and known.functional
    fact = fact_id(tenant_id, project_id, said, functional=is_functional)
    return Telling(
        telling_id=telling_id(fact, said),
        fact_id=fact,
        statement=said,
        timeline=timeline_id(tenant_id, project_id, said)
        if is_functional and not said.is_empty
        else None,
    )


def _require_speakable(writer: Writer, statements: Iterable[Statement]) -> None:
    for said in statements:
        if said.provenance.source_id in writer.denied:
            raise NotFound(f"there is no source {said.provenance.source_id}")


def _against(ontology: Ontology, statements: Iterable[Statement]) -> Counter[str]:
    kinds = Counter(
        (said.predicate, said.domain, said.subject_type, said.object_type) for said in statements
    )
    found: Counter[str] = Counter()
    for (predicate, domain, subject_type, object_type), times in kinds.items():
        for line in violations(
            ontology,
            predicate=predicate,
            domain=domain,
            subject_type=subject_type,
            object_type=object_type,
        ):
            found[line] += times
    return found


def _latest(tellings: Iterable[Telling], now: datetime) -> dict[uuid.UUID, Telling]:
    """Of each fact the latest of these tellings."""
    latest: dict[uuid.UUID, Telling] = {}
    for telling in tellings:
        known = latest.get(telling.fact_id)
        if known is None or telling.place(now) > known.place(now):
            latest[telling.fact_id] = telling
    return latest


class FactSession:
    """One writing transaction of a project: what it changed, counted and announced at its end."""

    def __init__(
        self,
        connection: Transaction,
        tenant_id: str,
        project_id: str,
        now: datetime,
        ontology: Ontology,
    ) -> None:
        self.connection = connection
        self.tenant_id = tenant_id
        self.project_id = project_id
        self.now = now
        self.ontology = ontology
        self.written = Written()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._added: Counter[str] = Counter()
        self._closed: Counter[str] = Counter()
        self._sources: defaultdict[str, set[str | None]] = defaultdict(set)
        self._opened: list[Telling] = []
        self._ended: list[uuid.UUID] = []
        self._changed: list[uuid.UUID] = []
        self._reconsidered: list[uuid.UUID] = []

    @classmethod
    def begin(
        cls, connection: Transaction, tenant_id: str, project_id: str, ontology: Ontology
    ) -> FactSession:
        """Wait until nobody else writes facts of the project."""
        now = writing.lock_project(connection, tenant_id, project_id)
        return cls(connection, tenant_id, project_id, now, ontology)

    def tell(self, tellings: Sequence[Telling]) -> None:
        """Write tellings and note in ``written`` what became of them."""
        states = self._write(tellings)
        self.written.fact_ids = tuple(telling.fact_id for telling in tellings)
        self.written.added = states["added"]
        self.written.restated = states["restated"]
        self.written.outdated = states["outdated"]
        self.written.unchanged = len(tellings) - states.total()
        self._count()

    def _write(self, tellings: Sequence[Telling]) -> Counter[str]:
        """Write what is new of the tellings; counts of ``added`` (facts not believed before),
        ``restated`` (a later telling of one that was) and ``outdated`` (a later one is known)."""
        unique = {telling.telling_id: telling for telling in tellings}
        known = writing.known_tellings(self.connection, list(unique)) if unique else set()
        new = [telling for key, telling in unique.items() if key not in known]
        states: Counter[str] = Counter()
        if not new:
            return states
        sources = {telling.statement.provenance.source_id for telling in new}
        writing.register_sources(
            self.connection, self.tenant_id, self.project_id, [s for s in sources if s]
        )
        last = writing.last_tellings(self.connection, list({t.fact_id for t in new}))
        latest = _latest(new, self.now)
        restated, rows, added = {}, [], []
        for telling in new:
            before = last.get(telling.fact_id)
            winner = latest[telling.fact_id]
            if winner is not telling:
                states["outdated"] += 1
                rows.append(NewRow(telling, self.now, winner.telling_id))
            elif before is not None and before.place > telling.place(self.now):
                states["outdated"] += 1
                rows.append(NewRow(telling, self.now, before.place[-1]))
            else:
                is_restated = before is not None and before.believed is not None
                states["restated" if is_restated else "added"] += 1
                rows.append(NewRow(telling, self.now))
                self._note_opened(telling, is_restated=is_restated)
                if before is None or before.believed is None:
                    added.append(telling.telling_id)
                    continue
                restated[before.believed] = str(telling.telling_id)
                if before.place[1] != telling.statement.confidence:
                    self._changed.append(telling.fact_id)
        writing.close_tellings(self.connection, restated, at=self.now, closing=Closing.RESTATED)
        writing.write(self.connection, self.tenant_id, self.project_id, rows)
        opened = [row.telling for row in rows if row.outdated_by is None]
        functional = [telling.telling_id for telling in opened if telling.timeline is not None]
        self._note_cut(functional, added)
        return states

    def _note_opened(self, telling: Telling, *, is_restated: bool) -> None:
        self._opened.append(telling)
        if is_restated:
            return
        said = telling.statement
        self._counts[said.domain.value, said.tier.value] += 1
        if telling.suggestion != "suggested":
            self._added[said.domain.value] += 1
            self._sources[said.domain.value].add(said.provenance.source_id)

    def _note_cut(self, functional: Sequence[uuid.UUID], added: Sequence[uuid.UUID]) -> None:
        """Note the facts that end earlier, or begin later, because of these tellings of functional
        predicates."""
        if not functional:
            return
        for row in writing.cut_short(self.connection, functional, added=added, at=self.now):
            self._note_closed(row, "superseded")
            self._changed.append(row["fact_id"])
        self._changed.extend(writing.begun_after(self.connection, functional))

    def correct(self, telling: Telling, writer: Writer) -> None:
        """End the belief in the fact that this one replaces."""
        wrong = telling.statement.corrects
        assert wrong is not None
        if wrong == telling.fact_id:
            return
        self._end(wrong, telling.statement.tier, writer, Closing.CORRECTED, str(telling.fact_id))

    def retract(self, retraction: Retraction, writer: Writer) -> None:
        self._end(retraction.fact_id, None, writer, Closing.RETRACTED, writer.principal)

    def _end(
        self,
        wanted: uuid.UUID,
        tier: TrustTier | None,
        writer: Writer,
        closing: Closing,
        closed_by: str,
    ) -> None:
        found = writing.find_for_writing(
            self.connection, self.project_id, wanted, acl=writer.acl, denied=writer.denied
        )
        if found is None:
            raise NotFound(f"there is no fact {wanted}")
        may_end = writer.acl is None or writer.is_admin or found["principal"] == writer.principal
        if tier is None and not may_end:
            raise Forbidden(f"fact {wanted} is another's: only an administrator may retract it")
        if tier is not None and writing.TRUST[tier] < found["trust"]:
            raise Forbidden(f"fact {wanted} is a {found['trust_tier']}: a lower tier never ends it")
        self.end([wanted], closing, closed_by)

    def end(self, facts: Sequence[uuid.UUID], closing: Closing, closed_by: str) -> None:
        functional = []
        for row in writing.close(
            self.connection, facts, at=self.now, closing=closing, closed_by=closed_by
        ):
            self._counts[row["domain"], row["trust_tier"]] -= 1
            if row["suggestion"] != "suggested":
                self._note_closed(row, closing.value)
            self._ended.append(row["fact_id"])
            if row["timeline"] is not None:
                functional.append(row["telling_id"])
        if functional:  # what they bounded holds for longer now
            for row in writing.cut_short(self.connection, functional, at=self.now):
                self._changed.append(row["fact_id"])
            self._changed.extend(writing.begun_after(self.connection, functional))

    def _note_closed(self, row: Row, reason: str) -> None:
        self.written.closed.append((row["fact_id"], reason))
        self._closed[row["domain"]] += 1
        self._sources[row["domain"]].add(row["source_id"])

    def confirm(self, suggestion: uuid.UUID, principal: str) -> None:
        """Open a confirmed telling of a suggestion in the place of the suggested one."""
        row = writing.confirm(self.connection, suggestion, at=self.now, principal=principal)
        self._added[row["domain"]] += 1
        self._sources[row["domain"]].add(None)
        if row["timeline"] is not None:
            self._note_cut([row["telling_id"]], [row["telling_id"]])

    def reconsider(self, fact_ids: Sequence[uuid.UUID]) -> None:
        """Infer again from facts that are believed."""
        self._reconsidered.extend(fact_ids)

    def finish(self) -> None:
        """Withdraw what rested on what ended or changed, infer anew, count and announce."""
        premises = [*self._ended, *self._changed]
        resting = writing.resting_on(self.connection, premises) if premises else []
        self.end(resting, Closing.PREMISE, "a premise ended")
        inferred = infer(
            self.connection,
            self.tenant_id,
            self.project_id,
            self.ontology,
            now=self.now,
            opened=self._opened,
            changed=[*self._changed, *self._reconsidered],
            ended=self._ended,
            write=self._write,
        )
        self.written.suggested += inferred.suggested
        self.written.is_inference_cut = inferred.is_cut
        self._count()
        self._announce()

    def _count(self) -> None:
        """Keep the counts of believed facts, and the planner informed of a bulk load."""
        writing.count(self.connection, self.tenant_id, self.project_id, self._counts)
        if self._counts.total() >= ANALYSED_FROM:
            writing.analyse_grown(self.connection)
        self._counts.clear()

    def _announce(self) -> None:
        for name in sorted({*self._added, *self._closed}):
            sources = self._sources[name]
            writing.announce(
                self.connection,
                self.tenant_id,
                Domain(name),
                added=self._added[name],
                closed=self._closed[name],
                source_id=next(iter(sources)) if len(sources) == 1 else None,
            )
