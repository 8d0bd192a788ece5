"""One writing transaction of a project's facts: what is told and ended, and all that follows."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal

from knowledge.errors import Forbidden, NotFound
from knowledge.graph.inferring import MAX_CONCLUSIONS, infer
from knowledge.graph.ontology.model import Ontology
from knowledge.model.fact import SUGGESTED, Closing, Domain, name_key
from knowledge.storage.postgres.database import Row, Transaction
from knowledge.storage.postgres.facts import ending, inferred, writing
from knowledge.storage.postgres.facts.writing import LastTelling, NewRow, Telling

ANALYSED_FROM: Final = 500
"""Facts written at once from which on the planner may have to look again."""


State = Literal["added", "restated", "outdated", "unchanged", "ended"]


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes. ``acl`` are its ACL entries; None is the operator, who may write everything.

    ``denied`` are the sources it may not read, and so may not speak for. An administrator may end
    any fact it sees, others their own.
    """

    principal: str
    acl: tuple[str, ...] | None = None
    denied: frozenset[str] = frozenset()
    is_admin: bool = False

    @property
    def may_end_any(self) -> bool:
        return self.is_admin or self.acl is None


@dataclass(slots=True)
class Written:
    """What a batch did. ``fact_ids`` are those of its statements, in their order, ``states`` what
    became of each of these.

    ``added`` counts facts that were not believed before, ``restated`` known facts told anew,
    ``outdated`` tellings older than one that is known, ``unchanged`` tellings known already, and of
    those ``ended`` the ones that were retracted, corrected or promoted since: they stay so.
    ``closed`` are the facts whose belief or validity ended, each with its reason: ``superseded``, or
    a `Closing`. ``suggested`` counts inferred facts, ``violations``
    what the ontology says against the statements, with how often.
    """

    fact_ids: tuple[uuid.UUID, ...] = ()
    states: tuple[State, ...] = ()
    added: int = 0
    restated: int = 0
    outdated: int = 0
    unchanged: int = 0
    ended: int = 0
    closed: list[tuple[uuid.UUID, str]] = field(default_factory=list)
    suggested: int = 0
    is_inference_cut: bool = False
    violations: Counter[str] = field(default_factory=Counter)


def _latest(tellings: Iterable[Telling], now: datetime) -> dict[uuid.UUID, Telling]:
    """Of each fact the latest of these tellings."""
    latest: dict[uuid.UUID, Telling] = {}
    for telling in tellings:
        known = latest.get(telling.fact_id)
        if known is None or telling.place(now) > known.place(now):
            latest[telling.fact_id] = telling
    return latest


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What becomes of a new telling, and what was known of its fact before."""

    telling: Telling
    state: State
    before: LastTelling | None
    outdated_by: uuid.UUID | None = None


def _verified(telling: Telling, before: LastTelling | None) -> Telling:
    """What was verified stays so when it is told again."""
    if before is None or not before.is_verified or telling.statement.verified:
        return telling
    said = replace(telling.statement, verified=True, verified_by=before.verified_by)
    return replace(telling, statement=said)


def _judge(
    telling: Telling, before: LastTelling | None, latest: Telling, now: datetime
) -> _Outcome:
    """``latest`` is the latest of the fact's tellings that are new."""
    if latest is not telling:
        return _Outcome(telling, "outdated", before, latest.telling_id)
    if before is not None and before.place > telling.place(now):
        return _Outcome(telling, "outdated", before, before.place[-1])
    is_believed = before is not None and before.believed is not None
    return _Outcome(telling, "restated" if is_believed else "added", before)


def _states(
    tellings: Sequence[Telling],
    written: Mapping[uuid.UUID, State],
    known: Mapping[uuid.UUID, str | None],
) -> Iterator[State]:
    """What became of each: of one said twice in a batch the first changed something."""
    seen: set[uuid.UUID] = set()
    for telling in tellings:
        key = telling.telling_id
        if key in written and key not in seen:
            yield written[key]
        else:
            yield "ended" if known.get(key) in _ENDED else "unchanged"
        seen.add(key)


_ENDED: Final = (Closing.RETRACTED, Closing.CORRECTED, Closing.PROMOTED)


class FactSession:
    """One writing transaction of a project: what it changed, counted and announced at its end."""

    def __init__(
        self,
        connection: Transaction,
        tenant_id: str,
        project_id: str,
        now: datetime,
        ontology: Ontology,
        writer: Writer,
    ) -> None:
        self.connection = connection
        self.tenant_id = tenant_id
        self.project_id = project_id
        self.now = now
        self.ontology = ontology
        self.writer = writer
        self._readers = ending.restricted_sources(connection, project_id)
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
        cls,
        connection: Transaction,
        tenant_id: str,
        project_id: str,
        ontology: Ontology,
        writer: Writer,
    ) -> FactSession:
        """Wait until nobody else writes facts of the project."""
        now = writing.lock_project(connection, tenant_id, project_id)
        return cls(connection, tenant_id, project_id, now, ontology, writer)

    def tell(self, tellings: Sequence[Telling]) -> None:
        """Write tellings and note in ``written`` what became of them; what is new of them corrects
        what it says it corrects."""
        new, known = self._unknown(tellings)
        states = self._write(new)
        counts = Counter(states.values())
        self.written.fact_ids = tuple(telling.fact_id for telling in tellings)
        self.written.added = counts["added"]
        self.written.restated = counts["restated"]
        self.written.outdated = counts["outdated"]
        self.written.unchanged = len(tellings) - counts.total()
        self.written.ended += sum(closing in _ENDED for closing in known.values())
        self.written.states = tuple(_states(tellings, states, known))
        for telling in new:
            if telling.statement.corrects is not None:
                self._correct(telling, telling.statement.corrects)
        self._count()

    def suggest(self, tellings: Sequence[Telling]) -> None:
        """Write what was inferred; the writer is told of what it sees of it."""
        new, _known = self._unknown(tellings)
        self._write(new)
        self.written.suggested += sum(self._sees(telling) for telling in new)

    def _sees(self, telling: Telling) -> bool:
        acl, mine = telling.statement.acl, self.writer.acl
        return mine is None or (
            (acl is None or not set(acl).isdisjoint(mine))
            and self.writer.denied.isdisjoint(telling.lineage_sources)
        )

    def _unknown(
        self, tellings: Sequence[Telling]
    ) -> tuple[list[Telling], dict[uuid.UUID, str | None]]:
        """Those that were not told before, each once; and what closed those that were."""
        unique = {telling.telling_id: telling for telling in tellings}
        known = writing.known_tellings(self.connection, list(unique)) if unique else {}
        return [telling for key, telling in unique.items() if key not in known], known

    def _write(self, new: Sequence[Telling]) -> dict[uuid.UUID, State]:
        """Write new tellings; gives ``added`` (a fact not believed before), ``restated`` (a later
        telling of one that was) or ``outdated`` (a later one is known) by the telling's id."""
        if not new:
            return {}
        sources = {telling.statement.provenance.source_id for telling in new}
        writing.register_sources(
            self.connection, self.tenant_id, self.project_id, [s for s in sources if s]
        )
        last = writing.last_tellings(self.connection, list({t.fact_id for t in new}))
        new = [_verified(telling, last.get(telling.fact_id)) for telling in new]
        latest = _latest(new, self.now)
        judged = [_judge(t, last.get(t.fact_id), latest[t.fact_id], self.now) for t in new]
        restated = {
            outcome.before.believed: str(outcome.telling.telling_id)
            for outcome in judged
            if outcome.state == "restated" and outcome.before and outcome.before.believed
        }
        ending.close_tellings(self.connection, restated, at=self.now, closing=Closing.RESTATED)
        rows = [NewRow(each.telling, self.now, each.outdated_by) for each in judged]
        writing.write(self.connection, self.tenant_id, self.project_id, rows)
        self._note_written(judged)
        return {outcome.telling.telling_id: outcome.state for outcome in judged}

    def _note_written(self, judged: Sequence[_Outcome]) -> None:
        opened = [outcome for outcome in judged if outcome.state != "outdated"]
        for outcome in opened:
            self._opened.append(outcome.telling)
            if outcome.state == "added":
                self._note_added(outcome.telling)
            elif outcome.before and outcome.before.place[1] != outcome.telling.statement.confidence:
                self._changed.append(outcome.telling.fact_id)
        self._note_cut(
            [o.telling.telling_id for o in opened if o.telling.timeline is not None],
            [o.telling.telling_id for o in opened if o.state == "added"],
        )

    def _note_added(self, telling: Telling) -> None:
        """A suggestion is no fact yet: it counts when it is confirmed."""
        said = telling.statement
        if telling.suggestion != SUGGESTED:
            self._counts[said.domain.value, said.tier.value] += 1
            self._added[said.domain.value] += 1
            self._sources[said.domain.value].add(said.provenance.source_id)

    def _note_cut(self, functional: Sequence[uuid.UUID], added: Sequence[uuid.UUID]) -> None:
        """Note the facts that end earlier, or begin later, because of these tellings of functional
        predicates."""
        if not functional:
            return
        for row in ending.cut_short(
            self.connection, functional, added=added, at=self.now, readers=self._readers
        ):
            if row["suggestion"] != SUGGESTED:
                self._note_closed(row, "superseded")
            self._changed.append(row["fact_id"])
        self._changed.extend(ending.begun_after(self.connection, functional))

    def _correct(self, telling: Telling, wrong: uuid.UUID) -> None:
        """End the belief in the fact that this one replaces: who said that may take it back so, or
        an administrator, and only with a fact that is trusted as much."""
        if wrong == telling.fact_id:
            return
        found = self._find(wrong)
        said = telling.statement
        told = said.provenance
        is_own = found["source_id"] == told.source_id and (
            told.source_id is not None or found["principal"] == told.principal
        )
        readers = None if found["acl"] is None else tuple(found["acl"])
        is_same = (said.namespace, name_key(said.subject)) == (
            found["namespace"],
            found["subject_key"],
        ) and said.acl in (None, readers)
        if not ((is_own and is_same) or self.writer.may_end_any):
            raise Forbidden(
                f"fact {wrong} is corrected by who said it, with a fact about the same subject for"
                " the same readers, or by an administrator"
            )
        if writing.TRUST[said.tier] < found["trust"]:
            raise Forbidden(f"fact {wrong} is a {found['trust_tier']}: a lower tier never ends it")
        self.end([wrong], Closing.CORRECTED, str(telling.fact_id))

    def retract(self, fact: uuid.UUID) -> None:
        """End the belief in a fact, for nothing in its place: for who told it first, or an
        administrator."""
        found = self._find(fact)
        if not (found["teller"] == self.writer.principal or self.writer.may_end_any):
            raise Forbidden(f"fact {fact} is another's: only an administrator may retract it")
        self.end([fact], Closing.RETRACTED, self.writer.principal)

    def _find(self, fact: uuid.UUID) -> Row:
        """The fact, if the writer sees it."""
        found = ending.find_for_writing(
            self.connection,
            self.project_id,
            fact,
            acl=self.writer.acl,
            denied=self.writer.denied,
        )
        if found is None:
            raise NotFound(f"there is no fact {fact}")
        return found

    def end(self, facts: Sequence[uuid.UUID], closing: Closing, closed_by: str) -> None:
        functional = []
        for row in ending.close(
            self.connection, facts, at=self.now, closing=closing, closed_by=closed_by
        ):
            if row["suggestion"] != SUGGESTED:
                self._counts[row["domain"], row["trust_tier"]] -= 1
                self._note_closed(row, closing.value)
            self._ended.append(row["fact_id"])
            if row["timeline"] is not None:
                functional.append(row["telling_id"])
        if functional:  # what they bounded holds for longer now
            for row in ending.cut_short(
                self.connection, functional, at=self.now, readers=self._readers
            ):
                self._changed.append(row["fact_id"])
            self._changed.extend(ending.begun_after(self.connection, functional))

    def _note_closed(self, row: Row, reason: str) -> None:
        self.written.closed.append((row["fact_id"], reason))
        self._closed[row["domain"]] += 1
        self._sources[row["domain"]].add(row["source_id"])

    def confirm(self, suggestion: uuid.UUID) -> None:
        """Open a confirmed telling of a suggestion in the place of the suggested one."""
        row = inferred.confirm(
            self.connection, suggestion, at=self.now, principal=self.writer.principal
        )
        self._counts[row["domain"], row["trust_tier"]] += 1
        self._added[row["domain"]] += 1
        self._sources[row["domain"]].add(None)
        if row["timeline"] is not None:
            self._note_cut([row["telling_id"]], [row["telling_id"]])

    def reconsider(self, fact_ids: Sequence[uuid.UUID]) -> None:
        """Infer again from facts that are believed."""
        self._reconsidered.extend(fact_ids)

    def finish(self, *, max_conclusions: int = MAX_CONCLUSIONS) -> None:
        """Withdraw what rested on what ended or changed, infer anew, count and announce."""
        self._withdraw()
        is_cut = infer(
            self.connection,
            self.tenant_id,
            self.project_id,
            self.ontology,
            now=self.now,
            readers=self._readers,
            opened=self._opened,
            changed=[*self._changed, *self._reconsidered],
            ended=self._ended,
            write=self.suggest,
            max_conclusions=max_conclusions,
        )
        self.written.is_inference_cut = is_cut
        self._count()
        self._announce()
        self._hide()

    def _hide(self) -> None:
        """Keep from the writer what it does not see of what it caused."""
        if self.writer.acl is None or not self.written.closed:
            return
        seen = ending.visible_facts(
            self.connection,
            [fact for fact, _ in self.written.closed],
            acl=self.writer.acl,
            denied=self.writer.denied,
        )
        self.written.closed = [entry for entry in self.written.closed if entry[0] in seen]

    def _withdraw(self) -> None:
        """End what rests on facts that ended or hold for another time, and what rests on that; a
        confirmed fact that ends may change the windows of others in its turn."""
        seen: set[uuid.UUID] = set()
        while premises := {*self._ended, *self._changed} - seen:
            seen |= premises
            resting = inferred.resting_on(self.connection, list(premises))
            self.end(resting, Closing.PREMISE, "a premise ended")

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
