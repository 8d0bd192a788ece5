"""A telling as it is stored, back as the statement that it was, and as a line of an export."""

from __future__ import annotations

from typing import Any

from knowledge.model.fact import Domain, Moment, Precision, Provenance, Statement
from knowledge.model.scope import TrustTier
from knowledge.storage.postgres.database import Row


def statement_of(row: Row, namespace: str) -> Statement:
    """What was told, with the provenance it was told with."""
    return Statement(
        domain=Domain(row["domain"]),
        subject=row["subject"],
        predicate=row["predicate"],
        object=row["object"],
        provenance=Provenance(
            principal=row["principal"],
            source_id=row["source_id"],
            source_version=row["source_version"],
            client=row["client"],
            model=row["model"],
            session_id=row["session_id"],
        ),
        namespace=namespace,
        subject_type=row["subject_type"],
        object_type=row["object_type"],
        valid_from=_moment(row["valid_from"], row["valid_from_precision"]),
        valid_to=_moment(row["valid_to"], row["valid_to_precision"]),
        observed_at=row["observed_at"],
        confidence=row["confidence"],
        tier=TrustTier(row["trust_tier"]),
        verified=row["verified"],
        acl=None if row["acl"] is None else tuple(row["acl"]),
        session_scope=row["session_scope"],
        verified_by=row["verified_by"],
    )


def _moment(at: Any, precision: str | None) -> Moment | None:
    return None if at is None else Moment(at, Precision(precision or Precision.INSTANT))
