"""Vectors for every text that a generation needs and the cache does not hold yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from knowledge.crash_points import reached
from knowledge.indexing.convergence import versions_to_write
from knowledge.indexing.targets import Target, plan_hybrid
from knowledge.model.chunk import ChunkVersion
from knowledge.model.identity import embedding_text
from knowledge.profiles.profile import Embedder
from knowledge.runtime import Runtime
from knowledge.storage.postgres.lease import Lease
from knowledge.storage.vectors import VectorStore


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
    """`embed_for` what the next convergence writes; nothing before the first publish."""
    target = plan_hybrid(runtime, held)
    if target is None:
        return Receipt(None, 0, 0, 0, 0, 0.0, 0.0)
    return embed_for(runtime, target)


def embed_for(
    runtime: Runtime, target: Target, *, noted: Callable[[int], None] = lambda _count: None
) -> Receipt:
    """Embed in bounded batches, each stored as soon as it is done: a killed run resumes.

    ``noted`` is told after each batch how many texts it held. Raises `ModelUnavailable`,
    `ProfileMismatch`, and `Forbidden` for a remote profile where the collection allows none.
    """
    started = time.monotonic()
    profile = target.generation.embedding_profile
    if profile is None or target.is_current:
        return Receipt(profile, 0, 0, 0, 0, time.monotonic() - started, 0.0)
    store = runtime.vectors(target.collection.tenant_id, profile)
    texts = _Texts(store)
    embedder: Embedder | None = None
    embedded, tokens, size, cost = 0, 0, 0, 0.0
    known = True
    for missing in texts.missing(versions_to_write(runtime, target)):
        if embedder is None:  # a model is loaded only where there is something to embed
            embedder = runtime.permitted_embedder(
                profile, allow_remote=target.collection.allow_remote
            )
        done = embedder.embed([text for _, text in missing])
        size += store.put([key for key, _ in missing], done.vectors)
        reached("embeddings.stored")
        embedded += len(missing)
        tokens += done.tokens
        known = known and done.cost is not None
        cost += done.cost or 0.0
        noted(len(missing))
    return Receipt(
        profile,
        embedded,
        texts.seen - embedded,
        tokens,
        size,
        time.monotonic() - started,
        cost if known else None,
    )


class _Texts:
    """The texts of versions that have no vector yet, a batch at a time, each once."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        self._asked: set[bytes] = set()

    @property
    def seen(self) -> int:
        return len(self._asked)

    def missing(
        self, batches: Iterable[Sequence[ChunkVersion]]
    ) -> Iterator[list[tuple[bytes, str]]]:
        """Hash and text, by length: a model pads a batch to its longest text."""
        for versions in batches:
            fresh = {version.text_hash: version.chunk for version in versions}
            fresh = {key: chunk for key, chunk in fresh.items() if key not in self._asked}
            self._asked.update(fresh)
            found = [(key, embedding_text(fresh[key])) for key in self._store.missing(list(fresh))]
            if found:
                yield sorted(found, key=lambda entry: len(entry[1]))
