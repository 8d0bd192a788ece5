"""One statement, held against an ontology."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from knowledge.graph.ontology.model import Ontology, Predicate
from knowledge.model.fact import Domain


class Violation(StrEnum):
    """The stable codes, each at the start of its line."""

    UNKNOWN_PREDICATE = "unknown_predicate"
    WRONG_DOMAIN = "wrong_domain"
    SUBJECT_TYPE = "subject_type"
    OBJECT_TYPE = "object_type"


def violations(
    ontology: Ontology,
    *,
    predicate: str,
    domain: Domain,
    subject_type: str | None,
    object_type: str | None,
) -> tuple[str, ...]:
    """What the ontology says against a statement: lines ``code: words``, none when it fits.

    ``predicate`` may be an alias. A type that is not known (None) violates nothing. Whether a
    violation refuses the statement or is only reported is the caller's to decide, by
    `Ontology.closed`.
    """
    known = ontology.find(predicate)
    if known is None:
        words = f"{ontology.identity} has no predicate {predicate}"
        return (f"{Violation.UNKNOWN_PREDICATE}: {words}",)
    return tuple(_against(known, domain, subject_type, object_type))


def _against(
    predicate: Predicate, domain: Domain, subject_type: str | None, object_type: str | None
) -> Iterator[str]:
    name = predicate.name
    if predicate.domain is not None and predicate.domain is not domain:
        yield f"{Violation.WRONG_DOMAIN}: {name} is of the domain {predicate.domain}, not {domain}"
    ends = (
        (Violation.SUBJECT_TYPE, "subject", subject_type, predicate.subject_types),
        (Violation.OBJECT_TYPE, "object", object_type, predicate.object_types),
    )
    for code, end, given, allowed in ends:
        if given is not None and allowed and given not in allowed:
            yield f"{code}: the {end} of {name} is a {given}; allowed: {', '.join(allowed)}"
