"""Facts are told, corrected and retracted here: one transaction a batch, one writer a project.

Nothing is rewritten. A new telling of a fact closes the belief in the one before; a fact that
arrives late is written closed when a later telling is known. Which fact of a functional
predicate ends which is not written at all: `reading` computes it, so order cannot matter.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from knowledge.errors import NotFound
from knowledge.model.event import GRAPH_FACTS_UPDATED, OutboundEvent
from knowledge.model.fact import Closing, Domain, Statement, name_key
from knowledge.model.scope import TrustTier
from knowledge.storage.postgres.database import Row, Transaction
from knowledge.storage.postgres.outbox import emit

TRUST: Final = {tier: len(TrustTier) - 1 - tier.rank for tier in TrustTier}
"""As it is stored: 3 for `SourceFact`, the most trusted."""

_COLUMNS: Final = (
    "telling_id, fact_id, tenant_id, project_id, place, namespace, domain, subject, subject_key,"
    " subject_type, predicate, object, object_key, object_type, valid_from, valid_from_precision,"
    " valid_to, valid_to_precision, begins, starts, timeline, observed_at, confidence, trust_tier,"
    " trust, verified, principal, source_id, source_version, client, model, session_id, acl,"
    " collection_id, chunk_id, rule, lineage, lineage_sources, suggestion, recorded_at,"
    " closed_at, closing, closed_by"
)

Order = tuple[datetime, float, str, uuid.UUID]
"""Of two tellings the greater is the later: observed, confidence, source version, id."""


@dataclass(frozen=True, slots=True)
class Telling:
    """A statement with its ids, ready to be written. ``timeline`` is set for a functional predicate.

    ``rule``, ``lineage`` (fact ids), ``lineage_sources`` and ``suggestion`` are those of an
    inferred fact.
    """

    telling_id: uuid.UUID
    fact_id: uuid.UUID
    statement: Statement
    timeline: uuid.UUID | None = None
    rule: str | None = None
    lineage: tuple[uuid.UUID, ...] = ()
    lineage_sources: tuple[str, ...] = ()
    suggestion: str | None = None

    def place(self, now: datetime) -> Order:
        """Its place among the tellings of its fact."""
        said = self.statement
        version = said.provenance.source_version or ""
        return said.observed_at or now, said.confidence, version, self.telling_id


@dataclass(frozen=True, slots=True)
class NewRow:
    """A telling to be written. ``outdated_by`` is a later telling that is known already."""

    telling: Telling
    recorded_at: datetime
    outdated_by: uuid.UUID | None = None


@dataclass(frozen=True, slots=True)
class LastTelling:
    """What is known of a fact: the place of its latest telling, and which one is believed."""

    place: Order
    believed: uuid.UUID | None


def lock_project(connection: Transaction, tenant_id: str, project_id: str) -> datetime:
    """Be the one writer of the project's facts until the transaction ends; returns the time then.

    Raises `NotFound` for a project that does not exist.
    """
    connection.execute(
        "select pg_advisory_xact_lock(hashtextextended(%s, 0))",
        [f"graph facts {tenant_id}/{project_id}"],
    )
    row = connection.execute(
        "select clock_timestamp() as now from projects where tenant_id = %s and project_id = %s",
        [tenant_id, project_id],
    ).fetchone()
    if row is None:
        raise NotFound(f"there is no project {project_id}")
    now: datetime = row["now"]
    return now


def register_sources(
    connection: Transaction, tenant_id: str, project_id: str, source_ids: Iterable[str]
) -> None:
    """Make the sources of facts known; a known one keeps its ACL."""
    connection.execute(
        "insert into graph_sources (tenant_id, project_id, source_id)"
        " select %s, %s, source_id from unnest(%s::text[]) source_id on conflict do nothing",
        [tenant_id, project_id, sorted(set(source_ids))],
    )


def known_tellings(connection: Transaction, ids: Sequence[uuid.UUID]) -> set[uuid.UUID]:
    """Those that were told before."""
    rows = connection.execute(
        "select f.telling_id from unnest(%s::uuid[]) as k(id)"
        " cross join lateral (select telling_id from graph_facts where telling_id = k.id offset 0) f",
        [list(ids)],
    ).fetchall()
    return {row["telling_id"] for row in rows}


def last_tellings(
    connection: Transaction, fact_ids: Sequence[uuid.UUID]
) -> dict[uuid.UUID, LastTelling]:
    """Of each known fact its latest telling, and the one that is believed."""
    rows = connection.execute(
        "select f.* from unnest(%s::uuid[]) as k(id) cross join lateral ("
        "select fact_id, telling_id, observed_at, confidence, source_version, closed_at"
        " from graph_facts where fact_id = k.id offset 0) f",
        [list(fact_ids)],
    ).fetchall()
    found: dict[uuid.UUID, LastTelling] = {}
    for row in rows:
        place = (
            row["observed_at"],
            row["confidence"],
            row["source_version"] or "",
            row["telling_id"],
        )
        known = found.get(row["fact_id"])
        believed: uuid.UUID | None = known.believed if known else None
        if row["closed_at"] is None:
            believed = row["telling_id"]
        found[row["fact_id"]] = LastTelling(max(place, known.place) if known else place, believed)
    return found


def write(connection: Transaction, tenant_id: str, project_id: str, rows: Iterable[NewRow]) -> None:
    """Add rows; a policy keeps them from being copied into the table itself."""
    connection.execute(
        "create temp table if not exists told_facts (like graph_facts) on commit drop"
    )
    connection.execute("truncate told_facts")
    with connection.cursor().copy(f"copy told_facts ({_COLUMNS}) from stdin") as copy:
        for row in rows:
            copy.write_row(_values(tenant_id, project_id, row))
    connection.execute("insert into graph_facts select * from told_facts")
    connection.execute(
        "insert into graph_premises (tenant_id, premise_id, fact_id)"
        " select t.tenant_id, premise, t.fact_id from told_facts t, unnest(t.lineage) premise"
        " where t.lineage is not null on conflict do nothing"
    )


def close_tellings(
    connection: Transaction,
    closed_by: Mapping[uuid.UUID, str],
    *,
    at: datetime,
    closing: Closing,
) -> None:
    """End the belief in tellings: telling id to what ended it.

    One update a row: in a joined one the planner would rather read the whole tenant.
    """
    with connection.cursor() as cursor:
        cursor.executemany(
            "update graph_facts set closed_at = %s, closing = %s, closed_by = %s"
            " where telling_id = %s",
            [(at, closing.value, by, telling) for telling, by in closed_by.items()],
        )


def _values(tenant_id: str, project_id: str, row: NewRow) -> tuple[Any, ...]:
    telling, at = row.telling, row.recorded_at
    said = telling.statement
    told = said.provenance
    observed = said.observed_at or at
    valid_from, valid_to = said.valid_from, said.valid_to
    is_inferred = telling.rule is not None
    return (
        telling.telling_id,
        telling.fact_id,
        tenant_id,
        project_id,
        f"{tenant_id}/{project_id}",
        said.namespace,
        said.domain.value,
        said.subject,
        name_key(said.subject),
        said.subject_type,
        said.predicate,
        said.object,
        name_key(said.object),
        said.object_type,
        valid_from and valid_from.at,
        valid_from and valid_from.precision.value,
        valid_to and valid_to.at,
        valid_to and valid_to.precision.value,
        valid_from.at if valid_from else "-infinity",
        said.starts(observed),
        telling.timeline,
        observed,
        said.confidence,
        said.tier.value,
        TRUST[said.tier],
        said.verified,
        told.principal,
        told.source_id,
        told.source_version,
        told.client,
        told.model,
        told.session_id,
        None if said.acl is None else list(said.acl),
        said.collection_id,
        said.chunk_id,
        telling.rule,
        list(telling.lineage) if is_inferred else None,
        list(telling.lineage_sources) if is_inferred else None,
        telling.suggestion,
        at,
        None if row.outdated_by is None else at,
        None if row.outdated_by is None else Closing.RESTATED.value,
        None if row.outdated_by is None else str(row.outdated_by),
    )


def close(
    connection: Transaction,
    fact_ids: Sequence[uuid.UUID],
    *,
    at: datetime,
    closing: Closing,
    closed_by: str,
) -> list[Row]:
    """End the belief in these facts; returns telling_id, fact_id, domain, trust_tier, source_id,
    suggestion and timeline of those that were believed."""
    rows = connection.execute(
        "select f.* from unnest(%s::uuid[]) as k(id) cross join lateral ("
        "select telling_id, fact_id, domain, trust_tier, source_id, suggestion, timeline from graph_facts"
        " where fact_id = k.id and closed_at is null offset 0) f",
        [list(dict.fromkeys(fact_ids))],
    ).fetchall()
    tellings = {row["telling_id"]: closed_by for row in rows}
    close_tellings(connection, tellings, at=at, closing=closing)
    return rows


def find_for_writing(
    connection: Transaction,
    project_id: str,
    fact_id: uuid.UUID,
    *,
    acl: Sequence[str] | None,
    denied: Iterable[str],
) -> Row | None:
    """Trust, tier and principal of a fact's last telling, if the writer sees it (None: all)."""
    return connection.execute(
        "select f.trust, f.trust_tier, f.principal, f.rule, f.suggestion, f.closed_at, f.closing"
        " from graph_facts f"
        " where f.fact_id = %(fact)s and f.project_id = %(project)s and (%(acl)s::text[] is null"
        " or (f.acl is null or f.acl && %(acl)s)"
        " and (f.source_id is null or f.source_id <> all(%(denied)s))"
        " and (f.lineage_sources is null or not f.lineage_sources && %(denied)s)"
        " and (f.chunk_id is null"
        "      or chunk_is_readable(f.project_id, %(acl)s, f.collection_id, f.chunk_id)))"
        " order by f.closed_at desc nulls first limit 1",
        {
            "fact": fact_id,
            "project": project_id,
            "acl": None if acl is None else list(acl),
            "denied": sorted(denied),
        },
    ).fetchone()


def confirm(connection: Transaction, suggestion: uuid.UUID, *, at: datetime, principal: str) -> Row:
    """Close the suggested telling and open the same as confirmed; returns telling_id, domain and
    timeline of the new one."""
    values = {"fact": suggestion, "at": at, "by": principal, "telling": uuid.uuid4()}
    connection.execute(
        "create temp table if not exists told_facts (like graph_facts) on commit drop"
    )
    connection.execute("truncate told_facts")
    connection.execute(
        "insert into told_facts select * from graph_facts"
        " where fact_id = %(fact)s and closed_at is null",
        values,
    )
    connection.execute(
        "update graph_facts set closed_at = %(at)s, closing = 'restated', closed_by = %(telling)s::text"
        " where fact_id = %(fact)s and closed_at is null",
        values,
    )
    connection.execute(
        "update told_facts set telling_id = %(telling)s, suggestion = 'confirmed',"
        " confirmed_by = %(by)s, recorded_at = %(at)s",
        values,
    )
    row = connection.execute(
        "insert into graph_facts select * from told_facts returning telling_id, domain, timeline"
    ).fetchone()
    assert row is not None
    return row


def premises_after(
    connection: Transaction,
    project_id: str,
    predicates: Sequence[str],
    after: uuid.UUID | None,
    limit: int,
) -> list[uuid.UUID]:
    """Ids of the project's believed facts with these predicates, in their order, page by page."""
    rows = connection.execute(
        "select fact_id from graph_facts where project_id = %s and predicate = any(%s)"
        " and closed_at is null and (%s::uuid is null or fact_id > %s)"
        " order by fact_id limit %s",
        [project_id, list(predicates), after, after, limit],
    ).fetchall()
    return [row["fact_id"] for row in rows]


def resting_on(connection: Transaction, fact_ids: Sequence[uuid.UUID]) -> list[uuid.UUID]:
    """Every believed fact that rests on one of these, directly or not."""
    rows = connection.execute(
        "with recursive resting as ("
        " select fact_id from graph_premises where premise_id = any(%s)"
        " union select p.fact_id from graph_premises p join resting r on p.premise_id = r.fact_id)"
        " select f.fact_id from resting r cross join lateral ("
        "select fact_id from graph_facts f where f.fact_id = r.fact_id and f.closed_at is null"
        " offset 0) f",
        [list(fact_ids)],
    ).fetchall()
    return [row["fact_id"] for row in rows]


def triples_of(
    connection: Transaction, fact_ids: Sequence[uuid.UUID]
) -> list[tuple[str, str, str]]:
    """Subject key, predicate and object key of facts, believed or not."""
    rows = connection.execute(
        "select distinct f.subject_key, f.predicate, f.object_key from unnest(%s::uuid[]) as k(id)"
        " cross join lateral (select subject_key, predicate, object_key from graph_facts"
        " where fact_id = k.id offset 0) f order by 1, 2, 3",
        [list(fact_ids)],
    ).fetchall()
    return [(row["subject_key"], row["predicate"], row["object_key"]) for row in rows]


def settled(connection: Transaction, fact_ids: Sequence[uuid.UUID]) -> set[uuid.UUID]:
    """Those that are believed already, or were rejected once."""
    rows = connection.execute(
        "select distinct f.fact_id from unnest(%s::uuid[]) as k(id)"
        " cross join lateral (select fact_id, closed_at, closing from graph_facts"
        " where fact_id = k.id offset 0) f where f.closed_at is null or f.closing = 'rejected'",
        [list(fact_ids)],
    ).fetchall()
    return {row["fact_id"] for row in rows}


_CUT: Final = """
    select distinct f.fact_id, f.domain, f.source_id
    from unnest(%(tellings)s::uuid[]) as k(id)
    cross join lateral (select * from graph_facts where telling_id = k.id offset 0) g
    cross join lateral (
        select * from graph_facts f
        where f.timeline = g.timeline and f.starts <= g.starts and f.closed_at is null offset 0
    ) f
    where (g.closed_at is null or g.closed_at = %(at)s)
      and g.suggestion is distinct from 'suggested' and f.fact_id <> g.fact_id
      and f.acl is not distinct from g.acl and g.trust >= f.trust
      and (g.chunk_id is null or chunk_is_readable(g.project_id, '{}', g.collection_id, g.chunk_id))
      and (g.starts, g.trust, g.confidence, g.observed_at, g.fact_id)
          > (f.starts, f.trust, f.confidence, f.observed_at, f.fact_id)
      and (f.valid_to is null or g.starts < f.valid_to)
      and (f.source_id is not distinct from g.source_id
           or source_readers(f.project_id, f.source_id) is not distinct from source_readers(g.project_id, g.source_id))
      and f.telling_id <> all(%(added)s::uuid[])
      and not exists (
          select from graph_facts h
          where h.timeline = f.timeline and h.starts between f.starts and g.starts
            and (h.closed_at is null  -- or it was until now, and is told anew
                 or h.closed_at = %(at)s and h.recorded_at < h.closed_at and h.closing = 'restated')
            and h.suggestion is distinct from 'suggested' and h.acl is not distinct from f.acl
            and h.trust >= f.trust and h.telling_id <> all(%(tellings)s::uuid[])
            and (h.starts, h.trust, h.confidence, h.observed_at, h.fact_id)
                > (f.starts, f.trust, f.confidence, f.observed_at, f.fact_id)
          offset 0)
"""
"""Every lookup is made by its index, one row at a time: while facts pour in, the planner knows
nothing of them yet and would look at all."""


def cut_short(
    connection: Transaction,
    tellings: Sequence[uuid.UUID],
    *,
    added: Sequence[uuid.UUID] = (),
    at: datetime,
) -> list[Row]:
    """Believed facts whose end these tellings give, opened or closed ``at`` this time, and none
    that was there before. ``added`` are those tellings whose facts are new: they had no other end.
    """
    values = {"tellings": list(tellings), "added": list(added), "at": at}
    return connection.execute(_CUT, values).fetchall()


def begun_after(connection: Transaction, tellings: Sequence[uuid.UUID]) -> list[uuid.UUID]:
    """Believed facts without ``valid_from`` that these tellings may keep from holding ever before."""
    rows = connection.execute(
        "select distinct f.fact_id from unnest(%s::uuid[]) as k(id)"
        " cross join lateral (select * from graph_facts where telling_id = k.id offset 0) g"
        " cross join lateral (select * from graph_facts f where f.timeline = g.timeline"
        " and f.starts >= g.starts and f.closed_at is null offset 0) f"
        " where f.valid_from is null and f.fact_id <> g.fact_id and f.trust <= g.trust"
        " and f.acl is not distinct from g.acl and g.suggestion is distinct from 'suggested'",
        [list(tellings)],
    ).fetchall()
    return [row["fact_id"] for row in rows]


def count(
    connection: Transaction, tenant_id: str, project_id: str, changes: Mapping[tuple[str, str], int]
) -> None:
    """Add to the counts of believed facts: (domain, tier) to difference."""
    for (domain, tier), difference in sorted(changes.items()):
        if difference:
            connection.execute(
                "insert into graph_fact_counts (tenant_id, project_id, domain, trust_tier, facts)"
                " values (%s, %s, %s, %s, %s)"
                " on conflict (tenant_id, project_id, domain, trust_tier)"
                " do update set facts = graph_fact_counts.facts + excluded.facts",
                [tenant_id, project_id, domain, tier, difference],
            )


def analyse_grown(connection: Transaction) -> None:
    """Let the planner know of facts that have doubled since it last looked."""
    connection.execute("select analyse_grown_facts()")


def announce(
    connection: Transaction,
    tenant_id: str,
    domain: Domain,
    *,
    added: int,
    closed: int,
    source_id: str | None,
) -> None:
    """Put GraphFactsUpdated of one domain into the outbox."""
    payload: dict[str, Any] = {
        "tenantId": tenant_id,
        "domain": domain.value,
        "added": added,
        "closed": closed,
    }
    if source_id is not None:
        payload["sourceId"] = source_id
    emit(connection, OutboundEvent(GRAPH_FACTS_UPDATED, tenant_id, domain.value, payload))
