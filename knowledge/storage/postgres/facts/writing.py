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

from psycopg.errors import LockNotAvailable

from knowledge.errors import Busy, NotFound
from knowledge.model.event import GRAPH_FACTS_UPDATED, OutboundEvent
from knowledge.model.fact import Closing, Domain, Statement, name_key
from knowledge.model.scope import TrustTier
from knowledge.storage.postgres.database import Row, Transaction
from knowledge.storage.postgres.outbox import emit

TRUST: Final = {tier: len(TrustTier) - 1 - tier.rank for tier in TrustTier}
"""As it is stored: 3 for `SourceFact`, the most trusted."""

_COLUMNS: Final = (
    "telling_id, fact_id, tenant_id, project_id, scope_key, listing_key, namespace, domain, subject, subject_key,"
    " subject_type, predicate, object, object_key, object_type, valid_from, valid_from_precision,"
    " valid_to, valid_to_precision, begins, starts, timeline, observed_at, confidence, trust_tier,"
    " trust, verified, principal, source_id, source_version, client, model, session_id, acl,"
    " collection_id, chunk_id, rule, lineage, lineage_sources, suggestion, confirmed_by, recorded_at,"
    " closed_at, closing, closed_by, session_scope, verified_by"
)

LOCK_WAIT_S: Final = 30
"""How long a writer waits for those before it."""

Order = tuple[datetime, float, str, uuid.UUID]
"""Of two tellings the greater is the later: observed, confidence, source version, id."""


@dataclass(frozen=True, slots=True)
class Telling:
    """A statement with its ids, ready to be written. ``timeline`` is set for a functional predicate.

    ``rule``, ``lineage`` (fact ids), ``lineage_sources``, ``suggestion`` and ``confirmed_by`` are
    those of an inferred fact.
    """

    telling_id: uuid.UUID
    fact_id: uuid.UUID
    statement: Statement
    timeline: uuid.UUID | None = None
    rule: str | None = None
    lineage: tuple[uuid.UUID, ...] = ()
    lineage_sources: tuple[str, ...] = ()
    suggestion: str | None = None
    confirmed_by: str | None = None

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
    """What is known of a fact: the place of its latest telling, which one is believed, and whether
    that one is verified, and by whom where a person did."""

    place: Order
    believed: uuid.UUID | None
    is_verified: bool = False
    verified_by: str | None = None


def scope_key(tenant_id: str, project_id: str) -> str:
    """Tenant and project as the indexes hold them: neither holds a slash."""
    return f"{tenant_id}/{project_id}"


def lock_project(connection: Transaction, tenant_id: str, project_id: str) -> datetime:
    """Be the one writer of the project's facts until the transaction ends; returns the time that
    its facts are recorded at, which grows from one writer to the next.

    Raises `NotFound` for a project that does not exist, and `Busy` after `LOCK_WAIT_S`.
    """
    try:
        row = _lock(connection, tenant_id, project_id)
    except LockNotAvailable as error:
        raise Busy(f"facts of project {project_id} are being written: try again") from error
    if row is None:
        raise NotFound(f"there is no project {project_id}")
    written_at: datetime = row["written_at"]
    return written_at


def _lock(connection: Transaction, tenant_id: str, project_id: str) -> Row | None:
    connection.execute(f"set local lock_timeout = '{LOCK_WAIT_S}s'")
    return connection.execute(
        "insert into graph_heads (tenant_id, project_id, written_at)"
        " select tenant_id, project_id, clock_timestamp() from projects"
        " where tenant_id = %s and project_id = %s"
        " on conflict (tenant_id, project_id) do update set written_at ="
        " greatest(clock_timestamp(), graph_heads.written_at + interval '1 microsecond')"
        " returning written_at",
        [tenant_id, project_id],
    ).fetchone()


def register_sources(
    connection: Transaction, tenant_id: str, project_id: str, source_ids: Iterable[str]
) -> None:
    """Make the sources of facts known; a known one keeps its ACL."""
    connection.execute(
        "insert into graph_sources (tenant_id, project_id, source_id)"
        " select %s, %s, source_id from unnest(%s::text[]) source_id on conflict do nothing",
        [tenant_id, project_id, sorted(set(source_ids))],
    )


def known_tellings(
    connection: Transaction, ids: Sequence[uuid.UUID]
) -> dict[uuid.UUID, str | None]:
    """Those that were told before, with what closed them; None while they are believed."""
    rows = connection.execute(
        "select f.telling_id, f.closing from unnest(%s::uuid[]) as k(id) cross join lateral ("
        "select telling_id, closing from graph_facts where telling_id = k.id offset 0) f",
        [list(ids)],
    ).fetchall()
    return {row["telling_id"]: row["closing"] for row in rows}


def last_tellings(
    connection: Transaction, fact_ids: Sequence[uuid.UUID]
) -> dict[uuid.UUID, LastTelling]:
    """Of each known fact its latest telling, and the one that is believed."""
    rows = connection.execute(
        "select f.* from unnest(%s::uuid[]) as k(id) cross join lateral ("
        "select fact_id, telling_id, observed_at, confidence, source_version, verified, verified_by,"
        " closed_at"
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
        believed = known.believed if known else None
        is_verified = known.is_verified if known else False
        verified_by = known.verified_by if known else None
        if row["closed_at"] is None:
            believed, is_verified = row["telling_id"], row["verified"]
            verified_by = row["verified_by"]
        latest = max(place, known.place) if known else place
        found[row["fact_id"]] = LastTelling(latest, believed, is_verified, verified_by)
    return found


def stage(connection: Transaction) -> None:
    """An empty table ``told_facts`` with the columns of facts, until the transaction ends."""
    connection.execute(
        "create temp table if not exists told_facts (like graph_facts) on commit drop"
    )
    connection.execute("truncate told_facts")


def write(connection: Transaction, tenant_id: str, project_id: str, rows: Iterable[NewRow]) -> None:
    """Add rows; a policy keeps them from being copied into the table itself."""
    stage(connection)
    with connection.cursor().copy(f"copy told_facts ({_COLUMNS}) from stdin") as copy:
        for row in rows:
            copy.write_row(_values(tenant_id, project_id, row))
    connection.execute("insert into graph_facts select * from told_facts")
    connection.execute(
        "insert into graph_premises (tenant_id, premise_id, fact_id)"
        " select t.tenant_id, premise, t.fact_id from told_facts t, unnest(t.lineage) premise"
        " where t.lineage is not null on conflict do nothing"
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
        scope_key(tenant_id, project_id),
        scope_key(tenant_id, project_id),
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
        telling.confirmed_by,
        at,
        None if row.outdated_by is None else at,
        None if row.outdated_by is None else Closing.RESTATED.value,
        None if row.outdated_by is None else str(row.outdated_by),
        said.session_scope,
        said.verified_by,
    )


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
