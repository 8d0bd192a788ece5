"""BERT's forward pass in plain numpy, one text at a time: what the graph is checked against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import erf
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_erf = np.vectorize(erf, otypes=[np.float64])


def embed(weights: Mapping[str, Array], ids: Sequence[int]) -> Array:
    """The unit vector of one text of token ``ids``, float64 ``[384]``."""
    w = {name: tensor.astype(np.float64) for name, tensor in weights.items()}
    hidden = (
        w["embeddings.word_embeddings.weight"][list(ids)]
        + w["embeddings.token_type_embeddings.weight"][0]
        + w["embeddings.position_embeddings.weight"][: len(ids)]
    )
    hidden = _layer_norm(w, "embeddings.LayerNorm", hidden)
    for number in range(6):
        name = f"encoder.layer.{number}"
        attended = _dense(w, f"{name}.attention.output.dense", _attend(w, name, hidden))
        hidden = _layer_norm(w, f"{name}.attention.output.LayerNorm", hidden + attended)
        inner = _dense(w, f"{name}.intermediate.dense", hidden)
        inner = inner * 0.5 * (1 + _erf(inner / np.sqrt(2)))
        outer = _dense(w, f"{name}.output.dense", inner)
        hidden = _layer_norm(w, f"{name}.output.LayerNorm", hidden + outer)
    mean = hidden.mean(axis=0)
    direction: Array = mean / np.linalg.norm(mean)
    return direction


def _attend(w: Mapping[str, Array], name: str, hidden: Array) -> Array:
    query, key, value = (
        _dense(w, f"{name}.attention.self.{part}", hidden) for part in ("query", "key", "value")
    )
    heads = []
    for start in range(0, 384, 32):
        part = slice(start, start + 32)
        scores = query[:, part] @ key[:, part].T / np.sqrt(32)
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        heads.append(chances / chances.sum(axis=1, keepdims=True) @ value[:, part])
    return np.concatenate(heads, axis=1)


def _dense(w: Mapping[str, Array], name: str, hidden: Array) -> Array:
    return hidden @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def _layer_norm(w: Mapping[str, Array], name: str, hidden: Array) -> Array:
    centred = hidden - hidden.mean(axis=1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-12)
    moved: Array = scaled * w[f"{name}.weight"] + w[f"{name}.bias"]
    return moved
