"""A fact as it is selected: its columns, the window that holds for it, and the value they make."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from knowledge.model.fact import Closing, Domain, Fact, Moment, Precision, Provenance
from knowledge.model.scope import TrustTier
from knowledge.storage.postgres.database import Row

MOST_TRUSTED: Final = len(TrustTier) - 1
"""How `SourceFact` is stored; the tiers below it down to 0."""

FIELDS: Final = """
    f.fact_id, f.telling_id, f.tenant_id, f.project_id, f.namespace, f.domain, f.subject, f.subject_key,
    f.subject_type, f.predicate, f.object, f.object_key, f.object_type, w.holds_from,
    f.valid_from, f.valid_from_precision, w.holds_to, f.valid_to, f.valid_to_precision, later.fact_id as superseded_by,
    f.timeline is not null as is_functional, f.observed_at, f.recorded_at, f.closed_at, f.closing,
    f.closed_by, f.confidence, f.trust_tier, f.verified, f.principal, f.source_id, f.source_version,
    f.client, f.model, f.session_id, f.acl, f.collection_id, f.chunk_id, f.rule, f.lineage,
    f.lineage_sources, f.suggestion, f.confirmed_by, f.session_scope,
    f.verified_by
"""
_SAME_READERS: Final = """
    g.recorded_at <= %(known_at)s and (g.closed_at is null or g.closed_at > %(known_at)s)
    and g.suggestion is distinct from 'suggested' and g.acl is not distinct from f.acl
    and (g.source_id is not distinct from f.source_id
         or %(readers)s::jsonb ->> g.source_id is not distinct from %(readers)s::jsonb ->> f.source_id)
    and (g.chunk_id is null or chunk_is_readable(g.project_id, %(acl)s, g.collection_id, g.chunk_id))
    and (g.lineage_sources is null or not g.lineage_sources && %(denied)s)
"""
"""A fact ``g`` that is believed and decides about ``f`` for this reader."""

WINDOWS: Final = f"""
    left join lateral (
        select next.* from generate_series(f.trust, {MOST_TRUSTED}) as tier(trust)
        cross join lateral (
            select g.starts, g.trust, g.confidence, g.observed_at, g.fact_id from graph_facts g
            where g.timeline = f.timeline and g.trust = tier.trust and g.fact_id <> f.fact_id
              -- Of the same tier what follows it, of a higher one also what starts with it.
              and (g.starts, g.confidence, g.observed_at, g.fact_id)
                  > (f.starts, case when tier.trust = f.trust then f.confidence else -1 end,
                     f.observed_at, f.fact_id)
              and coalesce({_SAME_READERS}, false)
            order by g.starts, g.confidence, g.observed_at, g.fact_id limit 1
        ) next
        where f.timeline is not null
        order by next.starts, next.trust, next.confidence, next.observed_at, next.fact_id limit 1
    ) later on f.timeline is not null
    cross join lateral (
        select least(f.valid_to, later.starts) as holds_to,
               case when f.valid_from is null and f.timeline is not null and exists (
                        select from generate_series(f.trust, {MOST_TRUSTED}) as tier(trust)
                        cross join lateral (
                            select from graph_facts g
                            where g.timeline = f.timeline and g.trust = tier.trust
                              and g.fact_id <> f.fact_id and g.starts <= f.starts
                              and coalesce({_SAME_READERS}, false)
                            limit 1) before)
                    then f.starts else f.valid_from end as holds_from
    ) w
"""
"""``holds_from`` and ``holds_to`` of a fact ``f``, computed from what precedes and follows it on its
timeline, believed at ``known_at`` and with the same readers; needs ``acl``, ``denied`` and
``readers`` (of the sources that not everyone may read) too.

``coalesce`` keeps the planner from multiplying what it thinks of each condition: it would expect to
find none, and read and sort a whole timeline instead of going along its index to the next fact."""


def fact_of(row: Row) -> Fact:
    stated_from = _moment(row["valid_from"], row["valid_from_precision"])
    stated_to = _moment(row["valid_to"], row["valid_to_precision"])
    is_cut = row["holds_to"] is not None and row["holds_to"] != row["valid_to"]
    return Fact(
        fact_id=row["fact_id"],
        telling_id=row["telling_id"],
        tenant_id=row["tenant_id"],
        project_id=row["project_id"],
        namespace=row["namespace"],
        domain=Domain(row["domain"]),
        subject=row["subject"],
        subject_type=row["subject_type"],
        predicate=row["predicate"],
        object=row["object"],
        object_type=row["object_type"],
        valid_from=stated_from or _moment(row["holds_from"], None),
        valid_to=_moment(row["holds_to"], None) if is_cut else stated_to,
        stated_from=stated_from,
        stated_to=stated_to,
        superseded_by=row["superseded_by"] if is_cut else None,
        is_functional=row["is_functional"],
        observed_at=row["observed_at"],
        recorded_at=row["recorded_at"],
        closed_at=row["closed_at"],
        closing=None if row["closing"] is None else Closing(row["closing"]),
        closed_by=row["closed_by"],
        confidence=row["confidence"],
        tier=TrustTier(row["trust_tier"]),
        verified=row["verified"],
        provenance=Provenance(
            principal=row["principal"],
            source_id=row["source_id"],
            source_version=row["source_version"],
            client=row["client"],
            model=row["model"],
            session_id=row["session_id"],
        ),
        acl=None if row["acl"] is None else tuple(row["acl"]),
        collection_id=row["collection_id"],
        chunk_id=row["chunk_id"],
        rule=row["rule"],
        lineage=tuple(row["lineage"] or ()),
        lineage_sources=tuple(row["lineage_sources"] or ()),
        suggestion=row["suggestion"],
        confirmed_by=row["confirmed_by"],
        session_scope=row["session_scope"],
        verified_by=row["verified_by"],
    )


def _moment(at: datetime | None, precision: str | None) -> Moment | None:
    if at is None:
        return None
    return Moment(at, Precision(precision) if precision else Precision.INSTANT)
