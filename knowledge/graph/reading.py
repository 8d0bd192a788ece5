"""From a fact as it is sent (a JSON object) to a `Statement`: strict, one clear line an error."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from knowledge.errors import InvalidFact, InvalidInput
from knowledge.graph.ontology.model import Ontology
from knowledge.model.fact import (
    DEFAULT_NAMESPACE,
    Domain,
    Moment,
    Provenance,
    Statement,
    is_memory,
    parse_moment,
    require_domain,
    require_name,
    require_namespace,
    require_predicate,
    require_type,
)
from knowledge.model.scope import TrustTier, parse_acl

FIELDS: Final = frozenset(
    (
        "subject",
        "subjectType",
        "predicate",
        "object",
        "objectType",
        "domain",
        "namespace",
        "validFrom",
        "validTo",
        "observedAt",
        "confidence",
        "trustTier",
        "verified",
        "sourceId",
        "sourceVersion",
        "client",
        "model",
        "sessionId",
        "acl",
        "collection",
        "chunkId",
        "corrects",
    )
)
"""Of one fact, in wire names. Required: subject, predicate, object, and a provenance."""


CLOCK_SKEW: Final = timedelta(minutes=5)
"""How far the clocks of tellers may be ahead."""


@dataclass(frozen=True, slots=True)
class Teller:
    """Who sends facts, and what holds for facts that do not say themselves.

    ``collections`` gives a collection's id by its name; None for one the teller may not use.
    Namespaces of memories are written by `knowledge.memory` only, which keeps their bounds.
    """

    principal: str
    ontology: Ontology
    domain: Domain | None = None
    collections: Callable[[str], uuid.UUID | None] = lambda _name: None
    writes_memory: bool = False


def read_fact(given: object, teller: Teller) -> Statement:
    """Raises `InvalidFact`. Aliases of predicates become their names, so that one thing has one."""
    if not isinstance(given, dict):
        raise InvalidFact("a fact is a JSON object")
    if unknown := sorted(given.keys() - FIELDS):
        raise InvalidFact(
            f"unknown field {str(unknown[0])[:80]!r}: use {', '.join(sorted(FIELDS))}"
        )
    predicate = teller.ontology.canonical(require_predicate(_text(given, "predicate")))
    known = teller.ontology.find(predicate)
    if known is None and teller.ontology.closed:
        raise InvalidFact(
            f"predicate {predicate} is not in ontology {teller.ontology.identity}, which is closed"
        )
    provenance = _provenance(given, teller.principal)
    valid_from = parse_moment(given.get("validFrom"), "validFrom")
    valid_to = parse_moment(given.get("validTo"), "validTo")
    if valid_from and valid_to and valid_to.at < valid_from.at:
        raise InvalidFact("validTo is before validFrom: a fact ends after it begins")
    collection_id, chunk_id = _chunk(given, teller)
    return Statement(
        domain=_domain(given, known.domain if known else None, teller),
        subject=require_name(_text(given, "subject"), "subject"),
        predicate=predicate,
        object=require_name(_text(given, "object"), "object"),
        provenance=provenance,
        namespace=_namespace(given, teller),
        subject_type=_type(given, "subjectType"),
        object_type=_type(given, "objectType"),
        valid_from=valid_from,
        valid_to=valid_to,
        observed_at=_observed(given),
        confidence=_confidence(given),
        tier=_tier(given, provenance),
        verified=_flag(given, "verified"),
        acl=_acl(given),
        collection_id=collection_id,
        chunk_id=chunk_id,
        corrects=_id(given, "corrects"),
    )


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if value is None:
        raise InvalidFact(f"{name} is missing")
    if not isinstance(value, str):
        raise InvalidFact(f"{name} is not a text")
    return value


def _optional(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is None:
        return None
    return require_name(_text(given, name), name)


def _namespace(given: Mapping[str, Any], teller: Teller) -> str:
    namespace = require_namespace(_optional(given, "namespace") or DEFAULT_NAMESPACE)
    if is_memory(namespace) and not teller.writes_memory:
        raise InvalidFact(
            f"namespace {namespace} is a memory: tell it with memory/upsert, or choose one without '|'"
        )
    return namespace


def _provenance(given: Mapping[str, Any], principal: str) -> Provenance:
    told = Provenance(
        principal=principal,
        source_id=_optional(given, "sourceId"),
        source_version=_optional(given, "sourceVersion"),
        client=_optional(given, "client"),
        model=_optional(given, "model"),
        session_id=_optional(given, "sessionId"),
    )
    if told.source_id is not None and told.source_version is None:
        raise InvalidFact("sourceVersion is missing: say at which version the source says it")
    if told.source_id is None and (told.client is None or told.session_id is None):
        raise InvalidFact(
            "provenance is missing: give sourceId and sourceVersion, or client and sessionId"
        )
    return told


def _domain(given: Mapping[str, Any], known: Domain | None, teller: Teller) -> Domain:
    if given.get("domain") is not None:
        return require_domain(_text(given, "domain"))
    domain = teller.domain or known
    if domain is None:
        raise InvalidFact(f"domain is missing: use one of {', '.join(Domain)}")
    return domain


def _type(given: Mapping[str, Any], name: str) -> str | None:
    return None if given.get(name) is None else require_type(_text(given, name), name)


def _observed(given: Mapping[str, Any]) -> datetime | None:
    moment: Moment | None = parse_moment(given.get("observedAt"), "observedAt")
    if moment is None:
        return None
    if moment.at > datetime.now(UTC) + CLOCK_SKEW:
        raise InvalidFact("observedAt lies in the future: a fact is observed before it is told")
    return moment.at


def _confidence(given: Mapping[str, Any]) -> float:
    value = given.get("confidence")
    if value is None:
        return 1.0
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= 1:
        raise InvalidFact("confidence is not a number from 0 to 1")
    return float(value)


def _tier(given: Mapping[str, Any], provenance: Provenance) -> TrustTier:
    """A fact without a source is an observation at best, whatever it claims."""
    highest = TrustTier.AGENT_OBSERVATION if provenance.source_id is None else TrustTier.SOURCE_FACT
    if given.get("trustTier") is None:
        return highest
    try:
        tier = TrustTier(_text(given, "trustTier"))
    except ValueError as error:
        raise InvalidFact(f"trustTier is not one of {', '.join(TrustTier)}") from error
    if not highest.at_least(tier):
        raise InvalidFact(f"trustTier {tier} needs a sourceId: without one it is at most {highest}")
    return tier


def _flag(given: Mapping[str, Any], name: str) -> bool:
    value = given.get(name, False)
    if not isinstance(value, bool):
        raise InvalidFact(f"{name} is not true or false")
    return value


def _acl(given: Mapping[str, Any]) -> tuple[str, ...] | None:
    entries = given.get("acl")
    if entries is None:
        return None
    if not isinstance(entries, list):
        raise InvalidFact("acl is not a list of user:NAME and group:NAME")
    try:
        return parse_acl(entries)
    except (InvalidInput, TypeError) as error:
        raise InvalidFact("acl is not a list of user:NAME and group:NAME") from error


def _chunk(given: Mapping[str, Any], teller: Teller) -> tuple[uuid.UUID | None, uuid.UUID | None]:
    chunk_id, name = _id(given, "chunkId"), _optional(given, "collection")
    if chunk_id is None and name is None:
        return None, None
    if chunk_id is None or name is None:
        raise InvalidFact("collection and chunkId go together: name the chunk that says it by both")
    collection_id = teller.collections(name)
    if collection_id is None:
        raise InvalidFact(f"there is no collection {name[:80]}")
    return collection_id, chunk_id


def _id(given: Mapping[str, Any], name: str) -> uuid.UUID | None:
    if given.get(name) is None:
        return None
    try:
        return uuid.UUID(_text(given, name))
    except ValueError as error:
        raise InvalidFact(f"{name} is not an id") from error
