"""Why a named chunk is where it is in an answer, or why it is not in it.

A chunk that the caller may not read gives the same words as one that never existed: the scope is
in the one SQL query that looks it up, and everything else happens only for what that returns.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from knowledge.errors import IndexUnavailable
from knowledge.model.revision import OPEN, IndexKind
from knowledge.model.scope import TrustTier
from knowledge.retrieval.answer import ExplainedChunk, ExplainedLeg, LegState, Outcome
from knowledge.retrieval.legs import LegHits, Sources
from knowledge.retrieval.planning import Plan, scope_filter
from knowledge.retrieval.ranking import Found, Ranking, Searched
from knowledge.retrieval.request import BUILT, Leg, SearchRequest
from knowledge.storage.backend import Vector
from knowledge.storage.postgres.database import Row
from knowledge.storage.postgres.retrieval import METADATA_COVERAGE, readable_versions
from knowledge.text import bm25

NOT_FOUND: Final = "there is no chunk with this id that this client may read"
LOST: Final = "the index does not return it: run `knowledge check --suite hybrid_index`"
RAN: Final = (LegState.OK, LegState.FALLBACK)
SIGNAL_ERROR: Final = 1e-4
"""By how much the index's arithmetic differs from that of the signals."""


@dataclass(frozen=True, slots=True)
class Searching:
    """A search that is done, as an explanation needs it; ``searched`` are its collections."""

    sources: Sources
    request: SearchRequest
    plan: Plan
    searched: Sequence[Searched]
    ranking: Ranking
    embedding: Mapping[str, asyncio.Task[Vector]]
    timeout_s: float


async def explain_chunk(done: Searching, chunk_id: uuid.UUID) -> ExplainedChunk:
    """What became of the chunk in this search. Raises `DatabaseUnavailable`."""
    scope = done.plan.scope
    rows = await readable_versions(
        done.sources.database, scope.tenant_id, scope.project_id, scope.acl_entries, chunk_id
    )
    if not rows:
        return ExplainedChunk(chunk_id, Outcome.NOT_FOUND, NOT_FOUND)
    collection = rows[0]["slug"]
    part = next((p for p in done.searched if p.target.slug == collection), None)
    if part is None:
        return _filtered(chunk_id, collection, None, ["collections"])
    revision = _revision_read(part)
    row = next((r for r in rows if revision and r["from_rev"] <= revision < r["to_rev"]), None)
    if row is None:
        return _invisible(done.request, part, chunk_id, rows, revision)
    excluded = _excluding(done.request, row)
    if excluded:
        return _filtered(chunk_id, collection, revision, excluded)
    return await _placed(done, part, chunk_id, row, revision)


def _revision_read(part: Searched) -> int:
    """The revision that the legs read, or would have read; 0 when nothing serves."""
    read = [leg.report.index_revision or 0 for leg in part.legs]
    return max(read, default=0) or max(
        (served.revision for served in part.target.served.values()), default=0
    )


def _filtered(
    chunk_id: uuid.UUID, collection: str, revision: int | None, excluded: Sequence[str]
) -> ExplainedChunk:
    return ExplainedChunk(
        chunk_id,
        Outcome.FILTERED,
        f"excluded by the request's {', '.join(excluded)}",
        collection=collection,
        index_revision=revision,
        excluded_by=tuple(excluded),
    )


def _invisible(
    request: SearchRequest,
    part: Searched,
    chunk_id: uuid.UUID,
    rows: Sequence[Row],
    revision: int,
) -> ExplainedChunk:
    """No version of the chunk is visible at the revision read: gone, not yet, or at others."""
    target = part.target
    is_pinned = bool({target.slug, str(target.collection_id)} & request.pinned.keys())
    later = [row["from_rev"] for row in rows if row["from_rev"] > revision]
    read = f"revision {revision} was read" if revision else "nothing serves yet"
    if later and not is_pinned:
        outcome, reason = Outcome.NOT_SERVED_YET, f"committed at revision {later[0]}; {read}"
    else:
        ranges = ", ".join(_range(row) for row in rows)
        outcome, reason = Outcome.NOT_AT_THIS_REVISION, f"visible in {ranges}; {read}"
    return ExplainedChunk(
        chunk_id, outcome, reason, collection=target.slug, index_revision=revision or None
    )


def _range(row: Row) -> str:
    return f"[{row['from_rev']}, {'…' if row['to_rev'] == OPEN else row['to_rev']})"


def _excluding(request: SearchRequest, row: Row) -> list[str]:
    """The request fields that the chunk does not meet, in their wire names."""
    filters, trust = request.filters, request.min_trust
    updated_after, updated_at = filters.updated_after, row["updated_at"]
    meets = {
        "sourceId": filters.source_id in (None, row["source_id"]),
        "pathPrefix": row["path"].startswith(filters.path_prefix or ""),
        "kind": filters.kind in (None, row["kind"]),
        "language": filters.language in (None, row["language"]),
        "tags": set(filters.tags) <= set(row["tags"]),
        "updatedAfter": not updated_after or bool(updated_at and updated_at >= updated_after),
        "minTrust": not trust or TrustTier(row["trust_tier"]).at_least(trust),
        "legs": any(leg in request.legs for leg in BUILT),
    }
    return [name for name, is_met in meets.items() if not is_met]


async def _placed(
    done: Searching, part: Searched, chunk_id: uuid.UUID, row: Row, revision: int
) -> ExplainedChunk:
    key = row["object_id"]
    found = part.found.get(key)
    ranking, top_k = done.ranking, done.request.top_k
    signals = {
        Leg.VECTOR: found.signals.get(Leg.VECTOR) if found else await _cosine(done, part, key),
        Leg.FULL_TEXT: bm25.score(part.weights, row["words"], row["title_words"]),
        Leg.METADATA: _share(part.weights.text, row["metadata_terms"] or ()),
    }
    rank = ranking.order.index(key) + 1 if found else None
    if rank is None:
        outcome, reason = Outcome.NOT_A_CANDIDATE, "no leg has it among its hits: see legs"
    elif rank <= top_k:
        outcome, reason = Outcome.RETURNED, f"rank {rank} of the answer"
    else:
        outcome = Outcome.BELOW_TOP_K
        reason = f"rank {rank} of {len(ranking.order)} candidates: topK is {top_k}"
    return ExplainedChunk(
        chunk_id,
        outcome,
        reason,
        collection=part.target.slug,
        index_revision=revision,
        legs=tuple(
            _leg(leg, key, part, found, signals[leg.report.leg], is_turn=row["session"] is not None)
            for leg in part.legs
            if leg.report.leg in signals
        ),
        fusion_rank=_place(ranking.fusion, key),
        rerank_rank=_place(ranking.blended, key),
        rank=rank,
        score=round(ranking.scores[key], 6) if found else None,
    )


async def _cosine(done: Searching, part: Searched, key: uuid.UUID) -> float | None:
    """From the stored vector; None where there is none, or the query has none."""
    served = part.target.served.get(IndexKind.VECTOR)
    task = done.embedding.get((served and served.generation.embedding_profile) or "")
    if not served or not task or not task.done() or task.cancelled() or task.exception():
        return None
    scope = scope_filter(done.plan, part.target, served.revision, done.request.filters)
    try:
        async with asyncio.timeout(done.timeout_s):
            vectors = await done.sources.index.vectors(served.generation, [key], scope)
    except (IndexUnavailable, TimeoutError):
        return None
    return float(vectors[key] @ task.result()) if key in vectors else None


def _share(weights: Mapping[str, float], held: Sequence[str]) -> float:
    """The share of the query's weight that path, title and tags hold."""
    total = sum(weights.values())
    return sum(weights.get(term, 0.0) for term in held) / total if total else 0.0


def _leg(
    leg: LegHits,
    key: uuid.UUID,
    part: Searched,
    found: Found | None,
    signal: float | None,
    *,
    is_turn: bool,
) -> ExplainedLeg:
    name = leg.report.leg
    ranked = [c.signals.get(name, 0.0) for c in part.found.values() if name in c.ranks]
    weakest = min(ranked, default=None)
    rank = found.ranks.get(name) if found else None
    ran = leg.report.state in RAN
    return ExplainedLeg(
        leg=name,
        state=leg.report.state,
        index_revision=leg.report.index_revision,
        rank=rank,
        signal=None if signal is None else round(signal, 6),
        weakest=None if weakest is None else round(weakest, 6),
        reason=None
        if rank
        else _why_unranked(leg, key, signal, ranked, is_turn=is_turn)
        if ran
        else leg.report.reason,
    )


def _why_unranked(
    leg: LegHits,
    key: uuid.UUID,
    signal: float | None,
    ranked: Sequence[float],
    *,
    is_turn: bool,
) -> str:
    """Why a leg that ran does not rank the chunk; ``ranked`` are the signals of those it ranks."""
    name = leg.report.leg
    if signal is None:  # the index that has just answered has no vector of it
        return LOST
    if name is Leg.FULL_TEXT and not signal:
        return "it holds none of the query's words"
    if name is Leg.METADATA and signal < METADATA_COVERAGE:
        return (
            f"path, title and tags hold {signal:.0%} of the query's weight,"
            f" {METADATA_COVERAGE:.0%} are needed"
        )
    if any(hit.object_id == key for hit in leg.hits):
        return f"the index found it, but beyond the {len(ranked)} that are ranked"
    # Turns are ranked with those around them, which no single signal tells.
    if not is_turn and _is_lost(leg, signal, ranked):
        return LOST
    return f"its rank is beyond the {len(ranked)} hits of this leg"


def _is_lost(leg: LegHits, signal: float, ranked: Sequence[float]) -> bool:
    """Whether the index would have returned the chunk if it held it.

    It ranks every item by the signal, and stops only at as many as are asked for. PostgreSQL does
    not: it reads a part of what common words find.
    """
    if leg.report.leg is Leg.METADATA or leg.report.state is LegState.FALLBACK:
        return False
    return len(leg.hits) < leg.asked or signal > min(ranked, default=signal) + SIGNAL_ERROR


def _place(scores: Mapping[uuid.UUID, float], key: uuid.UUID) -> int | None:
    """The 1-based place by score, ties by id; None when it has none."""
    if key not in scores:
        return None
    mine = (-scores[key], key.int)
    return 1 + sum((-score, other.int) < mine for other, score in scores.items())
