"""Facts end: the belief in them, or (by a later fact of a functional predicate) their validity."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from knowledge.model.fact import Closing
from knowledge.storage.postgres.database import Row, Transaction


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


def restricted_sources(connection: Transaction, project_id: str) -> str:
    """JSON of the sources that not everyone may read, with who may."""
    row = connection.execute(
        "select restricted_sources(%s)::text as readers", [project_id]
    ).fetchone()
    assert row is not None
    return str(row["readers"])


_VISIBLE: Final = """
    (%(acl)s::text[] is null
     or (f.acl is null or f.acl && %(acl)s)
     and (f.source_id is null or f.source_id <> all(%(denied)s))
     and (f.lineage_sources is null or not f.lineage_sources && %(denied)s)
     and (f.chunk_id is null or chunk_is_readable(f.project_id, %(acl)s, f.collection_id, f.chunk_id)))
"""
"""What the writer sees; with ``acl`` null everything."""


def visible_facts(
    connection: Transaction,
    fact_ids: Sequence[uuid.UUID],
    *,
    acl: Sequence[str] | None,
    denied: Iterable[str],
) -> set[uuid.UUID]:
    """Those that the writer sees."""
    rows = connection.execute(
        "select distinct f.fact_id from unnest(%(facts)s::uuid[]) as k(id) cross join lateral ("
        "select * from graph_facts where fact_id = k.id offset 0) f where " + _VISIBLE,
        {
            "facts": list(fact_ids),
            "acl": None if acl is None else list(acl),
            "denied": sorted(denied),
        },
    ).fetchall()
    return {row["fact_id"] for row in rows}


def find_for_writing(
    connection: Transaction,
    project_id: str,
    fact_id: uuid.UUID,
    *,
    acl: Sequence[str] | None,
    denied: Iterable[str],
) -> Row | None:
    """What a fact is and whose, by its last telling, if the writer sees it (None: all); ``teller`` is
    who told it first."""
    return connection.execute(
        "select f.trust, f.trust_tier, f.principal, f.source_id, f.namespace, f.subject_key, f.acl,"
        " f.predicate, f.rule, f.suggestion, f.closed_at, f.closing,"
        " (select t.principal from graph_facts t where t.fact_id = f.fact_id"
        "  order by t.recorded_at, t.telling_id limit 1) as teller"
        " from graph_facts f"
        " where f.fact_id = %(fact)s and f.project_id = %(project)s and "
        + _VISIBLE
        + " order by f.closed_at desc nulls first limit 1",
        {
            "fact": fact_id,
            "project": project_id,
            "acl": None if acl is None else list(acl),
            "denied": sorted(denied),
        },
    ).fetchone()


_BEFORE: Final = """
    f.closed_at is null and f.fact_id <> g.fact_id and f.acl is not distinct from g.acl
    and (f.source_id is not distinct from g.source_id
         or %(readers)s::jsonb ->> f.source_id is not distinct from %(readers)s::jsonb ->> g.source_id)
"""
_CUT: Final = f"""
    select distinct f.fact_id, f.domain, f.source_id, f.suggestion
    from unnest(%(tellings)s::uuid[]) as k(id)
    cross join lateral (select * from graph_facts where telling_id = k.id offset 0) g
    cross join generate_series(0, g.trust) as tier(trust)
    cross join lateral (
        (select * from graph_facts f
         where f.timeline = g.timeline and f.trust = tier.trust and f.suggestion is distinct from 'suggested'
           and (f.starts, f.confidence, f.observed_at, f.fact_id)
               < (g.starts, case when tier.trust = g.trust then g.confidence else 2 end,
                  g.observed_at, g.fact_id)
           and coalesce({_BEFORE}, false)
         order by f.starts desc, f.confidence desc, f.observed_at desc, f.fact_id desc limit 1)
        union all
        (select * from graph_facts f
         where f.timeline = g.timeline and f.trust = tier.trust and f.suggestion = 'suggested'
           and (f.starts, f.confidence, f.observed_at, f.fact_id)
               < (g.starts, case when tier.trust = g.trust then g.confidence else 2 end,
                  g.observed_at, g.fact_id)
           and coalesce({_BEFORE}, false)
         order by f.starts desc, f.confidence desc, f.observed_at desc, f.fact_id desc limit 1)
    ) f
    where f.telling_id not in (select unnest(%(added)s::uuid[]))
      and (g.closed_at is null or g.closed_at = %(at)s) and g.suggestion is distinct from 'suggested'
      and (g.chunk_id is null or chunk_is_readable(g.project_id, '{{}}', g.collection_id, g.chunk_id))
      and (f.valid_to is null or g.starts < f.valid_to)
      and not exists (
          select from graph_facts h
          where h.timeline = f.timeline and h.starts between f.starts and g.starts
            and (h.closed_at is null  -- or it was until now, and is told anew
                 or h.closed_at = %(at)s and h.recorded_at < h.closed_at and h.closing = 'restated')
            and h.suggestion is distinct from 'suggested' and h.acl is not distinct from f.acl
            and h.trust >= f.trust and h.telling_id not in (select unnest(%(tellings)s::uuid[]))
            and (h.starts, h.trust, h.confidence, h.observed_at, h.fact_id)
                > (f.starts, f.trust, f.confidence, f.observed_at, f.fact_id)
          offset 0)
"""
"""Of each tier only the last fact before a telling can end by it, those before end by that one; and
where that is a new one itself, nothing that was known does.

Every lookup is made by its index, one row at a time: while facts pour in, the planner knows
nothing of them yet and would look at all."""

_BEGUN: Final = """
    select distinct f.fact_id
    from unnest(%(tellings)s::uuid[]) as k(id)
    cross join lateral (select * from graph_facts where telling_id = k.id offset 0) g
    cross join generate_series(0, g.trust) as tier(trust)
    cross join lateral (
        select * from graph_facts f
        where f.timeline = g.timeline and f.starts >= g.starts and f.closed_at is null
          and f.trust = tier.trust and f.valid_from is null
          and coalesce(f.fact_id <> g.fact_id and f.acl is not distinct from g.acl, false)
        order by f.starts limit 1
    ) f
    where g.suggestion is distinct from 'suggested'
"""


def cut_short(
    connection: Transaction,
    tellings: Sequence[uuid.UUID],
    *,
    added: Sequence[uuid.UUID] = (),
    at: datetime,
    readers: str,
) -> list[Row]:
    """Believed facts whose end these tellings give, opened or closed ``at`` this time, and none
    that was there before. ``added`` are those tellings whose facts are new: they had no other end.
    """
    values = {"tellings": list(tellings), "added": list(added), "at": at, "readers": readers}
    return connection.execute(_CUT, values).fetchall()


def begun_after(connection: Transaction, tellings: Sequence[uuid.UUID]) -> list[uuid.UUID]:
    """Believed facts without ``valid_from`` that these tellings may keep from holding ever before:
    of each tier the first that follows, for those behind it begin when they were observed anyway."""
    rows = connection.execute(_BEGUN, {"tellings": list(tellings)}).fetchall()
    return [row["fact_id"] for row in rows]
