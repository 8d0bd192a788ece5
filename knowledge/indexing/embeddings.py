"""Vectors for every text that a generation needs and the cache does not hold yet."""

from __future__ import annotations

import time
from dataclasses import dataclass

from knowledge.errors import Forbidden
from knowledge.indexing.convergence import Target, plan
from knowledge.model.identity import embedding_text
from knowledge.runtime import Runtime
from knowledge.storage.postgres import clock
from knowledge.storage.postgres.lease import Lease


@dataclass(frozen=True, slots=True)
class Receipt:
    """What embedding took. ``cost`` is in US dollars, None where it is not known.

    ``reused`` counts texts whose vector was in the cache already.
    """

    profile: str | None
    texts: int
    reused: int
    tokens: int
    bytes: int
    seconds: float
    cost: float | None


def embed_missing(runtime: Runtime, held: Lease) -> Receipt:
    """Embed in bounded batches, each stored as soon as it is done: a killed run resumes.

    Raises `ModelUnavailable`, `ProfileMismatch`, and `Forbidden` for a remote profile where
    the collection does not allow one.
    """
    started = time.monotonic()
    target = plan(runtime, held)
    profile = target.collection.embedding_profile if target else None
    if target is None or profile is None:
        return Receipt(None, 0, 0, 0, 0, time.monotonic() - started, 0.0)
    texts = _missing_texts(runtime, target, profile)
    reused = texts.seen - len(texts.missing)
    if not texts.missing:
        return Receipt(profile, 0, reused, 0, 0, time.monotonic() - started, 0.0)
    embedder = runtime.embedder(profile)
    if not embedder.profile.is_local and not target.collection.allow_remote:
        raise Forbidden(
            f"profile {profile} sends texts to a remote model and collection"
            f" {target.collection.slug} does not allow it:"
            f" knowledge collections set --allow-remote"
        )
    store = runtime.vectors(target.collection.tenant_id, profile)
    tokens, size, cost = 0, 0, 0.0
    known = True
    batch = max(embedder.profile.batch_size * 16, 256)
    pending = sorted(texts.missing.items(), key=lambda item: len(item[1]))
    for start in range(0, len(pending), batch):
        part = pending[start : start + batch]
        embedded = embedder.embed([text for _, text in part])
        size += store.put([key for key, _ in part], embedded.vectors)
        tokens += embedded.tokens
        known = known and embedded.cost is not None
        cost += embedded.cost or 0.0
    return Receipt(
        profile,
        len(pending),
        reused,
        tokens,
        size,
        time.monotonic() - started,
        cost if known else None,
    )


@dataclass(slots=True)
class _Texts:
    missing: dict[bytes, str]
    seen: int


def _missing_texts(runtime: Runtime, target: Target, profile: str) -> _Texts:
    store = runtime.vectors(target.collection.tenant_id, profile)
    texts = _Texts({}, 0)
    seen: set[bytes] = set()
    for versions in clock.versions_between(
        runtime.app,
        target.collection,
        after=target.generation.applied_rev,
        upto=target.head,
        visible_only=target.is_new,
    ):
        fresh = {version.text_hash: version.chunk for version in versions}
        fresh = {key: chunk for key, chunk in fresh.items() if key not in seen}
        seen.update(fresh)
        for key in store.missing(list(fresh)):
            texts.missing[key] = embedding_text(fresh[key])
    texts.seen = len(seen)
    return texts
