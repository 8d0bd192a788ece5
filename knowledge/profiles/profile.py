"""What an embedding profile is, and what an embedder promises."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from knowledge.errors import ModelUnavailable
from knowledge.settings import ProfileSettings

Vectors = NDArray[np.float32]

_TUNING: Final = ("batch_size", "cost_per_million_tokens")
"""Fields that change speed or bookkeeping, never a vector or a ranking."""


@dataclass(frozen=True, slots=True)
class EmbeddingProfile:
    """How texts become vectors, as it is persisted at first use and never changed after.

    ``key`` is ``name@version``. ``model`` identifies the weights to a reader. ``dimension`` is
    the length of a vector. ``blend_text`` and ``blend_code``, in 0 to 1, are the cosine's weight
    against the sparse score in the default reranker. ``names_floor``, in -1 to 1, is the least
    cosine at which two names may be the same thing. ``max_tokens`` is where the model stops
    reading. ``weights`` is the SHA-256 of a local model's files, None for a remote one.
    """

    key: str
    provider: str
    model: str
    dimension: int
    query_prefix: str
    passage_prefix: str
    blend_text: float
    blend_code: float
    names_floor: float
    max_tokens: int
    batch_size: int
    cost_per_million_tokens: float | None
    is_local: bool
    weights: str | None
    distance: Literal["cosine"] = "cosine"
    normalised: Literal[True] = True

    @classmethod
    def define(
        cls,
        key: str,
        settings: ProfileSettings,
        *,
        model: str,
        dimension: int,
        weights: str | None,
    ) -> EmbeddingProfile:
        """The profile of ``settings`` once the model has told its ``dimension``."""
        return cls(
            key=key,
            provider=settings.provider,
            model=model,
            dimension=dimension,
            query_prefix=settings.query_prefix,
            passage_prefix=settings.passage_prefix,
            blend_text=settings.blend_text,
            blend_code=settings.blend_code,
            names_floor=settings.names_floor,
            max_tokens=settings.max_tokens,
            batch_size=settings.batch_size,
            cost_per_million_tokens=settings.cost_per_million_tokens,
            is_local=settings.provider != "litellm",
            weights=weights,
        )

    @property
    def fingerprint(self) -> str:
        """SHA-256, 64 hex digits, over everything that changes a vector or a ranking: equal
        fingerprints mean that vectors of the two may be compared."""
        definition = {name: value for name, value in asdict(self).items() if name not in _TUNING}
        canonical = json.dumps(definition, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vectors of a sequence of texts, and what they took.

    ``vectors`` is float32, C-contiguous, ``[n, dimension]``, one row a text in the order given,
    each of length 1. ``tokens`` counts what the model read, 0 when a remote model does not say.
    ``seconds`` is elapsed time. ``cost`` is in US dollars, 0 for local models, None when unknown.
    """

    vectors: Vectors
    tokens: int
    seconds: float
    cost: float | None


class Embedder(Protocol):
    """Turns texts into unit vectors. Safe to call from several threads at once.

    A text longer than ``profile.max_tokens`` is embedded by its beginning. An empty text has a
    finite unit vector too. A vector that is not finite is never returned: `ModelUnavailable` is
    raised, as it is when a remote model cannot be reached or answers nonsense;
    `ProfileMismatch` when it answers in another dimension.
    """

    @property
    def profile(self) -> EmbeddingProfile: ...

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Embed passages, ``profile.passage_prefix`` put before each.

        No texts give vectors of shape ``[0, dimension]``.
        """
        ...

    def embed_query(self, text: str) -> Vectors:
        """Embed one query, ``profile.query_prefix`` put before it: float32 ``[dimension]``."""
        ...


def unit_rows(vectors: Vectors, *, key: str) -> Vectors:
    """``vectors`` as C-contiguous float32 with rows of length 1.

    Raises `ModelUnavailable` when a row is not finite or has no direction.
    """
    rows = np.ascontiguousarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or (lengths == 0).any():
        raise ModelUnavailable(
            f"profile {key}: the model returned a vector that is zero or not finite; "
            "check the model's files or the service",
            profile=key,
        )
    rows /= lengths
    return rows
