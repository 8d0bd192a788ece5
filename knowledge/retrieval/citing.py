"""Citations: what every candidate rests on."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping

from knowledge.model.revision import IndexKind
from knowledge.retrieval.answer import Candidate, Citation, Explanation, FactCandidate, FactCitation
from knowledge.retrieval.facts import FoundFact
from knowledge.retrieval.ranking import Contender, Found, Ranking
from knowledge.retrieval.request import SearchRequest


def cite(
    request: SearchRequest,
    ranking: Ranking,
    chunks: Mapping[uuid.UUID, Found],
    facts: Mapping[uuid.UUID, FoundFact],
) -> list[Candidate | FactCandidate]:
    """The first ``top_k`` of the ranking with text and citation."""
    return [
        _candidate(chunks[key], ranking, key, explain=request.explain)
        if key in chunks
        else _fact(facts[key], ranking, key, explain=request.explain)
        for key in ranking.order[: request.top_k]
    ]


def _fact(found: FoundFact, ranking: Ranking, key: uuid.UUID, *, explain: bool) -> FactCandidate:
    return FactCandidate(
        text=found.text,
        citation=FactCitation(
            fact=found.fact,
            score=round(ranking.scores[key], 6),
            signals=_signals(found),
        ),
        explanation=_explanation(found, ranking, key) if explain else None,
    )


def _candidate(found: Found, ranking: Ranking, key: uuid.UUID, *, explain: bool) -> Candidate:
    row = found.row
    extras = json.loads(row["extras"])
    return Candidate(
        text=row["text"],
        title=row["title"],
        kind=row["kind"],
        language=row["language"],
        tags=tuple(extras["tags"]),
        metadata=extras["metadata"],
        citation=Citation(
            chunk_id=row["chunk_id"],
            source_id=row["source_id"],
            source_version=found.target.versions.get(row["source_id"], ""),
            path=row["path"],
            lines=None if row["line_start"] is None else (row["line_start"], row["line_end"]),
            collection=found.target.slug,
            index_revision=found.revision,
            embedding_profile_version=found.profile
            if IndexKind.VECTOR in found.target.served
            else None,
            trust_tier=found.tier,
            score=round(ranking.scores[key], 6),
            signals=_signals(found),
        ),
        explanation=_explanation(found, ranking, key) if explain else None,
    )


def _signals(found: Contender) -> dict[str, float]:
    return {leg.value: round(value, 6) for leg, value in sorted(found.signals.items())}


def _explanation(found: Contender, ranking: Ranking, key: uuid.UUID) -> Explanation:
    return Explanation(
        ranks={leg.value: rank for leg, rank in sorted(found.ranks.items())},
        fusion=round(ranking.fusion[key], 6),
        rerank=round(ranking.blended[key], 6) if key in ranking.blended else None,
        prior=found.prior,
    )
